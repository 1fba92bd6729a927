//! SSLmTCP: TLS whose handshake rides in TCP's.
//!
//! The SYN may carry data, and so may the SYN+ACK: sequence numbers cover them, the header format is
//! unchanged (RFC 9293 §3.4; RFC 7413 shows how hosts agree). Here TLS's first two flights ride
//! there, which saves a round trip; with early data, two. What rides is real TLS, records and all,
//! so the security is TLS's.
//!
//! ```no_run
//! # async fn example(stack: tcpio::Stack, client: tls::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use sslmtcp::{ConnectOptions, Embedding, SslmTcpStream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let options = ConnectOptions { embedding: Embedding::Tls13, ..ConnectOptions::default() };
//! let server = "192.0.2.1:443".parse()?;
//! let mut stream = SslmTcpStream::connect_ssl(&stack, server, &client, options).await?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?; // leaves with the ACK of the SYN+ACK
//! let mut answer = Vec::new();
//! stream.read_to_end(&mut answer).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | [`Embedding`] | in the SYN | in the SYN+ACK | with the ACK | round trips until ready |
//! |---|---|---|---|---|
//! | `none` | | | ClientHello | as TLS has it, and one |
//! | `paper` | ClientHello | ServerHello to ServerHelloDone | ClientKeyExchange to Finished | 2 |
//! | `tls13` | ClientHello | ServerHello to Finished | Finished, request | 1 |
//! | `0rtt` | ClientHello, request | ServerHello to Finished | Finished | 0 |
//!
//! A [`SslmTcpListener`] takes all of them and ordinary TLS clients on one port; a client falls back
//! to TCP, then TLS, when the server or the path does not take part ([`Carried`]).
//!
//! [`Carrier`] is the protocol itself, a pure state machine between an [`Engine`] and a byte stream.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod admission;
mod carrier;
mod connect;
mod destinations;
mod embedding;
mod engine;
pub mod envelope;
mod error;
pub mod fuzz;
mod inner;
mod listener;
mod meter;
pub mod padding;
mod report;
mod stream;
pub mod testing;
mod wakers;

pub use admission::Source;
pub use carrier::{Carrier, CarrierError, Plan, SEND_LIMIT};
pub use connect::ConnectOptions;
pub use destinations::Destinations;
pub use embedding::Embedding;
pub use engine::Engine;
pub use error::Error;
pub use listener::{ListenOptions, ListenerCounters, SslmTcpListener};
pub use report::{Carried, Report, Timeline};
pub use stream::SslmTcpStream;
