//! A load generator for TLS servers: connections by the thousand a second from few cores.
//!
//! A closed loop keeps a number of connections under way; an open loop starts them at a rate, and
//! counts latency from when each was due, so that a stall of the server is not left out. In HTTP/2 the load is
//! made of requests, many at once on connections that stay open. Full and resumed handshakes are mixed in any share, and what was resumed is proven by the handshake itself.
//!
//! Each thread has its own epoll loop, TLS configuration, tickets and counters; nothing is shared
//! until the end.
//!
//! ```no_run
//! use load::{Control, Options};
//!
//! # fn main() -> Result<(), load::Error> {
//! let mut options = Options::new(([127, 0, 0, 1], 8443).into(), "server.test");
//! options.get("server.test", "/", 1);
//! options.resume = 0.8;
//! let control = Control::default(); // its clones stop the run from elsewhere
//! let report = load::run(&options, &control)?;
//! println!("{:.0} connections per second", report.connections_per_second);
//! # Ok(())
//! # }
//! ```

mod address;
mod certificate;
mod config;
mod connection;
mod error;
mod failure;
mod h2;
mod http;
mod latency;
mod options;
mod report;
mod run;
pub mod schedule;
mod socket;
mod suite;
mod tally;
mod target;
mod tickets;
mod verify;
mod worker;

pub use address::Tried;
pub use config::client_config;
pub use error::Error;
pub use failure::{FailureCount, Kind, NOT_TLS, Stage};
pub use h2::fuzz as fuzz_http2;
pub use http::{MAX_HEAD, Malformed, Response};
pub use latency::Summary;
pub use options::{Close, Http, Options, Pace, is_near, limits};
pub use report::{Agreement, Cpu, Handshakes, Latencies, Report};
pub use run::{Control, Progress, run, run_with};
pub use socket::raise_file_limit;
pub use suite::{Suite, UnknownSuite};
pub use target::{Target, TargetError};
