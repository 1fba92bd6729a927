//! One interface over TLS libraries in process: bytes in, bytes out, no sockets.
//!
//! A [`Client`] or [`Server`] is made once from its configuration, and gives a [`Session`] for each
//! connection. The caller moves the bytes; the session never blocks and knows no transport.
//!
//! ```
//! use std::sync::Arc;
//! use tls::{Client, ClientConfig, Identity, KeyType, Library, Server, ServerConfig, Trust};
//!
//! # fn main() -> Result<(), tls::Error> {
//! let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &["server.test"])?);
//! let trust = Trust::Roots(identity.roots());
//! let client = Client::new(&ClientConfig::new(Library::Rustls, "server.test", trust))?;
//! let server = Server::new(&ServerConfig::new(Library::OpenSsl, identity))?;
//!
//! let (mut here, mut there) = (client.start(None)?, server.accept()?);
//! let mut flights = 0;
//! while !here.may_send() {
//!     let mut flight = Vec::new();
//!     here.write_tls(&mut flight)?; // one write to the transport
//!     there.read_tls(&flight)?;
//!     flight.clear();
//!     there.write_tls(&mut flight)?;
//!     here.read_tls(&flight)?;
//!     flights += 2;
//! }
//! assert_eq!(flights, 2); // one round trip: TLS 1.3
//! # Ok(())
//! # }
//! ```
//!
//! Pinned unless [`Offer`] says otherwise, so that a measurement says what it measured: AES-128-GCM with SHA-256 in every
//! version, the groups in the order given, one ticket a connection.

mod certificate_file;
pub mod chain;
mod client;
mod client_identity;
mod compression;
mod config;
pub mod direct;
pub mod ech;
mod error;
mod hello;
mod identity;
mod identity_pem;
mod identity_quantum;
mod kinds;
mod offer;
mod openssl_engine;
pub mod quic;
mod rustls_engine;
mod server;
mod session;
mod stand_in;
mod ticket;
mod versions;

pub use certificate_file::certificates_in;
pub use client::Client;
pub use client_identity::ClientIdentity;
pub use compression::Compression;
pub use config::{ClientConfig, KeyLog, ServerConfig, Trust};
pub use error::{CallerError, CertificateError, CertificateFault, Error, PeerError};
pub use identity::{Identity, MAX_CHAIN, Validity};
pub use kinds::{CipherSuite, Group, KeyExchange, KeyType, Library, Version};
pub use offer::{NamedGroup, Notes, Offer, ServerChoice, WireVersion, Witness, named_group};
pub use rustls_engine::AcceptAnyCertificate;
pub use server::Server;
pub use session::{EarlyData, Facts, MAX_BUFFERED, Session};
pub use stand_in::{SignatureKind, StandIn};
pub use ticket::Ticket;
pub use versions::library_versions;
