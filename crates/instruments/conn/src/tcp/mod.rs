//! One connection over the kernel's TCP.

mod client;
mod info;
mod serve;
mod server;
mod socket;
mod transfer;

pub(crate) use client::connect;
pub use info::{FastOpenFailure, TcpInfo};
pub(crate) use server::{listen, serve};

use serde::{Deserialize, Serialize};

/// Whether and how data rides in the SYN (RFC 7413).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FastOpen {
    /// An ordinary three-way handshake.
    #[default]
    Off,
    /// With a cookie (RFC 7413 §3). Without one yet, the SYN asks for it and carries no data: that is
    /// the priming connection. The kernel keeps cookies per server address and network namespace.
    Cookie,
    /// Without a cookie: data in the first SYN ever. Both ends must allow it: the client does by the
    /// socket option TCP_FASTOPEN_NO_COOKIE, and so does our server.
    Cookieless,
}

/// What became of Fast Open, as TCP_INFO says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SynData {
    /// No data was put into the SYN: Fast Open was off, or had no cookie.
    #[default]
    NotSent,
    /// The server acknowledged the data in the SYN.
    Acknowledged,
    /// Data was in the SYN, and the server did not take it: it was sent again.
    NotAcknowledged,
}
