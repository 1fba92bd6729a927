//! A host that moves from one place of attachment to another: what is asked (a [`Scenario`]), what was seen (a
//! [`Run`]), and what it says: how long the host was cut off (an [`Outage`]) and where the time went (a
//! [`Timeline`]). No sockets, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod change;
mod check;
pub mod fuzz;
mod named;
mod outage;
mod run;
mod scenario;
mod tally;
mod timeline;

pub use change::Change;
pub use check::{Contradiction, MOST_STATIONS};
pub use named::ScenarioError;
pub use outage::{Direction, Gap, Outage};
pub use run::{Event, Received, Run, Sent, Source, Stream, What};
pub use scenario::{
    Access, Address, Attachment, Domain, Keying, Measures, Scenario, Trigger, Tunnel, TunnelEnd,
    WifiSecurity,
};
pub use tally::{Departures, LATE, Tally};
pub use timeline::{EXPLAINED_WITHIN, Phase, Span, Timeline};
