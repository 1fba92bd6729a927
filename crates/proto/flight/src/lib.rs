//! A TLS server's first flight, computed: how many bytes each message has, and how many round trips
//! they take over TCP's initial window (RFC 6928) and QUIC's limit before a client's address is
//! validated (RFC 9000 §8.1).
//!
//! Sizes come from the chain's certificates in DER and from the length of the signature that the leaf's
//! key makes. Nothing is encoded: lengths are all that counts.
//!
//! ```
//! use flight::{Chain, Flight, Framing, Hello, TcpWindow};
//!
//! // A leaf and an intermediate on P-256, key exchange by X25519.
//! let chain = Chain::new(vec![600, 580], 71);
//! let flight = Flight::tls13(&chain, Hello::default(), Framing::Coalesced);
//! assert_eq!(flight.bytes(), 1_478);
//! assert_eq!(TcpWindow::default().round_trips(flight.bytes()), 1);
//! ```
#![forbid(unsafe_code)]

mod chain;
mod messages;
mod quic;
mod signature;
mod tcp;

pub use chain::Chain;
pub use messages::{Flight, Framing, Hello};
pub use quic::{QuicPath, RoundTrips};
pub use signature::{PostQuantum, ecdsa_signature, rsa_signature};
pub use tcp::TcpWindow;
