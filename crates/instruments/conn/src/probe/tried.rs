//! Tries at a server, and its answers.

use std::fmt;

use tls::{CipherSuite, NamedGroup, ServerChoice, Version, WireVersion};

use super::speaker::Speaker;

/// The kind of hello that a try sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hello {
    /// None: TCP alone.
    Tcp,
    /// As browsers send it: TLS 1.3 and 1.2, key shares for X25519MLKEM768 and X25519.
    Browser,
    /// The same without post-quantum groups: it fits one segment.
    Small,
    /// TLS 1.2 only.
    Tls12,
    /// As [`Hello::Small`], without a server name.
    Nameless,
    /// As browsers, with their older suites (CBC, RSA key exchange), and small.
    Compatible,
    /// All that OpenSSL has, from TLS 1.0 on.
    Everything,
    /// All that IANA has registered, from SSL 3.0 to TLS 1.2; the handshake is not completed.
    Old,
    /// The hello of the measured connections.
    Measured(Version),
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hello::Tcp => "TCP alone",
            Hello::Browser => "a browser's hello",
            Hello::Small => "a small hello",
            Hello::Tls12 => "a hello of TLS 1.2",
            Hello::Nameless => "a hello without a name",
            Hello::Compatible => "a hello with browsers' older suites",
            Hello::Everything => "a hello with everything",
            Hello::Old => "a hello with obsolete suites",
            Hello::Measured(Version::Tls12) => "measured TLS 1.2",
            Hello::Measured(Version::Tls13) => "measured TLS 1.3",
        })
    }
}

/// Outcome of a negotiation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The version.
    pub version: WireVersion,
    /// The cipher suite.
    pub cipher_suite: CipherSuite,
    /// The group, where it is known.
    pub group: Option<NamedGroup>,
    /// Whether the server asked for another key share.
    pub hello_retry_request: bool,
    /// The key of the server's certificate, where it is known: `RSA-2048`.
    pub key: Option<String>,
    /// Bytes of the server's certificates.
    pub chain_bytes: usize,
}

impl Negotiated {
    /// Returns a server's choice, without a certificate.
    #[must_use]
    pub fn of(choice: ServerChoice) -> Self {
        Negotiated {
            version: choice.version,
            cipher_suite: choice.cipher_suite,
            group: choice.group,
            hello_retry_request: choice.hello_retry_request,
            key: None,
            chain_bytes: 0,
        }
    }
}

/// How a connection ended that nobody explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By FIN.
    Closed,
    /// By RST.
    Reset,
    /// The connection was refused.
    Refused,
    /// Nothing came in time.
    TimedOut,
}

impl End {
    /// The verb of a sentence whose subject is the server.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            End::Closed => "closes the connection",
            End::Reset => "resets the connection",
            End::Refused => "refuses the connection",
            End::TimedOut => "does not answer",
        }
    }
}

/// A server's answer to one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The connection, or the handshake, was completed.
    Completed(Option<Negotiated>),
    /// A ServerHello came, and this side went no further.
    Chose(Negotiated),
    /// A fatal alert came.
    Alert {
        /// Its code (IANA TLS Alerts).
        code: u8,
        /// Whether the server had asked for a client certificate.
        asked: bool,
    },
    /// The connection ended without an alert.
    Ended {
        /// How it ended.
        how: End,
        /// Whether TLS had come from the server before.
        after_tls: bool,
        /// Whether the server had asked for a client certificate.
        asked: bool,
    },
    /// Bytes came that are not TLS.
    Spoke(Speaker),
    /// A handshake message came that is longer than clients take.
    LongMessage,
    /// TLS came that this side cannot accept.
    Broken(String),
    /// This side failed: the server is not to blame.
    Untried(String),
}

impl Answer {
    /// Whether the handshake (or the TCP connection) was completed.
    #[must_use]
    pub const fn is_completed(&self) -> bool {
        matches!(self, Answer::Completed(_))
    }

    /// Whether the server answered in TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        match self {
            Answer::Completed(negotiated) => negotiated.is_some(),
            Answer::Ended { after_tls, .. } => *after_tls,
            Answer::Chose(_) | Answer::Alert { .. } | Answer::LongMessage | Answer::Broken(_) => {
                true
            }
            Answer::Spoke(_) | Answer::Untried(_) => false,
        }
    }

    /// How the connection ended, if it did without a word.
    #[must_use]
    pub const fn end(&self) -> Option<End> {
        match self {
            Answer::Ended { how, .. } => Some(*how),
            _ => None,
        }
    }

    /// Returns the outcome of the negotiation, as far as it is known.
    #[must_use]
    pub const fn negotiated(&self) -> Option<&Negotiated> {
        match self {
            Answer::Completed(Some(negotiated)) | Answer::Chose(negotiated) => Some(negotiated),
            _ => None,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Completed(None) => f.write_str("connected"),
            Answer::Completed(Some(it)) => write!(f, "{}, {}", it.version, it.cipher_suite),
            Answer::Chose(it) => write!(f, "chose {}, {}", it.version, it.cipher_suite),
            Answer::Alert { code, .. } => write!(f, "alert {}", alert_name(*code)),
            Answer::Ended { how, .. } => f.write_str(how.verb()),
            Answer::Spoke(speaker) => write!(f, "answered in {}", speaker.title()),
            Answer::LongMessage => f.write_str("a handshake message of more than 64 KiB"),
            Answer::Broken(detail) => write!(f, "TLS that is refused here: {detail}"),
            Answer::Untried(detail) => write!(f, "not tried: {detail}"),
        }
    }
}

/// The name of a group as people write it.
#[must_use]
pub fn group_name(group: NamedGroup) -> String {
    match group.0 {
        0x001d => "X25519".to_owned(),
        0x001e => "X448".to_owned(),
        _ => group.to_string(),
    }
}

/// The registered name of an alert.
#[must_use]
pub fn alert_name(code: u8) -> String {
    let alert = wire::tls::Alert { level: 2, description: code };
    alert.name().map_or_else(|| format!("{code}"), str::to_owned)
}

/// One connection and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The number of the connection to this server, from 1.
    pub number: u32,
    /// What was sent.
    pub hello: Hello,
    /// What came back.
    pub answer: Answer,
}
