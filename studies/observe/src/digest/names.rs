//! What records are told apart by, and what of them is named.

use std::fmt;
use std::net::IpAddr;

use export::Prefixes;
use serde::Serialize;
use tracker::{Class, Connection, End, TlsFacts};
use wire::tls::Version;

/// A transport and the version agreed over it: a curve of its own in the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Whether it was over QUIC.
    pub quic: bool,
    /// The version agreed; `None` if the server did not get so far.
    pub version: Option<Version>,
}

impl Kind {
    /// TLS 1.2 over TCP.
    pub const TLS12: Kind = Kind { quic: false, version: Some(Version::TLS12) };
    /// TLS 1.3 over TCP.
    pub const TLS13: Kind = Kind { quic: false, version: Some(Version::TLS13) };

    pub(crate) fn of(connection: &Connection, tls: &TlsFacts) -> Kind {
        Kind { quic: connection.quic.is_some(), version: tls.version }
    }

    /// Whether the version is older than TLS 1.3 and its drafts: a full handshake then takes one round
    /// trip more before the client's data.
    #[must_use]
    pub fn is_before_tls13(self) -> bool {
        self.version.is_some_and(|version| !version.is_tls13())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{version}")?,
            None => f.write_str("no version agreed")?,
        }
        f.write_str(if self.quic { " over QUIC" } else { "" })
    }
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The longest name from outside that is kept (RFC 1035 §2.3.4 has 255 for host names).
const NAME: usize = 255;

/// A name from outside, no longer than host names may be.
pub(crate) fn bounded(name: &str) -> String {
    name.chars().take(NAME).collect()
}

/// A client's network, as `192.0.2.0/24`.
pub(crate) fn network(address: IpAddr, bits4: u8, bits6: u8) -> String {
    let networks = Prefixes::new(bits4, bits6).unwrap_or_default();
    networks.of(address.to_canonical()).to_string()
}

/// What has a name, in order, as one text: `TLS 1.3, TLS 1.2`.
pub(crate) fn set<T: fmt::Display>(values: &[T]) -> String {
    let names: Vec<String> = values.iter().take(16).map(ToString::to_string).collect();
    let more = if values.len() > 16 { ", \u{2026}" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Why a handshake failed, as far as the wire shows.
pub(crate) fn failure(connection: &Connection, tls: &TlsFacts) -> String {
    if let Some(alert) = tls.alerts.iter().find(|alert| alert.level != Some(1)) {
        let side = if alert.from_client { "client" } else { "server" };
        return format!("alert of the {side}: {}", alert_name(alert.name, alert.description));
    }
    if let Some(quic) = &connection.quic {
        if let Some(code) = quic.close_code {
            // RFC 9001 §4.8: 0x100 + n is alert n.
            return match code.checked_sub(0x100).filter(|code| *code < 0x100) {
                Some(alert) => format!("QUIC closed with alert {alert}"),
                None => format!("QUIC closed with code {code:#x}"),
            };
        }
        if quic.version_negotiation.is_some() && tls.server_hello.is_none() {
            return "QUIC version not spoken by the server".to_owned();
        }
    }
    let answered = if tls.server_hello.is_some() { "after" } else { "before" };
    let how = match connection.end {
        End::Reset => "reset",
        End::Fin => "closed",
        End::Open => "silence",
    };
    format!("{how} {answered} the ServerHello")
}

/// An alert's name, its number, or that it is encrypted.
pub(crate) fn alert_name(name: Option<&'static str>, description: Option<u8>) -> String {
    match (name, description) {
        (Some(name), _) => name.to_owned(),
        (None, Some(number)) => format!("alert {number}"),
        (None, None) => "encrypted".to_owned(),
    }
}

/// Whether the client brought a ticket or a session id in vain: the handshake was full all the same.
pub(crate) fn resumption_in_vain(tls: &TlsFacts, class: Class) -> bool {
    if class != Class::Full {
        return false;
    }
    // Of the PSK a client of both versions offers too, the server of TLS 1.2 knows nothing.
    let tls13 = tls.version.is_some_and(Version::is_tls13);
    if tls13 {
        return tls.psk_offered;
    }
    let offers13 = tls.versions_offered.iter().any(|version| version.is_tls13());
    // A client of TLS 1.3 sends a session id for looks (RFC 8446 §4.1.2).
    tls.ticket_offered.is_some_and(|bytes| bytes > 0) || (!offers13 && tls.session_id_offered > 0)
}

/// Whether the client would have spoken TLS 1.3.
pub(crate) fn offers_tls13(tls: &TlsFacts) -> bool {
    tls.versions_offered.iter().any(|version| version.is_tls13())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_cut_where_asked() {
        let v4 = "192.0.2.77".parse().unwrap();
        let v6 = "2001:db8:1:2::3".parse().unwrap();
        assert_eq!(network(v4, 24, 48), "192.0.2.0/24");
        assert_eq!(network(v4, 0, 48), "0.0.0.0/0");
        assert_eq!(network(v4, 32, 48), "192.0.2.77/32");
        assert_eq!(network(v6, 24, 48), "2001:db8:1::/48");
        assert_eq!(network(v6, 24, 0), "::/0");
        assert_eq!(network(v6, 24, 128), "2001:db8:1:2::3/128");
        assert_eq!(network("::ffff:192.0.2.77".parse().unwrap(), 24, 48), "192.0.2.0/24");
    }
}
