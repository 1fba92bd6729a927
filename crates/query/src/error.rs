//! What can go wrong.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use fault::{Explain, Fault};

use crate::questions::QUESTIONS;

/// What can go wrong with a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's folder holds no data set.
    #[error("{} holds no data set", .0.display())]
    NoDataSet(PathBuf),
    /// The data set cannot be read as it lies there.
    #[error("{0}")]
    Rows(#[source] export::ReadError),
    /// The caller's word is no standard question.
    #[error("there is no question `{0}`")]
    NoQuestion(String),
    /// The caller's word is no format.
    #[error("there is no format `{0}`")]
    Format(String),
    /// The query is wrong, or cannot be answered.
    #[error("{0}")]
    Query(Box<DataFusionError>),
    /// What was found cannot be printed.
    #[error("cannot print the answer: {0}")]
    Print(ArrowError),
    /// The answer cannot be written, or no thread be started.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NoDataSet(_) | Error::NoQuestion(_) | Error::Format(_) | Error::Query(_) => {
                Fault::Caller
            }
            Error::Rows(error) => error.fault(),
            Error::Print(_) | Error::Io(_) => Fault::Results,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::NoDataSet(_) => Some("make one with `wiretax observe --parquet DIR`".into()),
            Error::Rows(error) => error.remedy(),
            Error::NoQuestion(_) => Some(format!("write SQL, or one of {}", names()).into()),
            Error::Format(_) => Some("choose from table, json and csv".into()),
            Error::Query(_) | Error::Print(_) | Error::Io(_) => None,
        }
    }
}

impl Error {
    pub(crate) fn query(error: DataFusionError) -> Self {
        Error::Query(Box::new(error))
    }

    /// A failed write is one, whatever it is wrapped in.
    pub(crate) fn print(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Error::Io(error),
            other => Error::Print(other),
        }
    }
}

fn names() -> String {
    QUESTIONS.map(|question| question.name).join(", ")
}
