//! The measuring itself: paths in turn, each a job for who can stand it up; every sample is recorded as it comes.

use std::time::Duration;

use fault::{Fault, Problem};
use host::{Host, Place, Registry};
use record::Sample;
use study::{End, Expected, Session, StudyJob, stranger};
use tester::Tester;
use units::counted;

use crate::job::{Asked, Job, Paths, measure};
use crate::plan::{Plan, Round, options, trial_time};
use crate::point::{Backend, Point};
use crate::sample::sample;

/// What a job may take beside its trials: namespaces, devices, a machine that starts.
const PREPARING: Duration = Duration::from_secs(300);
/// How much longer a trial may take than it is expected to.
const SLACK: u32 = 20;

impl Plan {
    /// Carries it out, less what the session has already.
    ///
    /// # Errors
    /// A path cannot be stood up, or the recorder failed. What a path loses is a sample, not an error.
    pub(crate) fn run(
        &self,
        session: &mut Session<'_>,
        mut tester: Option<&mut Tester>,
    ) -> Result<End, Problem> {
        let (_, impossible) = self.points()?;
        for (point, reason) in &impossible {
            let what = format!("{} over {} hops left out: {reason}", point.label(), point.hops);
            session.watcher().warning(&what, None);
        }
        let rounds = self.rounds(|point, repeat| !session.is_finished(&point.fields(), repeat))?;
        let mut ahead = Ahead::of(&rounds, self.trial.duration());
        let mut end = End::Complete;
        for batch in batches(rounds) {
            end = self.batch(&batch, session, &mut ahead, tester.as_deref_mut())?;
            if end != End::Complete {
                break;
            }
        }
        Ok(end.with_left(ahead.trials, "trial", session.watcher()))
    }

    fn batch(
        &self,
        rounds: &[Round],
        session: &mut Session<'_>,
        ahead: &mut Ahead,
        tester: Option<&mut Tester>,
    ) -> Result<End, Problem> {
        let Some(first) = rounds.first() else { return Ok(End::Complete) };
        if let Some(end) = session.stop() {
            return Ok(end);
        }
        let host = match first.backend {
            Backend::Between => return self.between(rounds, session, ahead, tester),
            Backend::Own | Backend::Kernel => {
                Host::new(Place::Thread(Registry::new().with(Paths))).granting(study::GRACE)
            }
            Backend::Guest => match guest().and_then(|guest| Ok(guest.launch()?)) {
                Ok(launch) => Host::new(Place::Process(launch)),
                Err(problem) => {
                    let left: usize = rounds.iter().map(|round| round.asked.len()).sum();
                    let left = counted(left, "planned trial");
                    let what = format!("{left} in a guest machine left out: {problem}");
                    session.watcher().warning(&what, problem.remedy());
                    return Ok(End::Complete);
                }
            },
        };
        let job = Job {
            lab: session.lab(),
            rounds: rounds.iter().map(asked).collect(),
            trial: self.trial,
            seed: self.seed,
            options: self.options(),
        };
        let mut steps =
            rounds.iter().flat_map(|round| round.asked.iter().map(|(point, _)| step(point)));
        let what = steps.next().unwrap_or_default();
        session.progress(&what, &ahead.time);
        let trial = self.trial.duration();
        let expected: Duration = rounds.iter().map(|round| round.expected(trial)).sum();
        let limit = PREPARING + expected * SLACK;
        let remedy = Some("stop other programs");
        let job = StudyJob::<Paths> { host: &host, what: &what, job: &job, limit, remedy };
        job.run(session, |session, sample, _| {
            record(rounds, &sample, session, ahead, trial)?;
            session.progress(&steps.next().unwrap_or_else(|| what.clone()), &ahead.time);
            Ok(())
        })
    }

