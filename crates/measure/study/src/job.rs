//! A study's job: done by whoever has the lab, its samples recorded as they come.

use std::cell::RefCell;
use std::time::Duration;

use fault::{Fault, Problem};
use host::{Attachment, Host, HostError, Message, Worker};
use record::Sample;

use crate::session::{End, Session};

/// A job of the crate `host` whose samples are a study's.
pub struct StudyJob<'a, W: Worker> {
    /// Who does it.
    pub host: &'a Host,
    /// What it is, for progress and errors.
    pub what: &'a str,
    /// The job.
    pub job: &'a W::Job,
    /// The most that it may take.
    pub limit: Duration,
    /// What to do about what it warns of, if anything.
    pub remedy: Option<&'a str>,
}

impl<W: Worker> StudyJob<'_, W> {
    /// Has it done, until its end or until the session is to stop. `taken` records each sample as it
    /// comes, with the files that came before it.
    ///
    /// # Errors
    /// The job failed; what came was no sample; `taken` failed, which ends the job.
    pub fn run(
        self,
        session: &mut Session<'_>,
        mut taken: impl FnMut(&mut Session<'_>, Sample, Vec<Attachment>) -> Result<(), Problem>,
    ) -> Result<End, Problem> {
        let StudyJob { host, what, job, limit, remedy } = self;
        let session = RefCell::new(session);
        let failed = RefCell::new(None);
        let mut beside = Vec::new();
        let take = |message| {
            let mut session = session.borrow_mut();
            match message {
                Message::Attachment(file) => beside.push(file),
                Message::Sample(value) => {
                    let sample = serde_json::from_value(value).map_err(|error| {
                        Problem::new(Fault::Measurement, format!("no sample: {error}"))
                    });
                    let files = std::mem::take(&mut beside);
                    let result = sample.and_then(|sample| taken(&mut session, sample, files));
                    if let Err(problem) = result {
                        failed.borrow_mut().get_or_insert(problem);
                    }
                }
                Message::Event(text) => session.watcher().warning(&text, remedy),
                _ => {}
            }
        };
        let stop = || failed.borrow().is_some() || session.borrow().stop().is_some();
        let done = host.run_until::<W>(what, job, limit, &stop, take);
        if let Some(problem) = failed.into_inner() {
            return Err(problem);
        }
        match done {
            Ok(_) => Ok(End::Complete),
            // Asked again, it may have another reason, but no less.
            Err(HostError::Stopped { .. }) => {
                Ok(session.borrow().stop().unwrap_or(End::Interrupted))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// A sample that a job gave of a point that it was not asked for.
#[must_use]
pub fn stranger(sample: &Sample) -> Problem {
    let what = format!("a sample of a point that is not of the cell: {}", sample.cell());
    Problem::new(Fault::Measurement, what)
}
