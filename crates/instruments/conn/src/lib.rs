//! One secure connection over the kernel's TCP, our own TCP or QUIC, each step timed.
//!
//! [`connect()`] makes one connection by a [`ClientPlan`] and returns an [`Outcome`]: when each step
//! happened by CLOCK_MONOTONIC, what TLS negotiated, what the kernel or our TCP says of the connection,
//! CPU time. A [`Server`] answers by a [`ServerPlan`], and logs what it saw of each connection.
//! [`probe`] measures a live server by a bounded number of connections; [`names`] asks a name server for what browsers ask.
//!
//! Everything runs within a tokio runtime (current-thread or not) and in the network namespace of the
//! thread that calls.

mod cpu;
mod failure;
mod layer;
mod log;
pub mod names;
pub mod opening;
mod outcome;
mod plan;
pub mod probe;
mod quic;
mod running;
mod server;
mod sslmtcp;
mod tcp;
mod timeline;
#[doc(hidden)]
pub mod untrusted;

pub use self::quic::{QuicInfo, qlog, tap as quic_tap};
pub use self::sslmtcp::facts as user_tcp;
pub use self::tcp::{FastOpen, FastOpenFailure, SynData, TcpInfo};
pub use cpu::{CpuScope, Metered};
pub use failure::Failure;
pub use log::{DEFAULT_LOG_CAPACITY, ServerLog, ServerRecord};
pub use outcome::{Attempt, KEPT_RESPONSE, Outcome};
pub use packet::clock::{monotonic as now, thread_cpu};
pub use plan::{ClientPlan, ClientTransport, ServerPlan, ServerTransport, connect};
pub use running::Running;
pub use server::Server;
pub use timeline::Timeline;
