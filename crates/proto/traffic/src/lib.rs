//! A tester's traffic (RFC 2544, RFC 4737), pure: [`Schedule`] says what to send when, [`Probe`] is what each
//! frame carries, [`Tally`] what came of them, and [`Search`] looks for the highest load of which nothing is lost.
//!
//! Sizes are those of Ethernet frames without frame check sequence, as captures show them: RFC 2544's 64 bytes
//! are 60 here.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod fuzz;
mod probe;
mod schedule;
mod search;
mod sizes;
mod tally;

pub use probe::{PROBE_LEN, Probe};
pub use schedule::{Load, Schedule};
pub use search::{Search, Trial};
pub use sizes::{Sizes, SizesError};
pub use tally::{Delays, Gap, Order, Tally};
