//! What one acquisition of a lock costs: alone, handed from core to core, and fought over by two.
//!
//! Measured in a process of its own, started with or without one of the objects. Two threads, each
//! pinned to a processor, run many short rounds; a round during which the kernel took a thread off
//! its processor is left out by that fact alone, never by its result.

mod bench;

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use child::{End, Kept};
use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use stats::Estimate;

use crate::{Object, ObjectError, preloaded};

/// How long a process may take that measures.
const PATIENCE: Duration = Duration::from_secs(300);
/// As much is read of what it prints, in bytes.
const PRINTED: usize = 64 << 10;

/// What is done once and undone, where it can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `pthread_rwlock_rdlock` and unlock.
    Read,
    /// `pthread_rwlock_wrlock` and unlock.
    Write,
    /// `pthread_mutex_lock` and unlock.
    Mutex,
    /// One atomic addition to a shared word: what a reference count costs.
    FetchAdd,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 4] =
        [Operation::Read, Operation::Write, Operation::Mutex, Operation::FetchAdd];

    /// Its name, as it is serialised.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Mutex => "mutex",
            Operation::FetchAdd => "fetch-add",
        }
    }

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }
}

/// What an operation costs: medians with their intervals, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What was done.
    pub operation: Operation,
    /// What the process was started with.
    pub object: Option<Object>,
    /// One thread, nobody else: the time of an operation.
    pub uncontended: Estimate,
    /// Two threads in strict turns on two cores, so that each finds the lock in the other core's
    /// cache but free: the time of an operation. However many cores share a lock, each acquisition
    /// by another core than the last has at least this cost, one after the other.
    pub handed_over: Estimate,
    /// Two threads at once, each as often as it can: wall time by operations of both together. Less
    /// than a hand-over where a core keeps the lock for several operations in a row, more where
    /// threads wait and sleep.
    pub contended: Estimate,
    /// Rounds that the medians are of: the fewest of the three.
    pub rounds: usize,
    /// Rounds left out, since a thread lost its processor.
    pub left_out: usize,
}

/// Why a cost could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// One processor cannot contend.
    #[error("two processors are needed and this process may use {0}")]
    Processors(usize),
    /// The threads were pushed off too often.
    #[error("the processors are too busy: {done} of {needed} undisturbed rounds")]
    Busy {
        /// Rounds in which no thread lost its processor.
        done: usize,
        /// How many the medians need.
        needed: usize,
    },
    /// The user stops.
    #[error("it was ended: you stopped")]
    Stopped,
    /// The object cannot be written.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The measuring process cannot be started.
    #[error("starting the process that measures: {0}")]
    Start(std::io::Error),
    /// The measuring process failed.
    #[error("the process that measures failed ({status}): {message}")]
    Process {
        /// How it ended.
        status: String,
        /// The end of what it wrote.
        message: String,
    },
    /// The loader did not take the object.
    #[error("the process ran with {found:?} where {asked:?} was to be preloaded")]
    NotPreloaded {
        /// What was asked for.
        asked: Option<Object>,
        /// What it said that it ran with.
        found: Option<Object>,
    },
    /// A number is missing: a mistake of ours.
    #[error(transparent)]
    Statistics(#[from] stats::Error),
}

impl Explain for CostError {
    fn fault(&self) -> Fault {
        match self {
            CostError::Busy { .. } | CostError::Stopped => Fault::Measurement,
            CostError::Object(error) => error.fault(),
            _ => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            CostError::Processors(_) => Some("allow it more with taskset(1)".into()),
            CostError::Busy { .. } => Some("try again on an idle machine".into()),
            CostError::Object(error) => error.remedy(),
            _ => None,
        }
    }
}

/// Measures `operation` in this process, as it was started: about half a second on idle processors,
/// five at most, and no longer than until [`child::stopping`].
///
/// # Errors
/// [`CostError::Processors`], [`CostError::Busy`] and [`CostError::Stopped`].
pub fn measure(operation: Operation) -> Result<Cost, CostError> {
    let measured = bench::run(operation, &child::stopping)?;
    Ok(Cost {
        operation,
        object: preloaded(),
        uncontended: measured.alone,
        handed_over: measured.handed,
        contended: measured.fought,
        rounds: measured.rounds,
        left_out: measured.left_out,
    })
}

/// Measures `operation` in a process of its own with `object` preloaded. `host` starts a process that
/// prints [`measure`]'s result as one line of JSON, the operation's name being its last argument, which
/// is added here. The object is written into `dir`.
///
/// # Errors
/// [`CostError`]: also when the loader did not take the object.
pub fn contended_cost(
    operation: Operation,
    object: Option<Object>,
    mut host: Command,
    dir: &Path,
) -> Result<Cost, CostError> {
    host.env_remove("LD_PRELOAD").arg(operation.name());
    if let Some(object) = object {
        object.preload(dir, &mut host)?;
    }
    let kept = [Kept::First(PRINTED), Kept::Last(PRINTED)];
    let output = child::run(&mut host, Vec::new(), PATIENCE, kept).map_err(CostError::Start)?;
    if output.end == End::Stopped {
        return Err(CostError::Stopped);
    }
    let failed = |message: &[u8]| CostError::Process {
        status: match output.end {
            End::Exited(status) => status.to_string(),
            End::Late | End::Stopped => format!("not ended after {} s", PATIENCE.as_secs()),
        },
        message: child::last_words(message, 400),
    };
    if !output.succeeded() {
        return Err(failed(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or("");
    let cost: Cost = serde_json::from_str(line).map_err(|_| failed(&output.stdout))?;
    if cost.object != object || cost.operation != operation {
        return Err(CostError::NotPreloaded { asked: object, found: cost.object });
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names() {
        for operation in Operation::ALL {
            assert_eq!(Operation::named(operation.name()), Some(operation));
            let text = serde_json::to_string(&operation).unwrap();
            assert_eq!(text, format!("{:?}", operation.name()));
        }
        assert_eq!(Operation::named("barrier"), None);
    }

    #[test]
    fn a_wish_to_stop_ends_the_rounds() {
        let stopped = bench::run(Operation::Mutex, &|| true).err();
        let stopped = stopped.expect("no result");
        assert!(matches!(stopped, CostError::Stopped | CostError::Processors(_)), "{stopped}");
    }

    #[test]
    fn a_process_that_prints_rubbish_or_fails_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            contended_cost(Operation::Mutex, None, command, dir.path()).unwrap_err().to_string()
        };
        assert!(shell("echo '{rubbish'").contains("{rubbish"));
        assert!(shell("echo no luck >&2; exit 3").contains("no luck"));
        assert!(shell("kill -9 $$").contains("signal: 9"));
        let absent = Command::new("/nowhere/wiretax");
        let error = contended_cost(Operation::Mutex, None, absent, dir.path()).unwrap_err();
        assert!(matches!(error, CostError::Start(_)), "{error}");
    }
}
