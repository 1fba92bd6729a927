//! How a proxy fails.

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::error::after_colon;

/// Why a proxy made no connection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's name cannot be given to the proxy.
    #[error("the proxy cannot be asked for such a host")]
    Target,
    /// The proxy asks for user and password, and none were given.
    #[error("the proxy asks for user and password{}", after_colon(.reply))]
    NeedsCredentials {
        /// Its words.
        reply: String,
    },
    /// User and password are wrong.
    #[error("the proxy refuses user and password{}", after_colon(.reply))]
    WrongCredentials {
        /// Its words.
        reply: String,
    },
    /// The proxy's rules forbid the connection.
    #[error("the proxy does not allow this host and port{}", after_colon(.reply))]
    Forbidden {
        /// Its words.
        reply: String,
    },
    /// The proxy knows no CONNECT.
    #[error("the proxy does not know CONNECT{}", after_colon(.reply))]
    NoConnect {
        /// Its words.
        reply: String,
    },
    /// The proxy could not reach the server, or does not know its name.
    #[error("the proxy cannot reach the server{}", after_colon(.reply))]
    Unreachable {
        /// Its words.
        reply: String,
    },
    /// The server did not answer the proxy in time.
    #[error("the proxy waited too long for the server{}", after_colon(.reply))]
    TimedOut {
        /// Its words.
        reply: String,
    },
    /// Any other refusal.
    #[error("the proxy refuses the connection{}", after_colon(.reply))]
    Refused {
        /// Its words.
        reply: String,
    },
    /// The answer is not that of such a proxy.
    #[error("the answer is not that of {expected}: `{got}`")]
    Malformed {
        /// The proxy that was expected.
        expected: &'static str,
        /// The first bytes of the answer.
        got: String,
    },
    /// More than [`crate::MAX_INPUT`] bytes.
    #[error("the proxy's answer is longer than {} KiB", crate::MAX_INPUT >> 10)]
    TooMuch,
    /// The proxy closed the connection.
    #[error("the proxy closed the connection before it answered")]
    Closed,
    /// The proxy was silent.
    #[error("the proxy did not answer within {after:?}")]
    Silent {
        /// For how long.
        after: Duration,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Target | Error::NeedsCredentials { .. } | Error::WrongCredentials { .. } => {
                Fault::Caller
            }
            _ => Fault::Peer,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::NeedsCredentials { .. } => "write `USER:PASSWORD@` before the proxy's host",
            Error::WrongCredentials { .. } => {
                "check user and password; write `@`, `:` and `%` in them as `%40`, `%3A` and `%25`"
            }
            Error::Forbidden { .. } => "allow it at the proxy; many allow port 443 only",
            Error::Malformed { .. }
            | Error::NoConnect { .. }
            | Error::Closed
            | Error::Silent { .. } => {
                "check the proxy's port, and whether it is http:// or socks5://"
            }
            Error::Unreachable { .. } | Error::TimedOut { .. } | Error::Refused { .. } => {
                "check the server's name and port, and the proxy's route"
            }
            _ => return None,
        };
        Some(remedy.into())
    }
}
