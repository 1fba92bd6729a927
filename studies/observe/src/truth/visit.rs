//! The kinds of connection that are made, each with a server of its own.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tls::{Group, Identity, Library, Trust, Version};
use tracker::Class;

/// The name that the servers' certificate carries.
pub(super) const SERVER_NAME: &str = "server.wiretax.test";
/// Early data that a server takes: more than the one byte that is sent.
const MAX_EARLY_DATA: u32 = 16_384;
/// How long a client that thinks waits before its request.
const THINK: Duration = Duration::from_millis(40);

/// A kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Visit {
    /// TLS 1.2, full.
    Tls12,
    /// TLS 1.2 by a ticket.
    Tls12Resumed,
    /// TLS 1.2, full; the client waits before its request.
    Tls12Thinking,
    /// TLS 1.3, full.
    Tls13,
    /// TLS 1.3 by a ticket.
    Tls13Resumed,
    /// TLS 1.3 with early data.
    Tls13ZeroRtt,
    /// TLS 1.3 whose first key share the server does not take.
    Tls13HelloRetry,
    /// TLS 1.3, full; the client waits before its request.
    Tls13Thinking,
    /// The client offers no version that the server speaks.
    NoCommonVersion,
    /// TLS 1.2; the client does not know who signed the server's certificate.
    UnknownCa12,
    /// TLS 1.3; the same.
    UnknownCa13,
    /// The client resets the connection when the server has answered.
    Reset,
    /// QUIC, full.
    Quic,
    /// QUIC with early data.
    QuicZeroRtt,
}

impl Visit {
    /// All of them.
    pub const ALL: [Visit; 14] = [
        Visit::Tls12,
        Visit::Tls12Resumed,
        Visit::Tls12Thinking,
        Visit::Tls13,
        Visit::Tls13Resumed,
        Visit::Tls13ZeroRtt,
        Visit::Tls13HelloRetry,
        Visit::Tls13Thinking,
        Visit::NoCommonVersion,
        Visit::UnknownCa12,
        Visit::UnknownCa13,
        Visit::Reset,
        Visit::Quic,
        Visit::QuicZeroRtt,
    ];

    /// The class that a record of it must have.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Visit::Tls12 | Visit::Tls12Thinking | Visit::Tls13 => Class::Full,
            Visit::Tls13Thinking | Visit::Quic => Class::Full,
            Visit::Tls12Resumed | Visit::Tls13Resumed => Class::Resumed,
            Visit::Tls13ZeroRtt | Visit::QuicZeroRtt => Class::ZeroRtt,
            Visit::Tls13HelloRetry => Class::HelloRetry,
            Visit::NoCommonVersion | Visit::UnknownCa12 | Visit::UnknownCa13 => Class::Failed,
            Visit::Reset => Class::Failed,
        }
    }

    /// How many of them in a hundred or so.
    pub(super) const fn weight(self) -> u32 {
        match self {
            Visit::Tls12 => 26,
            Visit::Tls13 => 30,
            Visit::Tls12Resumed | Visit::Tls13Resumed => 8,
            Visit::Tls13ZeroRtt | Visit::Tls13HelloRetry | Visit::Quic => 6,
            Visit::Tls12Thinking | Visit::Tls13Thinking | Visit::QuicZeroRtt => 4,
            Visit::NoCommonVersion => 3,
            Visit::UnknownCa12 | Visit::UnknownCa13 | Visit::Reset => 2,
        }
    }

    pub(super) const fn is_quic(self) -> bool {
        matches!(self, Visit::Quic | Visit::QuicZeroRtt)
    }

    pub(super) const fn early_data(self) -> bool {
        matches!(self, Visit::Tls13ZeroRtt | Visit::QuicZeroRtt)
    }

    /// Whether it takes a ticket from an earlier connection.
    pub(super) const fn resumes(self) -> bool {
        matches!(self, Visit::Tls12Resumed | Visit::Tls13Resumed) || self.early_data()
    }

    pub(super) const fn think(self) -> Duration {
        match self {
            Visit::Tls12Thinking | Visit::Tls13Thinking => THINK,
            _ => Duration::ZERO,
        }
    }

    const fn client_version(self) -> Version {
        match self {
            Visit::Tls12 | Visit::Tls12Resumed | Visit::Tls12Thinking => Version::Tls12,
            Visit::NoCommonVersion | Visit::UnknownCa12 => Version::Tls12,
            _ => Version::Tls13,
        }
    }

    pub(super) fn client_config(
        self,
        library: Library,
        identity: &Identity,
        stranger: &Identity,
    ) -> tls::ClientConfig {
        let signed = match self {
            Visit::UnknownCa12 | Visit::UnknownCa13 => stranger,
            _ => identity,
        };
        let trust = Trust::Roots(signed.roots());
        let mut config = tls::ClientConfig::new(library, SERVER_NAME, trust);
        config.versions = vec![self.client_version()];
        if self == Visit::Tls13HelloRetry {
            config.groups = vec![Group::Secp256r1, Group::X25519];
        }
        config.key_shares = 1;
        config.early_data = self.early_data();
        config
    }

    pub(super) fn server_config(self, identity: &Arc<Identity>) -> tls::ServerConfig {
        let library = if self.is_quic() { Library::Rustls } else { Library::OpenSsl };
        let mut config = tls::ServerConfig::new(library, Arc::clone(identity));
        config.versions = match self {
            Visit::NoCommonVersion => vec![Version::Tls13],
            _ => vec![self.client_version()],
        };
        if self == Visit::Tls13HelloRetry {
            config.groups = vec![Group::X25519];
        }
        config.max_early_data = if self.early_data() { MAX_EARLY_DATA } else { 0 };
        config
    }
}
