//! How a connection fails, and whose fault it is.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Timeline;

/// Why there is no [`crate::Outcome`].
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum Failure {
    /// Given up after the plan's timeout. A study keeps it as a censored sample.
    #[error("no answer within {after:?}")]
    TimedOut {
        /// The plan's timeout.
        after: Duration,
        /// The steps that were reached.
        timeline: Box<Timeline>,
    },
    /// The peer's machine refused the connection (RST to the SYN, or port unreachable).
    #[error(
        "connection refused: nothing listens at that address and port, or a firewall rejects it"
    )]
    Refused,
    /// The peer broke the connection off.
    #[error("the peer reset the connection while {during}")]
    Reset {
        /// What was being done.
        during: &'static str,
    },
    /// No route, or the network said that the host cannot be reached.
    #[error("the host cannot be reached ({detail})")]
    Unreachable {
        /// The system's words.
        detail: String,
    },
    /// TLS failed; the inner error says whose fault it is.
    #[error("{}", of_tls(.0))]
    Tls(#[from] tls::Error),
    /// The proxy made no connection.
    #[error("{0}")]
    Proxy(#[from] starttls::proxy::Error),
    /// The server did not change to TLS.
    #[error("{0}")]
    Starttls(#[from] starttls::Error),
    /// QUIC failed by its own rules.
    #[error("QUIC: {detail}")]
    Quic {
        /// What quinn says of it.
        detail: String,
        /// Whether the peer said so (CONNECTION_CLOSE from it, a wrong packet of it).
        peer: bool,
    },
    /// The peer did not keep to the request and response agreed.
    #[error("the peer {0}")]
    Protocol(&'static str),
    /// The plan contradicts itself.
    #[error("wrong plan: {0}")]
    Plan(String),
    /// This machine could not do what was asked.
    #[error("{call} failed: {error} (errno {errno})")]
    Environment {
        /// The system call or step.
        call: &'static str,
        /// Its error number; 0 if there is none.
        errno: i32,
        /// The system's words.
        error: String,
    },
}

impl Explain for Failure {
    fn fault(&self) -> Fault {
        match self {
            Failure::Refused | Failure::Reset { .. } | Failure::Protocol(_) => Fault::Peer,
            Failure::Quic { peer: true, .. } => Fault::Peer,
            Failure::Tls(error) => error.fault(),
            Failure::Proxy(error) => error.fault(),
            Failure::Starttls(error) => error.fault(),
            Failure::Plan(_) => Fault::Caller,
            Failure::TimedOut { .. }
            | Failure::Unreachable { .. }
            | Failure::Quic { peer: false, .. }
            | Failure::Environment { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Failure::Unreachable { .. } => {
                Some("check the route, the firewall and the cable".into())
            }
            Failure::Tls(error) => error.remedy(),
            Failure::Proxy(error) => error.remedy(),
            Failure::Starttls(error) => error.remedy(),
            Failure::Environment { errno, .. } => remedy(*errno).map(Cow::Borrowed),
            _ => None,
        }
    }
}

impl Failure {
    /// A short, stable name for a sample: `timed-out`, `refused`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Failure::TimedOut { .. } => "timed-out",
            Failure::Refused => "refused",
            Failure::Reset { .. } => "reset",
            Failure::Unreachable { .. } => "unreachable",
            Failure::Tls(tls::Error::Certificate(_)) => "certificate",
            Failure::Tls(_) => "tls",
            Failure::Proxy(_) => "proxy",
            Failure::Starttls(_) => "starttls",
            Failure::Quic { .. } => "quic",
            Failure::Protocol(_) => "protocol",
            Failure::Plan(_) => "plan",
            Failure::Environment { .. } => "environment",
        }
    }

    /// What an error of a system call on a connection means.
    #[must_use]
    pub fn from_io(call: &'static str, during: &'static str, error: &io::Error) -> Self {
        match error.raw_os_error().unwrap_or(0) {
            libc::ECONNREFUSED => Failure::Refused,
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Failure::Reset { during },
            libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN | libc::ETIMEDOUT => {
                Failure::Unreachable { detail: error.to_string() }
            }
            errno => Failure::Environment { call, errno, error: error.to_string() },
        }
    }
}

/// An error of TLS. A sentence about the peer needs no heading.
fn of_tls(error: &tls::Error) -> String {
    match error {
        tls::Error::Peer(peer) => peer.to_string(),
        other => format!("TLS: {other}"),
    }
}

/// What to do about an error of the machine.
fn remedy(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EMFILE | libc::ENFILE => "raise the limit of open files (ulimit -n)",
        libc::EACCES | libc::EPERM => {
            "look for a firewall rule, a security module or a privileged port that forbids it"
        }
        libc::EADDRINUSE => "choose another port: another program listens there",
        libc::EADDRNOTAVAIL => {
            "check whether an interface of this network namespace has the address and its ports are \
             not used up"
        }
        libc::EAFNOSUPPORT => "check whether this kernel has the address family (is IPv6 off?)",
        libc::ENOPROTOOPT | libc::EOPNOTSUPP => "use a kernel that has the option",
        libc::ENOBUFS | libc::ENOMEM => "give the machine more memory",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_say_whose_fault_they_are() {
        for (errno, name, fault) in [
            (libc::ECONNREFUSED, "refused", Fault::Peer),
            (libc::ECONNRESET, "reset", Fault::Peer),
            (libc::EPIPE, "reset", Fault::Peer),
            (libc::ENETUNREACH, "unreachable", Fault::Machine),
            (libc::EMFILE, "environment", Fault::Machine),
        ] {
            let error = io::Error::from_raw_os_error(errno);
            let failure = Failure::from_io("connect", "connecting", &error);
            assert_eq!((failure.name(), failure.fault()), (name, fault), "{failure}");
        }
    }

    #[test]
    fn an_alert_is_a_sentence() {
        let alert = tls::PeerError::Alert { code: 40, name: "handshake_failure" };
        let failure = Failure::Tls(alert.into());
        assert_eq!(failure.to_string(), "the peer refused: alert handshake_failure (40)");
    }

    #[test]
    fn an_environment_failure_has_errno_and_remedy() {
        let error = io::Error::from_raw_os_error(libc::EMFILE);
        let failure = Failure::from_io("socket", "connecting", &error);
        assert!(failure.to_string().contains("errno 24"), "{failure}");
        assert!(failure.remedy().is_some_and(|remedy| remedy.contains("ulimit -n")), "{failure}");
    }
}
