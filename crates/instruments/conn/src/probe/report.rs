//! What a probe found, as data: printed as JSON, read back to be compared.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::verdict::Finding;

/// The report's format; a reader refuses a newer one.
pub const REPORT_SCHEMA: u32 = 1;

/// What was found at one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of the report's form: [`REPORT_SCHEMA`].
    pub schema: u32,
    /// The host as given.
    pub host: String,
    /// The address and port that were measured; with a proxy, those of the proxy.
    pub address: SocketAddr,
    /// The steps before TLS, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_tls: Option<BeforeTls>,
    /// The name asked for in TLS.
    pub server_name: String,
    /// When the probe began, milliseconds since 1970 (UTC).
    pub at_unix_ms: u64,
    /// How the name was resolved; `None` for an address.
    pub dns: Option<Dns>,
    /// The path, as TCP saw it.
    pub path: PathReport,
    /// Whether each version of TLS and QUIC works.
    pub versions: Versions,
    /// Each way to connect.
    pub modes: Vec<ModeReport>,
    /// What a browser's hello gets, or the first that works; `None` if no handshake was completed.
    pub offer: Option<OfferReport>,
    /// The server's certificates; `None` if none was seen.
    pub certificates: Option<CertificateReport>,
    /// Connections made in all.
    pub connections: u32,
    /// The verdict on TLS over TCP; `None` if a browser's hello works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// The hellos that the verdict is made of, in order.
    #[serde(default)]
    pub tried: Vec<TryReport>,
    /// What to do about what did not work.
    pub hints: Vec<String>,
}

/// One hello and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TryReport {
    /// The number of the connection, from 1.
    pub connection: u32,
    /// What was sent.
    pub hello: String,
    /// What came back.
    pub answer: String,
}

impl Report {
    /// The report of one mode.
    #[must_use]
    pub fn mode(&self, mode: Mode) -> Option<&ModeReport> {
        self.modes.iter().find(|report| report.mode == mode)
    }
}

/// The steps between TCP's handshake and TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeTls {
    /// The proxy, as `http://HOST:PORT` or `socks5://HOST:PORT`. It resolved the server's name, and TCP's
    /// times are those of the path to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The server's port behind the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The protocol of STARTTLS: `smtp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starttls: Option<String>,
}

/// How the name was resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dns {
    /// How long it took, milliseconds; the system's cache may have helped.
    pub time_ms: f64,
    /// The addresses, in the system's order.
    pub addresses: Vec<IpAddr>,
}

/// The path to the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Median time of TCP's three-way handshake, milliseconds: one round trip; with a proxy, to the proxy.
    pub connect_ms: Option<f64>,
    /// Smallest round-trip time that TCP saw, milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Segments retransmitted, all connections together.
    pub retransmits: u32,
    /// Largest TCP segment, bytes.
    pub send_mss: Option<u32>,
}

/// Whether each protocol version works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// TLS 1.2 (ECDHE, AES-128-GCM).
    pub tls12: Verdict,
    /// TLS 1.3 over TCP.
    pub tls13: Verdict,
    /// QUIC version 1 with HTTP/3.
    pub quic: Verdict,
}

/// A way to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// TCP alone: no TLS.
    Tcp,
    /// TCP, TLS 1.2, full handshake.
    Tls12,
    /// TCP, TLS 1.2, resumed.
    Tls12Resumed,
    /// TCP, TLS 1.3, full handshake.
    Tls13,
    /// TCP, TLS 1.3, resumed.
    Tls13Resumed,
    /// TCP, TLS 1.3, resumed, with a HEAD request as early data.
    Tls13EarlyData,
    /// TCP Fast Open with a cookie, TLS 1.3, full handshake.
    FastOpen,
    /// QUIC, full handshake.
    Quic,
    /// QUIC, resumed, 0-RTT offered.
    QuicZeroRtt,
}

impl Mode {
    /// Every mode, in the order measured.
    pub const ALL: [Mode; 9] = [
        Mode::Tcp,
        Mode::Tls12,
        Mode::Tls12Resumed,
        Mode::Tls13,
        Mode::Tls13Resumed,
        Mode::Tls13EarlyData,
        Mode::FastOpen,
        Mode::Quic,
        Mode::QuicZeroRtt,
    ];

    /// A name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Mode::Tcp => "TCP",
            Mode::Tls12 => "TLS 1.2",
            Mode::Tls12Resumed => "TLS 1.2 resumed",
            Mode::Tls13 => "TLS 1.3",
            Mode::Tls13Resumed => "TLS 1.3 resumed",
            Mode::Tls13EarlyData => "TLS 1.3 early data (0-RTT)",
            Mode::FastOpen => "TLS 1.3 over TCP Fast Open",
            Mode::Quic => "QUIC",
            Mode::QuicZeroRtt => "QUIC 0-RTT",
        }
    }
}

