//! What a host did instead of answering.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use fault::{Explain, Fault, Problem};
use thiserror::Error;

/// What a host did instead of answering. `who` is what its owner calls it: its driver, for one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// It died, or its thread panicked.
    #[error("{who}: its host crashed ({how}){}", words(.last_words))]
    Crashed {
        /// Who the host works for, as its owner calls it.
        who: String,
        /// By which signal, or with which status.
        how: String,
        /// The end of what it wrote on standard error.
        last_words: String,
    },
    /// It did not answer in time.
    #[error("{who}: its host did not answer within {} s and was stopped{}", .limit.as_secs(), words(.last_words))]
    Hung {
        /// Who the host works for, as its owner calls it.
        who: String,
        /// How long it had.
        limit: Duration,
        /// The end of what it wrote on standard error.
        last_words: String,
    },
    /// It answered what cannot be read.
    #[error("{who}: its host gave an invalid answer: {what}")]
    Rubbish {
        /// Who the host works for, as its owner calls it.
        who: String,
        /// What is wrong with it.
        what: String,
    },
    /// It was ended before it had answered, since the caller wanted to stop.
    #[error("{who}: its host was stopped before it answered")]
    Stopped {
        /// Who the host works for, as its owner calls it.
        who: String,
    },
    /// It says itself that there is no answer.
    #[error("{who}: {problem}")]
    Failed {
        /// Who the host works for, as its owner calls it.
        who: String,
        /// What the worker said.
        problem: Problem,
    },
    /// This machine would not start it.
    #[error("a host could not be started")]
    Start(#[source] io::Error),
}

impl Explain for HostError {
    fn fault(&self) -> Fault {
        match self {
            HostError::Start(_) => Fault::Machine,
            HostError::Failed { problem, .. } => problem.fault(),
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            HostError::Start(_) => Some("raise `ulimit -u`, or end other programs".into()),
            HostError::Failed { problem, .. } => {
                problem.remedy().map(|remedy| remedy.to_owned().into())
            }
            _ => None,
        }
    }
}

fn words(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; it last wrote: {last}") }
}
