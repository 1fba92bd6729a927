//! What can go wrong, and whose fault it is.

use std::borrow::Cow;
use std::path::PathBuf;

use fault::{Explain, Fault};

/// The library, or its driver.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The file is no driver, or one for another version of the interface.
    #[error("{} cannot be used as a driver: {what}", .path.display())]
    NotADriver {
        /// The file that is none.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The library cannot do what was asked for.
    #[error("the library cannot do this: {what}")]
    Unsupported {
        /// What it says.
        what: String,
    },
    /// A call failed.
    #[error("{doing} failed: {what}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What the library says.
        what: String,
    },
    /// The driver answered what it may not answer here.
    #[error("the driver broke its interface: {doing} answered {}", crate::abi::status_text(*.status))]
    OutOfTurn {
        /// What was being done.
        doing: &'static str,
        /// The status that it returned (`WT_STATUS_TABLE`).
        status: i32,
    },
    /// The driver said that it was done, and gave nothing.
    #[error("the driver broke its interface: {doing} gave nothing")]
    Null {
        /// What was being done.
        doing: &'static str,
    },
    /// The driver moved a number of bytes that it cannot have moved.
    #[error("the driver broke its interface: {doing} moved {done} of {most} bytes")]
    Nonsense {
        /// What was being done.
        doing: &'static str,
        /// Bytes that it says it moved.
        done: usize,
        /// Bytes that it could have moved.
        most: usize,
    },
    /// The connection stands still with both sides waiting.
    #[error("both sides wait for each other")]
    Stuck,
    /// Something else was agreed on than what was pinned.
    #[error("{what} was asked for and {got} agreed on")]
    NotAsPinned {
        /// What was asked for.
        what: String,
        /// What came of it.
        got: String,
    },
    /// The peer's bytes are not what was sent.
    #[error("the other side got other bytes than were sent")]
    WrongBytes,
    /// The wire shows other than what was asked for.
    #[error("the wire shows {shown} where {asked} was asked for")]
    OnTheWire {
        /// What the wire shows.
        shown: &'static str,
        /// What was asked for.
        asked: &'static str,
    },
    /// A library that is built in, beside a driver's.
    #[error(transparent)]
    BuiltIn(#[from] tls::Error),
    /// Something of this machine.
    #[error("{doing}: {source}")]
    Machine {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// What was asked for does not exist, or cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that stands for nothing.
    #[error("there is no {kind} `{given}`")]
    Unknown {
        /// What it should have been.
        kind: &'static str,
        /// What was given.
        given: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A driver's description cannot be read.
    #[error("{}: {what}", .path.display())]
    Description {
        /// The driver's `driver.toml`.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file or folder.
    #[error("{doing} {}: {source}", .path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// There is no folder with the drivers' sources.
    #[error("no drivers are found at {}", .0.display())]
    NoSources(PathBuf),
    /// The user has no folder for what is built, and loaded later.
    #[error("neither HOME nor XDG_CACHE_HOME is set to a folder for what is built")]
    NoCache,
}

impl From<tls::PeerError> for DriverError {
    fn from(error: tls::PeerError) -> Self {
        DriverError::BuiltIn(error.into())
    }
}

impl Explain for DriverError {
    fn fault(&self) -> Fault {
        match self {
            DriverError::BuiltIn(error) => error.fault(),
            DriverError::NotADriver { .. } | DriverError::Machine { .. } => Fault::Machine,
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            DriverError::BuiltIn(error) => error.remedy(),
            DriverError::NotADriver { .. } => Some("build it again with `make drivers`".into()),
            _ => None,
        }
    }
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Unknown { known, .. } => {
                Some(format!("choose from {}", known.join(", ")).into())
            }
            Error::NoSources(_) => {
                Some("run `make drivers` in a checkout, or give --drivers".into())
            }
            Error::NoCache => Some("set one of them to a folder that only you can write to".into()),
            Error::Description { .. } | Error::File { .. } => None,
        }
    }
}
