//! What a client does in a connection, and what must come of it: each scenario has a server of its own.

use std::sync::Arc;
use std::time::Duration;

use testbed::MAX_EARLY_DATA;
use tls::{Group, Identity, Library, Trust, Version};
use tracker::Class;

use super::boxes::Intolerance;
use crate::digest::{Fate, Less};

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
        /// QUIC, full handshake.
        Quic = "Quic",
        /// QUIC with early data.
        QuicZeroRtt = "QuicZeroRtt",
        /// TLS 1.2 by a ticket of another name of the server, which takes it against RFC 6066 §3.
        Tls12CrossName = "Tls12CrossName",
        /// TLS 1.3 by a ticket of another name of the server.
        Tls13CrossName = "Tls13CrossName",
        /// The same, but the server takes no ticket of another name.
        Tls13CrossNameRefused = "Tls13CrossNameRefused",
        /// A box on the way resets a hello that offers TLS 1.3; the client comes again with TLS 1.2.
        VersionReset = "VersionReset",
        /// The same, but the box says nothing.
        VersionDrop = "VersionDrop",
        /// A box resets a hello that is longer than 512 bytes; the client comes again without its hybrid key share.
        LengthReset = "LengthReset",
        /// The same, but the box says nothing.
        LengthDrop = "LengthDrop",
    }
}

impl Scenario {
    /// The class that a record of it must have.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Scenario::Tls12 | Scenario::Tls12Thinking | Scenario::Tls13 => Class::Full,
            Scenario::Tls13Thinking | Scenario::Quic | Scenario::Tls13CrossNameRefused => {
                Class::Full
            }
            Scenario::VersionReset | Scenario::VersionDrop => Class::Full,
            Scenario::LengthReset | Scenario::LengthDrop => Class::Full,
            Scenario::Tls12Resumed | Scenario::Tls13Resumed => Class::Resumed,
            Scenario::Tls12CrossName | Scenario::Tls13CrossName => Class::Resumed,
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

    /// Whether the server takes its ticket.
    pub(super) const fn resumes(self) -> bool {
        matches!(self.class(), Class::Resumed | Class::ZeroRtt)
    }

    /// Whether it brings a ticket of an earlier connection.
    pub(super) const fn brings_ticket(self) -> bool {
        self.resumes() || self.crosses_names()
    }

    /// Whether that connection was to another name.
    pub(super) const fn crosses_names(self) -> bool {
        matches!(
            self,
            Scenario::Tls12CrossName | Scenario::Tls13CrossName | Scenario::Tls13CrossNameRefused
        )
    }

    /// Whether it leaves the client a session for TLS over TCP.
    pub(super) fn leaves_session(self) -> bool {
        self.class() != Class::Failed && !self.is_quic()
    }

    /// Whether it is a full handshake of TLS over TCP that a session could have spared.
    pub(super) fn could_resume(self) -> bool {
        self.class() == Class::Full && !self.is_quic() && !self.crosses_names()
    }

    pub(super) const fn think(self) -> Duration {
        match self {
            Scenario::Tls12Thinking | Scenario::Tls13Thinking => THINK,
            _ => Duration::ZERO,
        }
    }

    /// The box that it meets at first, if it does.
    pub(super) const fn meets_box(self) -> Option<Intolerance> {
        let (less, fate) = match self {
            Scenario::VersionReset => (Less::Version, Fate::Reset),
            Scenario::VersionDrop => (Less::Version, Fate::Silence),
            Scenario::LengthReset => (Less::Length, Fate::Reset),
            Scenario::LengthDrop => (Less::Length, Fate::Silence),
            _ => return None,
        };
        Some(Intolerance { less, fate })
    }

    /// What the client offers at first, before a box has shown what it does not tolerate.
    pub(super) fn first_config(self, second: &tls::ClientConfig) -> Option<tls::ClientConfig> {
        let mut first = second.clone();
        match self.meets_box()?.less {
            Less::Version => first.versions = vec![Version::Tls12, Version::Tls13],
            // A share of 1216 bytes.
            Less::Length => first.groups.insert(0, Group::X25519MlKem768),
        }
        Some(first)
    }

    /// The version that the client offers, in its second hello where a box took the first.
    pub(super) const fn version(self) -> Version {
        match self {
            Scenario::Tls12 | Scenario::Tls12Resumed | Scenario::Tls12Thinking => Version::Tls12,
            Scenario::NoCommonVersion | Scenario::UnknownCa12 => Version::Tls12,
            Scenario::Tls12CrossName | Scenario::VersionReset | Scenario::VersionDrop => {
                Version::Tls12
            }
            _ => Version::Tls13,
        }
    }

    pub(super) fn client_config(
        self,
        library: Library,
        host: &str,
        identity: &Identity,
        stranger: &Identity,
    ) -> tls::ClientConfig {
        let signed = match self {
            Scenario::UnknownCa12 | Scenario::UnknownCa13 => stranger,
            _ => identity,
        };
        let trust = Trust::Roots(signed.roots());
        let mut config = tls::ClientConfig::new(library, host, trust);
        config.versions = vec![self.version()];
        if self == Scenario::Tls13HelloRetry {
            config.groups = vec![Group::Secp256r1, Group::X25519];
        }
        config.key_shares = 1;
        config.early_data = self.early_data();
        config
    }

    pub(super) fn server_config(self, identity: &Arc<Identity>) -> tls::ServerConfig {
        // OpenSSL resumes whatever name is asked for, unless the program looks; rustls only the same.
        let rustls = self.is_quic() || self == Scenario::Tls13CrossNameRefused;
        let library = if rustls { Library::Rustls } else { Library::OpenSsl };
        let mut config = tls::ServerConfig::new(library, Arc::clone(identity));
        config.versions = match self {
            Scenario::NoCommonVersion => vec![Version::Tls13],
            _ => vec![self.version()],
        };
        if self == Scenario::Tls13HelloRetry {
            config.groups = vec![Group::X25519];
        }
        config.max_early_data = if self.early_data() { MAX_EARLY_DATA } else { 0 };
        config
    }
}
