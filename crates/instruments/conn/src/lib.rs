//! One secure connection over the kernel's TCP, our own TCP or QUIC, each step timed.
//!
//! [`tcp::connect`], [`sslmtcp::connect`] and [`quic::connect`] make one connection by a plan and
//! return an [`Outcome`]: when each step happened by CLOCK_MONOTONIC, what TLS negotiated, what the
//! kernel or our TCP says of the connection, CPU time. [`tcp::Server`], [`sslmtcp::Server`] and
//! [`quic::Server`] answer, and log what they saw of each connection.
//! [`probe`] measures a live server by a bounded number of connections.
//!
//! Everything runs within a tokio runtime (current-thread or not) and in the network namespace of the
//! thread that calls.

mod clock;
mod cpu;
mod failure;
mod layer;
mod log;
mod outcome;
pub mod probe;
pub mod quic;
mod running;
pub mod sslmtcp;
pub mod tcp;
mod timeline;
#[doc(hidden)]
pub mod untrusted;

pub use self::tcp::{FastOpen, SynData, TcpInfo};
pub use clock::{now, thread_cpu};
pub use cpu::{CpuScope, Metered};
pub use failure::{Failure, Fault};
pub use log::{DEFAULT_LOG_CAPACITY, ServerLog, ServerRecord};
pub use outcome::{Attempt, KEPT_RESPONSE, Outcome};
pub use running::Running;
pub use timeline::Timeline;
