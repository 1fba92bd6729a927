//! Failures, kept as data: what went wrong, at which stage, how often.

use std::collections::BTreeMap;
use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::h2::{Violation, code};
use crate::http::Malformed;

/// How far a connection was when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The socket and its connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// From the request to the end of the response.
    Response,
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nobody listens at the port.
    Refused,
    /// No route, or a router said no.
    Unreachable,
    /// The server reset the connection.
    Reset,
    /// The server ended the connection before the response was whole.
    ClosedEarly,
    /// It took longer than the timeout.
    Timeout,
    /// The server sent a fatal TLS alert.
    Alert,
    /// The server's certificate is not valid.
    Certificate,
    /// The server refused the client's certificate, or that there was none.
    ClientCertificate,
    /// What the server sent breaks TLS, or nothing is in common.
    Protocol,
    /// What the server sent breaks HTTP/2, it speaks none, or it ended the connection with an error.
    Http2,
    /// The server reset the stream of a request (HTTP/2).
    StreamReset,
    /// The response's status is not 2xx or 3xx.
    Status,
    /// The response is no HTTP/1.x.
    Response,
    /// This machine has no local port left for this server.
    NoPort,
    /// This process may open no more files.
    NoDescriptor,
    /// Something else that this machine could not do.
    System,
}

impl Kind {
    /// What it is called in the report.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Kind::Refused => "connection refused",
            Kind::Unreachable => "unreachable",
            Kind::Reset => "connection reset",
            Kind::ClosedEarly => "closed early",
            Kind::Timeout => "timed out",
            Kind::Alert => "TLS alert",
            Kind::Certificate => "certificate not valid",
            Kind::ClientCertificate => "client certificate refused",
            Kind::Protocol => "TLS protocol",
            Kind::Http2 => "HTTP/2",
            Kind::StreamReset => "stream reset",
            Kind::Status => "HTTP status",
            Kind::Response => "malformed response",
            Kind::NoPort => "no local port left",
            Kind::NoDescriptor => "no file descriptor left",
            Kind::System => "this machine",
        }
    }
}

/// Why a connection failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
}

/// Detail of a server that answers in something else than TLS.
pub const NOT_TLS: &str = "the server's bytes are no record of TLS";

impl Failure {
    pub(crate) fn new(kind: Kind, detail: impl fmt::Display) -> Failure {
        Failure { kind, detail: detail.to_string() }
    }

    pub(crate) fn of_errno(errno: Errno) -> Failure {
        let kind = match errno {
            Errno::CONNREFUSED => Kind::Refused,
            Errno::HOSTUNREACH | Errno::NETUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => {
                Kind::Unreachable
            }
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Kind::Reset,
            Errno::TIMEDOUT => Kind::Timeout,
            Errno::ADDRNOTAVAIL => Kind::NoPort,
            Errno::MFILE | Errno::NFILE => Kind::NoDescriptor,
            _ => Kind::System,
        };
        Failure::new(kind, std::io::Error::from(errno))
    }

    /// An error of TLS; `asked` if the server has asked for a certificate before.
    pub(crate) fn of_tls(error: &rustls::Error, asked: bool) -> Failure {
        use rustls::Error as E;
        match error {
            E::AlertReceived(alert) => {
                let kind = match asked && is_of_certificates(u8::from(*alert)) {
                    true => Kind::ClientCertificate,
                    false => Kind::Alert,
                };
                match alert.as_str() {
                    Some(name) => Failure::new(kind, name),
                    None => Failure::new(kind, format!("number {}", u8::from(*alert))),
                }
            }
            E::InvalidCertificate(cause) => Failure::new(Kind::Certificate, cause),
            E::NoCertificatesPresented => Failure::new(Kind::Certificate, error),
            E::General(_) | E::FailedToGetCurrentTime | E::FailedToGetRandomBytes => {
                Failure::new(Kind::System, error)
            }
            E::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
                Failure::new(Kind::Protocol, NOT_TLS)
            }
            _ => Failure::new(Kind::Protocol, error),
        }
    }
}

/// Whether a server that has asked for a certificate may mean it by this alert (RFC 8446 §6.2, RFC 5246 §7.2.2).
fn is_of_certificates(alert: u8) -> bool {
    // handshake_failure, no_certificate to unknown_ca, access_denied, decrypt_error, certificate_required.
    matches!(alert, 40..=46 | 48 | 49 | 51 | 116)
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Failure {
        let name = code::name(violation.code).unwrap_or("an unknown error");
        Failure::new(Kind::Http2, format!("{} ({name})", violation.text))
    }
}

impl From<Malformed> for Failure {
    fn from(malformed: Malformed) -> Failure {
        Failure::new(Kind::Response, malformed)
    }
}

/// A kind of failure and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// How far the connections were.
    pub stage: Stage,
    /// What went wrong.
    pub kind: Kind,
    /// More of it, in words.
    pub detail: String,
    /// How many connections failed so.
    pub count: u64,
}

