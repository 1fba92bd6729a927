//! Why a page could not be loaded at all.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why a page could not be loaded at all. An object that fails is no error: it is in
/// [`page::Loaded`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A TLS library refused what was asked of it.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// The server or the client cannot be set up so.
    #[error(transparent)]
    Web(#[from] web::Failure),
    /// Our own TCP could not be had on a node.
    #[error("our TCP could not be opened on node {node}: {source}")]
    UserTcp {
        /// Name of the lab node.
        node: String,
        /// What went wrong.
        source: tcpio::Error,
    },
    /// The name server or the resolver has no socket.
    #[error("names: {call} failed: {source}")]
    Names {
        /// The system call.
        call: &'static str,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The download beside the page failed.
    #[error("the cross traffic failed: {source}")]
    CrossTraffic {
        /// What went wrong.
        source: std::io::Error,
    },
    /// A page has more hosts than a lane has addresses.
    #[error("the page has {hosts} hosts, a lane has {most} addresses")]
    TooManyHosts {
        /// Hosts of the page.
        hosts: usize,
        /// Hosts that a lane has addresses for.
        most: usize,
    },
    /// Chromium could not be started, or did not load the page.
    #[error(transparent)]
    Chromium(#[from] chromium::Error),
    /// What Chromium cannot do.
    #[error("Chromium cannot {0}")]
    NotByChromium(&'static str),
    /// A host of the page has a name that no certificate and no DNS can carry.
    #[error("`{0}` is not a host name")]
    HostName(String),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Lab(error) => error.fault(),
            Error::Web(error) => error.fault(),
            Error::Chromium(error) => error.fault(),
            Error::Tls(_)
            | Error::UserTcp { .. }
            | Error::Names { .. }
            | Error::CrossTraffic { .. } => Fault::Measurement,
            Error::NotByChromium(_) | Error::TooManyHosts { .. } | Error::HostName(_) => {
                Fault::Caller
            }
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Lab(error) => error.remedy(),
            Error::Web(error) => error.remedy(),
            Error::Chromium(error) => error.remedy(),
            Error::NotByChromium(_) => Some("use Wiretax's own loader".into()),
            Error::TooManyHosts { .. } => Some("leave hosts out of the page".into()),
            Error::HostName(_) => Some("correct the name in the page".into()),
            Error::Tls(_)
            | Error::UserTcp { .. }
            | Error::Names { .. }
            | Error::CrossTraffic { .. } => None,
        }
    }
}
