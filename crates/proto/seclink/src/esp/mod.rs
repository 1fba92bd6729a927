//! ESP's data plane (RFC 4303): security associations with keys by configuration.
//!
//! A slot holds what ESP protects, without an IP header before it: a whole IP packet in tunnel mode, the payload
//! of one in transport mode. [`tunnel`] writes and takes off the outer header; [`transport`] works on whole packets.

mod inbound;
mod outbound;
mod suite;
pub mod transport;
pub mod tunnel;

pub use inbound::{Dropped, Inbound, InboundCounters, Opened};
pub use outbound::{Outbound, OutboundCounters};
pub use suite::{Suite, overhead};

use crate::Secret;

/// A security association's parameters, the same at both ends (RFC 4301 §4.4.2).
#[derive(Debug)]
pub struct Parameters {
    /// The security parameters index, which the receiver chose; not 0.
    pub spi: u32,
    /// Which ciphers protect the packets.
    pub suite: Suite,
    /// Key material: cipher key, then salt or authentication key ([`Suite::key_material`]).
    pub key: Secret,
    /// Whether sequence numbers have 64 bits (RFC 4303 §2.2.1).
    pub extended: bool,
}
