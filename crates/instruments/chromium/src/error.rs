//! Why Chromium did not do what was asked.

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use page::content::ContentError;
use thiserror::Error;

use crate::find::{NotInstalled, PACKAGE};

/// Why Chromium did not do what was asked. A page that does not come is no error: it is in
/// [`Visit`](crate::Visit).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is none.
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    /// It could not be started, or ended.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The page cannot be given to a browser.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// It does not say where DevTools listens.
    #[error("Chromium does not say where DevTools listens")]
    NoPort,
    /// The connection to DevTools failed.
    #[error("DevTools: {0}")]
    Connection(String),
    /// A message that is none of DevTools', or too large.
    #[error("DevTools: a message cannot be read: {0}")]
    Message(String),
    /// A command was refused.
    #[error("DevTools: {command} was refused: {why}")]
    Refused {
        /// The DevTools method, as `Page.navigate`.
        command: &'static str,
        /// What Chromium says.
        why: String,
    },
    /// An answer lacks what it must have.
    #[error("DevTools: the answer to {command} has no {field}")]
    NoField {
        /// The DevTools method, as `Page.navigate`.
        command: &'static str,
        /// What is missing.
        field: &'static str,
    },
    /// No answer in time.
    #[error("DevTools: no answer to {command} within {} s", limit.as_secs())]
    Late {
        /// The DevTools method, as `Page.navigate`.
        command: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NotInstalled(error) => error.fault(),
            Error::Lab(error) => error.fault(),
            Error::Content(error) => error.fault(),
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::NotInstalled(error) => error.remedy(),
            // Root does not run it: another user does, who may not look into root's folders.
            Error::Lab(lab::Error::Program { doing: "executing it", source, .. })
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Some("install it where every user may execute it, as below /usr or /opt".into())
            }
            Error::Lab(error) => error.remedy(),
            Error::Content(error) => error.remedy(),
            Error::Late { .. } => Some("load less at once, so that the machine keeps up".into()),
            _ => Some(format!("check that the program is the package {PACKAGE}'s or newer").into()),
        }
    }
}
