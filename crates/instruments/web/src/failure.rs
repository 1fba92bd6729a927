//! How a connection or an exchange fails, and whose fault it is.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Protocol;

/// Why a connection or an exchange failed.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The plan contradicts itself.
    #[error("wrong plan: {0}")]
    Plan(String),
    /// The protocol, or the library that has it, cannot do what the plan asks for.
    #[error("{protocol} does not have {what}")]
    Unsupported {
        /// The protocol asked.
        protocol: Protocol,
        /// What it lacks.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// It took too long.
    #[error("{during}: given up after {after:?}")]
    TimedOut {
        /// What was being done.
        during: &'static str,
        /// How long it was given.
        after: Duration,
    },
    /// TCP, TLS or QUIC failed.
    #[error(transparent)]
    Transport(#[from] conn::Failure),
    /// The server chose a protocol that was not offered, or none.
    #[error("the server chose the application protocol {0}, which was not offered")]
    Alpn(String),
    /// A message or frame breaks the rules of HTTP.
    #[error("{protocol}: {detail}")]
    Http {
        /// The version of HTTP that was spoken.
        protocol: Protocol,
        /// The library's words.
        detail: String,
        /// Whether the peer broke them.
        peer: bool,
    },
    /// One stream was reset; its connection may go on.
    #[error("the {} reset the stream: {code}", side(*.peer))]
    StreamReset {
        /// The error's code by its name (RFC 9113 §7, RFC 9114 §8.1, SPDY draft 3.1 §2.6.3).
        code: String,
        /// Whether the peer did.
        peer: bool,
    },
    /// The connection ended before the exchange did.
    #[error("the connection ended while {during}: {detail}")]
    Broken {
        /// What was being done.
        during: &'static str,
        /// How it ended.
        detail: String,
    },
    /// HTTP/1.1 carries one exchange at a time, and one is under way.
    #[error("the connection carries another exchange")]
    Busy,
    /// A message is larger than the settings allow.
    #[error("{0}")]
    TooLarge(&'static str),
}

fn side(peer: bool) -> &'static str {
    if peer { "peer" } else { "own side" }
}

impl Failure {
    /// A short, stable name for a sample: `timed-out`, `reset`, ...
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Failure::Plan(_) => "plan",
            Failure::Unsupported { .. } => "unsupported",
            Failure::TimedOut { .. } => "timed-out",
            Failure::Transport(failure) => failure.name(),
            Failure::Alpn(_) => "alpn",
            Failure::Http { .. } => "http",
            Failure::StreamReset { .. } => "stream-reset",
            Failure::Broken { .. } => "broken",
            Failure::Busy => "busy",
            Failure::TooLarge(_) => "too-large",
        }
    }

    /// An error of a system call, or one of rustls that tokio-rustls wrapped into it.
    pub(crate) fn from_io(call: &'static str, during: &'static str, error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(error) = inner {
            return conn::Failure::Tls(tls::direct::error(error.clone())).into();
        }
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<tls::Error>());
        if let Some(error) = inner {
            return conn::Failure::Tls(error.clone()).into();
        }
        if error.get_ref().is_some_and(|inner| inner.is::<sslmtcp::Error>()) {
            return conn::user_tcp::io(during, error).into();
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Failure::Broken { during, detail: "the peer closed it".to_owned() };
        }
        conn::Failure::from_io(call, during, error).into()
    }

    /// The same on a connection that carries HTTP already: that the peer is gone ends an exchange. h2 keeps
    /// the kind of an error, and not its number.
    pub(crate) fn under_way(call: &'static str, during: &'static str, error: &io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match error.kind() {
            ConnectionReset | BrokenPipe | ConnectionAborted => {
                Failure::Broken { during, detail: error.to_string() }
            }
            _ => Failure::from_io(call, during, error),
        }
    }

    pub(crate) fn from_h2(error: &h2::Error, during: &'static str) -> Self {
        if let Some(error) = error.get_io() {
            return Failure::under_way("h2", during, error);
        }
        let code = || error.reason().map_or_else(|| error.to_string(), |code| format!("{code:?}"));
        if error.is_reset() {
            return Failure::StreamReset { code: code(), peer: error.is_remote() };
        }
        if error.is_go_away() && error.is_remote() {
            return Failure::Broken {
                during,
                detail: format!("the peer sent GOAWAY ({})", code()),
            };
        }
        Failure::Http {
            protocol: Protocol::Http2,
            detail: error.to_string(),
            peer: error.is_remote() || error.is_library(),
        }
    }

    pub(crate) fn from_hyper(
        error: &hyper::Error,
        protocol: Protocol,
        during: &'static str,
    ) -> Self {
        let source = std::error::Error::source(error);
        if let Some(error) = source.and_then(|error| error.downcast_ref::<io::Error>()) {
            return Failure::under_way("hyper", during, error);
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Failure::Broken { during, detail: error.to_string() };
        }
        if error.is_parse_too_large() {
            return Failure::TooLarge("the head is larger than the settings allow");
        }
        Failure::Http { protocol, detail: error.to_string(), peer: error.is_parse() }
    }
}

impl Explain for Failure {
    fn fault(&self) -> Fault {
        match self {
            Failure::Plan(_) | Failure::Unsupported { .. } | Failure::Busy => Fault::Caller,
            Failure::TimedOut { .. } => Fault::Machine,
            Failure::Transport(failure) => failure.fault(),
            Failure::StreamReset { peer, .. } | Failure::Http { peer, .. } => {
                if *peer {
                    Fault::Peer
                } else {
                    Fault::Machine
                }
            }
            Failure::Alpn(_) | Failure::Broken { .. } | Failure::TooLarge(_) => Fault::Peer,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Failure::Unsupported { remedy, .. } => Some((*remedy).into()),
            Failure::Transport(failure) => failure.remedy(),
            Failure::Busy => Some("wait until it ends, or use another connection".into()),
            Failure::TooLarge(_) => Some(
                "raise Settings::max_header_list, or PushLimits::bytes for what is pushed".into(),
            ),
            _ => None,
        }
    }
}
