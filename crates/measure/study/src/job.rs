//! A study's job: done by whoever has the lab, its samples recorded as they come.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use fault::{Fault, Problem};
use host::{Attachment, Host, HostError, Message, Worker};
use record::Sample;

use crate::session::{End, Session};

/// How often it is looked whether several jobs are to stop.
const LOOK: Duration = Duration::from_millis(20);

/// A job of the crate `host` whose samples are a study's.
pub struct StudyJob<'a, W: Worker> {
    /// Who does it.
    pub host: &'a Host,
    /// What it is, for progress and errors.
    pub what: &'a str,
    /// What the worker is given.
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
            let heard = hear(message, &mut beside, remedy, &mut session.borrow_mut(), &mut taken);
            if let Err(problem) = heard {
                failed.borrow_mut().get_or_insert(problem);
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

    /// Has it done, until its end or until `stop` is set.
    fn alone(&self, stop: &AtomicBool, take: impl FnMut(Message)) -> Result<(), HostError> {
        let stopped = || stop.load(Ordering::Relaxed);
        self.host.run_until::<W>(self.what, self.job, self.limit, &stopped, take).map(drop)
    }
}

/// Has jobs done side by side, at most so many at once, in their order: for jobs whose results do not depend on
/// what else the machine does, as those of guests in virtual time. `taken` is told which job a sample is of.
///
/// # Errors
/// As [`StudyJob::run`]; the first error ends all jobs. What came before is recorded.
pub fn side_by_side<W: Worker>(
    lanes: usize,
    jobs: &[StudyJob<'_, W>],
    session: &mut Session<'_>,
    mut taken: impl FnMut(&mut Session<'_>, usize, Sample, Vec<Attachment>) -> Result<(), Problem>,
) -> Result<End, Problem>
where
    W::Job: Sync,
{
    let (stop, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    // Room for one: a job that has more to say waits, as it does for `StudyJob::run`.
    let (sender, said) = sync_channel(1);
    thread::scope(|scope| {
        for lane in 0..lanes.clamp(1, jobs.len().max(1)) {
            let (sender, stop, next) = (sender.clone(), &stop, &next);
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    // Who listens goes only when all have ended.
                    let say = |what| drop(sender.send((at, what)));
                    let ended = job.alone(stop, |message| say(Said::Message(message)));
                    // At once: this lane is not to begin another.
                    if ended.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    say(Said::Ended(ended));
                }
            });
            match started {
                Ok(_) => {}
                Err(error) if lane == 0 => return Err(HostError::Start(error).into()),
                // Fewer lanes do the same jobs.
                Err(_) => break,
            }
        }
        drop(sender);
        listen(jobs, session, &said, &stop, &mut taken)
    })
}