impl Kind {
    /// Whether more connections will fail likewise: not where the server may only be busy, or this machine.
    pub(crate) fn is_lasting(self, detail: &str) -> bool {
        match self {
            Kind::Timeout | Kind::NoPort | Kind::NoDescriptor | Kind::System => false,
            // RFC 9110 §15.5.9, RFC 6585 §4, RFC 9110 §15.6.
            Kind::Status => !detail.starts_with('5') && !["408", "429"].contains(&detail),
            _ => true,
        }
    }
}

/// Whether all failures of a worker are alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Alike {
    /// There is none.
    #[default]
    Nothing,
    /// All are this one.
    All(Stage, Kind, String),
    /// They differ.
    Mixed,
}

impl Alike {
    /// Takes another failure in.
    pub(crate) fn add(&mut self, stage: Stage, failure: &Failure) {
        match self {
            Alike::Nothing => *self = Alike::All(stage, failure.kind, failure.detail.clone()),
            Alike::All(one, kind, detail)
                if *one == stage
                    && (are_ends(*kind, failure.kind)
                        || (*kind == failure.kind && *detail == failure.detail)) => {}
            _ => *self = Alike::Mixed,
        }
    }

    /// Takes another worker's in.
    pub(crate) fn merge(self, other: Alike) -> Alike {
        match (self, other) {
            (Alike::Nothing, one) | (one, Alike::Nothing) => one,
            (one, other) if one == other => one,
            (Alike::All(stage, kind, detail), Alike::All(other_stage, other, _))
                if stage == other_stage && are_ends(kind, other) =>
            {
                Alike::All(stage, kind, detail)
            }
            _ => Alike::Mixed,
        }
    }
}

/// Whether both are ends that the server made: whether data was left unread decides which of them comes.
fn are_ends(one: Kind, other: Kind) -> bool {
    let is_end = |kind| matches!(kind, Kind::Reset | Kind::ClosedEarly);
    is_end(one) && is_end(other)
}

/// Different failures that are told apart; the server writes some of the words.
const DISTINCT: usize = 64;

/// All failures of a worker, or of a run.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    counts: BTreeMap<(Stage, Kind, String), u64>,
    total: u64,
}

impl Failures {
    pub(crate) fn add(&mut self, stage: Stage, failure: Failure) {
        self.add_many(stage, failure.kind, failure.detail, 1);
    }

    fn add_many(&mut self, stage: Stage, kind: Kind, detail: String, count: u64) {
        self.total += count;
        let key = (stage, kind, detail);
        if let Some(known) = self.counts.get_mut(&key) {
            *known += count;
        } else if self.counts.len() < DISTINCT {
            self.counts.insert(key, count);
        } else {
            // At most as many more as there are stages and kinds.
            *self.counts.entry((stage, kind, "other".to_owned())).or_default() += count;
        }
    }

    pub(crate) fn merge(&mut self, other: Failures) {
        for ((stage, kind, detail), count) in other.counts {
            self.add_many(stage, kind, detail, count);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The most frequent first.
    pub(crate) fn list(self) -> Vec<FailureCount> {
        let mut list: Vec<FailureCount> = self
            .counts
            .into_iter()
            .map(|((stage, kind, detail), count)| FailureCount { stage, kind, detail, count })
            .collect();
        list.sort_by_key(|failure| std::cmp::Reverse(failure.count));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_apart_and_bounded() {
        let mut all = Failures::default();
        for number in 0..1000 {
            all.add(Stage::Connect, Failure::of_errno(Errno::CONNREFUSED));
            all.add(Stage::Response, Failure::new(Kind::Status, number));
        }
        let mut both = Failures::default();
        both.add(Stage::Tls, Failure::of_errno(Errno::CONNRESET));
        both.merge(all);
        assert_eq!(both.total(), 2001);
        let list = both.list();
        assert!(list.len() <= DISTINCT + 48);
        assert_eq!(list.iter().map(|failure| failure.count).sum::<u64>(), 2001);
        assert_eq!((list[0].kind, list[0].count), (Kind::Refused, 1000));
    }

    #[test]
    fn failures_that_are_all_one_are_known() {
        let refused = Failure::of_errno(Errno::CONNREFUSED);
        let mut one = Alike::default();
        one.add(Stage::Connect, &refused);
        one.add(Stage::Connect, &refused);
        assert!(matches!(one, Alike::All(Stage::Connect, Kind::Refused, _)));
        assert_eq!(one.clone().merge(Alike::Nothing), one);
        assert_eq!(one.clone().merge(one.clone()), one);
        let mut other = Alike::default();
        other.add(Stage::Connect, &Failure::of_errno(Errno::CONNRESET));
        assert_eq!(one.clone().merge(other), Alike::Mixed);
        one.add(Stage::Tls, &refused);
        assert_eq!(one, Alike::Mixed);
        // The server closes: with unread data it resets.
        let (mut ends, mut resets) = (Alike::default(), Alike::default());
        ends.add(Stage::Tls, &Failure::new(Kind::ClosedEarly, "closed"));
        ends.add(Stage::Tls, &Failure::of_errno(Errno::CONNRESET));
        resets.add(Stage::Tls, &Failure::of_errno(Errno::CONNRESET));
        assert!(matches!(ends.merge(resets), Alike::All(Stage::Tls, Kind::ClosedEarly, _)));
    }
}