/// Whether something works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It works; for resumption, early data and Fast Open: the server accepted it.
    Supported,
    /// The server does not do it.
    Refused {
        /// Its or the system's words.
        reason: String,
    },
    /// No answer came in time.
    TimedOut {
        /// After how long, milliseconds.
        after_ms: u64,
    },
    /// It was not tried.
    NotTested {
        /// Why it was not tried.
        reason: String,
    },
}

impl Verdict {
    /// Whether it is [`Verdict::Supported`].
    #[must_use]
    pub fn is_supported(&self) -> bool {
        *self == Verdict::Supported
    }
}

/// What was measured of one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModeReport {
    /// The way to connect.
    pub mode: Mode,
    /// Whether it works.
    pub verdict: Verdict,
    /// Time until the client may send its first request byte.
    pub ready: Option<Summary>,
    /// Time until the first response byte, where a request was sent.
    pub first_byte: Option<Summary>,
    /// Time of the steps before TLS alone: a proxy's answer, STARTTLS. `ready` and `first_byte` include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_tls: Option<Summary>,
    /// The median of `ready` in round trips of `PathReport::connect_ms`, without STARTTLS. `None` with a
    /// proxy, whose round trip to the server is not known, and below 1 ms, where the time is the machines' own.
    pub ready_round_trips: Option<f64>,
    /// The median of `first_byte` in round trips.
    pub first_byte_round_trips: Option<f64>,
    /// Whether the server asked for another key share: one more round trip.
    #[serde(default)]
    pub hello_retry_request: bool,
    /// Every connection that was counted.
    pub samples: Vec<ProbeSample>,
}

/// What one connection took. `None`: it did not come so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeSample {
    /// Start to SYN-ACK, milliseconds.
    pub connect_ms: Option<f64>,
    /// Time of the steps before TLS: a proxy's answer, STARTTLS; milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_tls_ms: Option<f64>,
    /// Start to when the first request byte may go, milliseconds.
    pub ready_ms: Option<f64>,
    /// Start to the first response byte, milliseconds.
    pub first_byte_ms: Option<f64>,
    /// The transport's smoothed round-trip time, milliseconds.
    pub rtt_ms: Option<f64>,
    /// Segments or packets sent again.
    pub retransmits: u64,
    /// CPU time on this side, milliseconds.
    pub cpu_ms: f64,
    /// Bytes of the ClientHello.
    pub client_hello_len: Option<usize>,
}

impl ProbeSample {
    /// A time since the start, in milliseconds, without the steps before TLS.
    pub(super) fn without_opening(&self, since_start: Option<f64>) -> Option<f64> {
        Some(since_start? - self.before_tls_ms.unwrap_or(0.0))
    }
}

/// A few samples in short. With so few, no more is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle one; of an even number the mean of the two in the middle. Milliseconds.
    pub median_ms: f64,
    /// Minimum, in milliseconds.
    pub min_ms: f64,
    /// Maximum, in milliseconds.
    pub max_ms: f64,
}

impl Summary {
    /// Of `values`, milliseconds; `None` if there are none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min_ms, max_ms) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        Some(Summary { median_ms: f64::midpoint(lower, upper), min_ms, max_ms })
    }
}

/// What a browser's hello negotiates (TLS 1.3 and 1.2, shares for X25519MLKEM768 and X25519, HTTP/2 and
/// HTTP/1.1), or the first hello that works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferReport {
    /// The TLS version chosen.
    pub version: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// The group of the key exchange.
    pub group: Option<String>,
    /// Whether the server asked for another key share: one more round trip.
    pub hello_retry_request: bool,
    /// The application protocol.
    pub alpn: Option<String>,
    /// Bytes of the ClientHello on the wire.
    pub client_hello_len: usize,
}

/// The chain that the server sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateReport {
    /// How many certificates were sent.
    pub count: usize,
    /// Bytes of each, the leaf first.
    pub bytes: Vec<usize>,
    /// Bytes of all.
    pub total_bytes: usize,
    /// The leaf's key: `RSA-2048`, `ECDSA P-256`.
    pub key_type: Option<String>,
    /// Whether it is trusted as asked for; `None` if no check was asked for or none came so far.
    pub trusted: Option<bool>,
    /// Why it is not trusted; `None` if it is, or no check was made.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_what_is_there() {
        assert_eq!(Summary::of(vec![]), None);
        let summary = Summary::of(vec![3.0, 1.0, 10.0, 2.0]).unwrap();
        assert_eq!((summary.median_ms, summary.min_ms, summary.max_ms), (2.5, 1.0, 10.0));
    }
}