/// Records a sample of the job with this number.
type Taken<'a> =
    dyn FnMut(&mut Session<'_>, usize, Sample, Vec<Attachment>) -> Result<(), Problem> + 'a;

/// What a job of several says.
enum Said {
    Message(Message),
    Ended(Result<(), HostError>),
}

/// Hears all jobs until they have ended; the first error, or the session's wish, makes them end.
fn listen<W: Worker>(
    jobs: &[StudyJob<'_, W>],
    session: &mut Session<'_>,
    said: &Receiver<(usize, Said)>,
    stop: &AtomicBool,
    taken: &mut Taken<'_>,
) -> Result<End, Problem> {
    let mut beside: Vec<Vec<Attachment>> = jobs.iter().map(|_| Vec::new()).collect();
    let mut end = Ok(End::Complete);
    loop {
        if let (Ok(End::Complete), Some(why)) = (&end, session.stop()) {
            end = Ok(why);
        }
        if !matches!(end, Ok(End::Complete)) {
            stop.store(true, Ordering::Relaxed);
        }
        let (at, what) = match said.recv_timeout(LOOK) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return end,
        };
        let (Some(job), Some(files)) = (jobs.get(at), beside.get_mut(at)) else { continue };
        let heard = match what {
            Said::Message(message) => {
                hear(message, files, job.remedy, session, |session, sample, files| {
                    taken(session, at, sample, files)
                })
            }
            // It was asked to: why is known.
            Said::Ended(Ok(()) | Err(HostError::Stopped { .. })) => Ok(()),
            Said::Ended(Err(error)) => Err(error.into()),
        };
        if let (Err(problem), true) = (heard, end.is_ok()) {
            end = Err(problem);
        }
    }
}

/// Takes what a job said: files are kept for the sample that follows them.
fn hear(
    message: Message,
    beside: &mut Vec<Attachment>,
    remedy: Option<&str>,
    session: &mut Session<'_>,
    taken: impl FnOnce(&mut Session<'_>, Sample, Vec<Attachment>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    match message {
        Message::Attachment(file) => beside.push(file),
        Message::Sample(value) => {
            let sample = serde_json::from_value(value)
                .map_err(|error| Problem::new(Fault::Measurement, format!("no sample: {error}")))?;
            return taken(session, sample, std::mem::take(beside));
        }
        Message::Event(text) => session.watcher().warning(&text, remedy),
        _ => {}
    }
    Ok(())
}

/// A sample that a job gave of a point that it was not asked for.
#[must_use]
pub fn stranger(sample: &Sample) -> Problem {
    let what = format!("a sample of a point that is not of the cell: {}", sample.cell());
    Problem::new(Fault::Measurement, what)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use host::{Outlet, Place, Registry};
    use record::{Finished, Manifest, Recorder};
    use serde_json::json;

    use super::*;
    use crate::session::Watcher;
    use crate::session::tests::sample;

    /// Says as many samples as it is asked for, numbered; with none it fails.
    struct Counts;

    impl Worker for Counts {
        const KIND: &'static str = "counts";
        type Job = u32;
        type Answer = ();

        fn work(&self, job: u32, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
            if job == 0 {
                return Err(Problem::new(Fault::Machine, "nothing to count"));
            }
            for repeat in 0..job {
                outlet.attachment("beside", vec![0; repeat as usize])?;
                outlet.sample(&sample(repeat))?;
            }
            Ok(())
        }
    }

    /// Wants to stop once so many times were asked.
    struct Stops(Cell<u32>);

    impl Watcher for Stops {
        fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
        fn interrupted(&self) -> bool {
            self.0.set(self.0.get().saturating_sub(1));
            self.0.get() == 0
        }
        fn warning(&mut self, _: &str, _: Option<&str>) {}
        fn note(&mut self, _: &str) {}
    }

    /// What came, by job, and how it ended.
    fn done(lanes: usize, jobs: &[u32], patience: u32) -> (Vec<Vec<u32>>, Result<End, Problem>) {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest::new(json!({}), record::Session::begin(false));
        let mut recorder = Recorder::create(folder.path().join("r"), manifest).unwrap();
        let (finished, mut watcher) = (Finished::default(), Stops(Cell::new(patience)));
        let mut session = Session::new("demo", &mut recorder, &finished, &mut watcher);
        let host = Host::new(Place::Thread(Registry::new().with(Counts)));
        let limit = Duration::from_secs(60);
        let of =
            |job| StudyJob::<Counts> { host: &host, what: "counting", job, limit, remedy: None };
        let asked: Vec<StudyJob<'_, Counts>> = jobs.iter().map(of).collect();
        let mut came = vec![Vec::new(); jobs.len()];
        let end = side_by_side(lanes, &asked, &mut session, |_, at, sample, files| {
            assert_eq!(files.len(), 1, "its own file");
            assert_eq!(files[0].bytes.len(), sample.repeat as usize);
            came[at].push(sample.repeat);
            Ok(())
        });
        (came, end)
    }

    #[test]
    fn jobs_side_by_side_give_all_their_samples_in_order() {
        for lanes in [1, 2, 5] {
            let (came, end) = done(lanes, &[3, 1, 2], u32::MAX);
            assert_eq!(came, [vec![0, 1, 2], vec![0], vec![0, 1]], "{lanes} lanes");
            assert_eq!(end.unwrap(), End::Complete);
        }
        assert_eq!(done(2, &[], u32::MAX).1.unwrap(), End::Complete);
    }

    #[test]
    fn the_first_error_ends_all_jobs_and_so_does_a_wish_to_stop() {
        let (came, end) = done(1, &[2, 0, 1], u32::MAX);
        assert_eq!(came, [vec![0, 1], vec![], vec![]]);
        assert!(end.unwrap_err().to_string().contains("nothing to count"));
        assert_eq!(done(2, &[2, 2], 1).1.unwrap(), End::Interrupted);
    }
}
