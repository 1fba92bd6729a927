//! Why a bed does not stand, or a run says nothing.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why a bed cannot be stood up, or a run not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such handoff.
    #[error("the scenario {name}: {problem}")]
    Scenario {
        /// The scenario's name.
        name: String,
        /// What cannot be.
        problem: &'static str,
        /// What can be instead.
        instead: &'static str,
    },
    /// The lab cannot have its nodes or links.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// What the sites are joined by.
    #[error(transparent)]
    Core(#[from] l2vpn::Error),
    /// A daemon could not be started, or did not do what it was told.
    #[error(transparent)]
    Daemon(#[from] daemons::Error),
    /// Certificates cannot be made.
    #[error("making certificates for WPA2-Enterprise")]
    Certificates(#[from] rcgen::Error),
    /// Radios cannot be made or moved.
    #[error("{doing}")]
    Radio {
        /// What was tried.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Traffic cannot be sent or taken.
    #[error("{doing}")]
    Traffic {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// Something that was waited for did not come.
    #[error("timed out after {seconds} s waiting for {what}{}", said(.last))]
    Vain {
        /// What was waited for.
        what: String,
        /// For how many seconds.
        seconds: u64,
        /// What was seen last.
        last: Vec<String>,
    },
}

impl Error {
    /// An error of a radio, at this step.
    pub(crate) fn radio(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Radio { doing, source }
    }
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Scenario { .. } => Fault::Caller,
            Error::Lab(error) => error.fault(),
            Error::Core(error) => error.fault(),
            Error::Daemon(error) => error.fault(),
            Error::Radio { .. } | Error::Certificates(_) => Fault::Machine,
            Error::Traffic { .. } | Error::Vain { .. } => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Scenario { instead, .. } => Some((*instead).into()),
            Error::Lab(error) => error.remedy(),
            Error::Core(error) => error.remedy(),
            Error::Daemon(error) => error.remedy(),
            Error::Radio { .. } => Some(
                "run it in a guest with Debian's full kernel: `wiretax guest fetch --with daemons` once".into(),
            ),
            Error::Certificates(_) | Error::Traffic { .. } | Error::Vain { .. } => None,
        }
    }
}

fn said(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; last seen: {}", lines.join(" | ")) }
}
