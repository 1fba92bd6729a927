//! What can go wrong, whose fault it is and what to do.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::CarrierError;

/// Why there is no connection, or no more of it.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// TLS failed; the inner error says whose fault it is.
    #[error(transparent)]
    Tls(tls::Error),
    /// Its envelope is none, or its stream was cut off.
    #[error(transparent)]
    Carrier(CarrierError),
    /// The stack cannot listen or connect.
    #[error("{0}")]
    Stack(std::sync::Arc<tcpio::Error>),
    /// TCP failed: refused, reset or timed out.
    #[error("while {during}: {detail}")]
    Tcp {
        /// What was being done.
        during: &'static str,
        /// The kind, as the system's TCP has it.
        kind: io::ErrorKind,
        /// The stack's words.
        detail: String,
    },
    /// No answer within the time given.
    #[error("no TLS connection within {after:?}")]
    TimedOut {
        /// The time given.
        after: Duration,
    },
    /// The listener has ended with its stack.
    #[error("the listener has ended with its stack")]
    Ended,
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Tls(error) => error.fault(),
            Error::Carrier(error) => error.fault(),
            Error::Stack(error) => error.fault(),
            Error::Tcp { .. } | Error::TimedOut { .. } => Fault::Peer,
            Error::Ended => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Tls(error) => error.remedy(),
            Error::Carrier(error) => error.remedy(),
            Error::Stack(error) => error.remedy(),
            Error::TimedOut { .. } => {
                Some("check whether the server is busy, or the path lossy".into())
            }
            Error::Tcp { .. } | Error::Ended => None,
        }
    }
}

impl Error {
    pub(crate) fn tcp(during: &'static str, error: &io::Error) -> Self {
        Error::Tcp { during, kind: error.kind(), detail: error.to_string() }
    }
}

impl From<CarrierError> for Error {
    fn from(error: CarrierError) -> Self {
        match error {
            CarrierError::Tls(error) => Error::Tls(error),
            other => Error::Carrier(other),
        }
    }
}

impl From<tls::Error> for Error {
    fn from(error: tls::Error) -> Self {
        Error::Tls(error)
    }
}

impl From<tcpio::Error> for Error {
    fn from(error: tcpio::Error) -> Self {
        Error::Stack(std::sync::Arc::new(error))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Tcp { kind, .. } => *kind,
            Error::TimedOut { .. } => io::ErrorKind::TimedOut,
            // As rustls and OpenSSL's own streams have it.
            Error::Carrier(CarrierError::Truncated) => io::ErrorKind::UnexpectedEof,
            Error::Tls(tls::Error::Caller(_)) => io::ErrorKind::InvalidInput,
            Error::Tls(_) | Error::Carrier(_) => io::ErrorKind::InvalidData,
            Error::Ended => io::ErrorKind::NotConnected,
            Error::Stack(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
