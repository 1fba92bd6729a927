//! Failures, kept as data: what went wrong, at which stage, how often.

use std::collections::BTreeMap;
use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

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
    /// What the server sent breaks TLS, or nothing is in common.
    Protocol,
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
            Kind::Protocol => "TLS protocol",
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

    pub(crate) fn of_tls(error: &rustls::Error) -> Failure {
        use rustls::Error as E;
        match error {
            E::AlertReceived(alert) => match alert.as_str() {
                Some(name) => Failure::new(Kind::Alert, name),
                None => Failure::new(Kind::Alert, format!("number {}", u8::from(*alert))),
            },
            E::InvalidCertificate(cause) => Failure::new(Kind::Certificate, cause),
            E::NoCertificatesPresented => Failure::new(Kind::Certificate, error),
            E::General(_) | E::FailedToGetCurrentTime | E::FailedToGetRandomBytes => {
                Failure::new(Kind::System, error)
            }
            _ => Failure::new(Kind::Protocol, error),
        }
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
        assert!(list.len() <= DISTINCT + 39);
        assert_eq!(list.iter().map(|failure| failure.count).sum::<u64>(), 2001);
        assert_eq!((list[0].kind, list[0].count), (Kind::Refused, 1000));
    }
}
