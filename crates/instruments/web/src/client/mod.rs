//! The client: connects, asks, and says when each step happened.

mod connect;
mod exchange;
mod h1;
mod h2;
mod h3;
mod plan;
mod push;
mod sessions;
mod spdy;
mod state;

pub use connect::{Client, Connection};
pub use exchange::{Event, Exchange, Head, Outcome, What};
pub(crate) use plan::TicketsOf;
pub use plan::{ClientTimeouts, ConnectPlan, Request, Tickets};
pub use push::{Push, PushLimits};
pub use state::{Ended, Facts};