    /// Trials between two interfaces, by this thread.
    fn between(
        &self,
        rounds: &[Round],
        session: &mut Session<'_>,
        ahead: &mut Ahead,
        tester: Option<&mut Tester>,
    ) -> Result<End, Problem> {
        let (Some(interfaces), Some(tester)) = (&self.between, tester) else {
            let what = "interfaces of this machine are measured alone, not with other studies";
            return Err(Problem::new(Fault::Caller, what));
        };
        let trial = self.trial.duration();
        for (point, repeat) in rounds.iter().flat_map(|round| &round.asked) {
            session.progress(&format!("{} to {}", interfaces[0], interfaces[1]), &ahead.time);
            if let Some(end) = session.stop() {
                return Ok(end);
            }
            let measured = {
                let session = &*session;
                measure(tester, point, trial, None, &|| session.stop().is_some())?
            };
            let Some(measured) = measured else {
                return Ok(session.stop().unwrap_or(End::Interrupted));
            };
            let sample = sample(point, *repeat, self.seed, &measured, &self.options());
            record(rounds, &sample, session, ahead, trial)?;
        }
        Ok(End::Complete)
    }

    /// What a command needs beside the point to measure it again.
    fn options(&self) -> String {
        options(self.trial, self.between.as_ref())
    }
}

/// A guest machine that has what paths are made of.
pub(crate) fn guest() -> Result<guest::Guest, Problem> {
    let guest = guest::Guest::find()?.with_modules(guest::LINK_MODULES);
    Ok(guest.with_programs(&["ip", "tc"])?)
}

/// Rounds that are one job: in real time each alone, so that paths take turns; in a guest machine all together, since
/// it starts once.
fn batches(rounds: Vec<Round>) -> Vec<Vec<Round>> {
    let mut batches: Vec<Vec<Round>> = Vec::new();
    for round in rounds {
        let joins = |batch: &&mut Vec<Round>| {
            round.backend == Backend::Guest
                && batch.first().is_some_and(|first| first.backend == Backend::Guest)
        };
        match batches.last_mut().filter(joins) {
            Some(batch) => batch.push(round),
            None => batches.push(vec![round]),
        }
    }
    batches
}

fn asked(round: &Round) -> Vec<Asked> {
    let asked = round.asked.iter();
    asked.map(|(point, repeat)| Asked { point: point.fields(), repeat: *repeat }).collect()
}

/// What is yet to be measured.
struct Ahead {
    trials: usize,
    time: Expected,
}

impl Ahead {
    fn of(rounds: &[Round], trial: Duration) -> Ahead {
        let trials = rounds.iter().map(|round| round.asked.len()).sum();
        let time = rounds.iter().map(|round| round.expected(trial)).sum();
        Ahead { trials, time: Expected::of(time) }
    }

    /// One is measured; what it takes to stand a path up is shared out between its trials.
    fn passed(&mut self, round: &Round, point: &Point, trial: Duration) {
        self.trials = self.trials.saturating_sub(1);
        let trials: Duration = round.asked.iter().map(|(point, _)| trial_time(point, trial)).sum();
        let standing = round.expected(trial).saturating_sub(trials);
        let count = u32::try_from(round.asked.len()).unwrap_or(u32::MAX).max(1);
        self.time.done += trial_time(point, trial) + standing / count;
    }
}

/// Records a sample that a job gave.
fn record(
    rounds: &[Round],
    sample: &Sample,
    session: &mut Session<'_>,
    ahead: &mut Ahead,
    trial: Duration,
) -> Result<(), Problem> {
    let found = rounds.iter().find_map(|round| {
        let own = round
            .asked
            .iter()
            .find(|(point, repeat)| *repeat == sample.repeat && point.fields() == sample.point);
        own.map(|(point, _)| (round, point))
    });
    let (round, point) = found.ok_or_else(|| stranger(sample))?;
    session.record(sample)?;
    ahead.passed(round, point, trial);
    Ok(())
}

fn step(point: &Point) -> String {
    let hops = match point.hops {
        1 => "1 hop".to_owned(),
        hops => format!("{hops} hops"),
    };
    let backend = match point.backend {
        Backend::Own => "",
        Backend::Kernel => ", this kernel",
        Backend::Guest => ", guest",
        Backend::Between => "",
    };
    format!("{} over {hops}, {} bytes, {}{backend}", point.label(), point.frame, point.load)
}
