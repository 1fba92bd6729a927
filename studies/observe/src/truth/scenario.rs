//! What a client does in a connection, and what must come of it: each scenario has a server of its own.

use std::sync::Arc;
use std::time::Duration;

use testbed::{MAX_EARLY_DATA, SERVER_NAME};
use tls::{Group, Identity, Library, Trust, Version};
use tracker::Class;

/// How long a client that thinks waits before its request.
const THINK: Duration = Duration::from_millis(40);

units::named! {
    /// What a client does in a connection.
    #[derive(Default)]
    pub enum Scenario: "scenario" {
        /// TLS 1.2, full.
        #[default]
        Tls12 = "Tls12",
        /// TLS 1.2 by a ticket.
        Tls12Resumed = "Tls12Resumed",
        /// TLS 1.2, full; the client waits before its request.
        Tls12Thinking = "Tls12Thinking",
        /// TLS 1.3, full.
        Tls13 = "Tls13",
        /// TLS 1.3 by a ticket.
        Tls13Resumed = "Tls13Resumed",
        /// TLS 1.3 with early data.
        Tls13ZeroRtt = "Tls13ZeroRtt",
        /// TLS 1.3 whose first key share the server does not take.
        Tls13HelloRetry = "Tls13HelloRetry",
        /// TLS 1.3, full; the client waits before its request.
        Tls13Thinking = "Tls13Thinking",
        /// The client offers no version that the server speaks.
        NoCommonVersion = "NoCommonVersion",
        /// TLS 1.2; the client does not know who signed the server's certificate.
        UnknownCa12 = "UnknownCa12",
        /// TLS 1.3; the same.
        UnknownCa13 = "UnknownCa13",
        /// The client resets the connection when the server has answered.
        Reset = "Reset",
        /// QUIC, full.
        Quic = "Quic",
        /// QUIC with early data.
        QuicZeroRtt = "QuicZeroRtt",
    }
}

impl Scenario {
    /// The class that a record of it must have.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Scenario::Tls12 | Scenario::Tls12Thinking | Scenario::Tls13 => Class::Full,
            Scenario::Tls13Thinking | Scenario::Quic => Class::Full,
            Scenario::Tls12Resumed | Scenario::Tls13Resumed => Class::Resumed,
            Scenario::Tls13ZeroRtt | Scenario::QuicZeroRtt => Class::ZeroRtt,
            Scenario::Tls13HelloRetry => Class::HelloRetry,
            Scenario::NoCommonVersion | Scenario::UnknownCa12 | Scenario::UnknownCa13 => {
                Class::Failed
            }
            Scenario::Reset => Class::Failed,
        }
    }

    pub(super) const fn is_quic(self) -> bool {
        matches!(self, Scenario::Quic | Scenario::QuicZeroRtt)
    }

    pub(super) const fn early_data(self) -> bool {
        matches!(self, Scenario::Tls13ZeroRtt | Scenario::QuicZeroRtt)
    }

    /// Whether it takes a ticket from an earlier connection.
    pub(super) const fn resumes(self) -> bool {
        matches!(self, Scenario::Tls12Resumed | Scenario::Tls13Resumed) || self.early_data()
    }

    pub(super) const fn think(self) -> Duration {
        match self {
            Scenario::Tls12Thinking | Scenario::Tls13Thinking => THINK,
            _ => Duration::ZERO,
        }
    }

    const fn client_version(self) -> Version {
        match self {
            Scenario::Tls12 | Scenario::Tls12Resumed | Scenario::Tls12Thinking => Version::Tls12,
            Scenario::NoCommonVersion | Scenario::UnknownCa12 => Version::Tls12,
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
            Scenario::UnknownCa12 | Scenario::UnknownCa13 => stranger,
            _ => identity,
        };
        let trust = Trust::Roots(signed.roots());
        let mut config = tls::ClientConfig::new(library, SERVER_NAME, trust);
        config.versions = vec![self.client_version()];
        if self == Scenario::Tls13HelloRetry {
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
            Scenario::NoCommonVersion => vec![Version::Tls13],
            _ => vec![self.client_version()],
        };
        if self == Scenario::Tls13HelloRetry {
            config.groups = vec![Group::X25519];
        }
        config.max_early_data = if self.early_data() { MAX_EARLY_DATA } else { 0 };
        config
    }
}
