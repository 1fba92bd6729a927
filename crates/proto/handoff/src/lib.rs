//! A host that moves from one place of attachment to another: what is asked (a [`Scenario`]), what was seen (a
//! [`Run`]), and what it says. No sockets, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod run;
mod scenario;
mod tally;

pub use run::{Event, Received, Run, Sent, Source, Stream, What};
pub use scenario::{
    Access, Address, Attachment, Domain, Keying, Measures, Scenario, Trigger, Tunnel, TunnelEnd,
    WifiSecurity,
};
pub use tally::{Departures, LATE, Tally};
