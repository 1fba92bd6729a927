//! A traffic tester: numbered, timed frames out of one interface and in at another.
//!
//! [`Port::open`] takes an interface of the calling thread's network namespace; a [`Tester`] has two of
//! them, what lies between is measured. [`Tester::run`] sends by a schedule whose spacing is exact
//! ([`traffic::Schedule`]) and says what came of it: delay one way, loss, order. [`throughput`] searches
//! for the highest load without loss (RFC 2544 §26.1), [`longest_burst`] for the longest burst (§26.4).
//!
//! One thread sends and receives both ways, and by one clock, so that a delay is the difference of two of
//! its readings: when `sendmmsg` was called, and the kernel's stamp of the frame's arrival. It spins where
//! there is a second processor, and waits in `ppoll` where there is one.
//!
//! What limits it is the kernel's work for a frame: on a veth pair it runs the receiving side in the
//! sender's context. Of its own it writes 16 bytes per frame and copies none.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod error;
mod frames;
mod outcome;
mod port;
mod run;
mod search;

pub use error::Error;
pub use frames::Addressing;
pub use outcome::{Delays, Flow, Outcome};
pub use port::Port;
pub use run::{Tester, Trial, Waiting};
pub use search::{Found, Searching, longest_burst, throughput};
