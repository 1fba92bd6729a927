//! A pair of proxies by which unmodified programs use SSLmTCP.
//!
//! - [`serve()`] ends TLS on our TCP, whatever the peer: handshakes inside TCP's in every profile, and
//!   ordinary TCP and TLS on the same port; it forwards plaintext to an unmodified server.
//! - [`connect()`] accepts ordinary TCP from unmodified programs and carries each connection to the
//!   other gateway, its TLS handshake inside TCP's.
//!
//! Whether data in SYN and SYN+ACK survive a path at all, [`survey`] finds out.
//!
//! Both keep a bounded number of connections, count what they do ([`metrics`]), and end in stages
//! ([`ending()`]): no new connections, then a bounded time for the open ones.
//!
//! Both give up every right of the process beyond an ordinary user's once they are set up
//! ([`packet::privileges::drop_privileges`]): the process must have no other thread until then.
#![forbid(unsafe_code)]

mod complaints;
mod connect;
mod device;
mod early;
mod error;
mod figures;
mod machine;
mod memory;
pub mod metrics;
mod options;
mod places;
mod redirect;
mod relay;
mod serve;
mod shutdown;
pub mod survey;
mod tickets;

pub use connect::connect;
pub use error::Error;
pub use options::{Common, ConnectOptions, Place, ServeOptions};
pub use serve::serve;
pub use shutdown::{Ended, Ending, Stage, ending};

/// How a gateway ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Connections that were still open when the time for them was up.
    pub cut_off: usize,
}
