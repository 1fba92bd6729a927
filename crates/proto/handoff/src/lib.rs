//! A host that moves from one place of attachment to another: what is asked (a [`Scenario`]), what was seen (a
//! [`Run`]), and what it says. No sockets, no clock.

mod run;
mod scenario;

pub use run::{Event, Received, Run, Sent, Source, Stream, What};
pub use scenario::{
    Access, Address, Attachment, Domain, Keying, Measures, Scenario, Trigger, Tunnel, TunnelEnd,
    WifiSecurity,
};
