//! The measuring itself: beds one after the other, each a job for a guest of its own; every sample is recorded as it
//! comes.

use std::time::Duration;

use fault::Problem;
use host::{Attachment, Host, Place};
use lab::LabOptions;
use record::{AttachmentKind, Sample};
use study::{Clock, End, Expected, Session, StudyJob, stranger};

use crate::job::{Asked, Handoffs, Job, TIMELINE};
use crate::plan::{Plan, Round};
use crate::point::{AXES, Point};

/// What a job may take beside its runs: a machine that starts, a bed that stands, on a busy machine.
const PREPARING: Duration = Duration::from_secs(300);
/// How much longer a run may take than it is expected to.
const SLACK: u32 = 20;

impl Plan {
    /// Carries it out, less what the session has already.
    ///
    /// # Errors
    /// The recorder failed, or the guest did. A bed that does not stand and a host that does not come back are
    /// samples, not errors.
    pub(crate) fn run(&self, session: &mut Session<'_>) -> Result<End, Problem> {
        let (rounds, left_out) =
            self.rounds(|point, repeat| !session.is_finished(&point.fields(), repeat))?;
        for (point, why) in &left_out {
            session.watcher().warning(&format!("{} left out: {why}", point.title()), None);
        }
        let mut ahead = Ahead::of(&rounds);
        if let Err(problem) = guest(self.seed) {
            let what = format!("{} handoffs are left out: {problem}", ahead.runs);
            session.watcher().warning(&what, problem.remedy());
            return Ok(End::Complete);
        }
        let mut end = End::Complete;
        for round in &rounds {
            if let Some(stop) = session.stop() {
                end = stop;
                break;
            }
            end = self.round(round, session, &mut ahead)?;
            if end != End::Complete {
                break;
            }
        }
        if end == End::OutOfTime {
            let what = format!("out of time: {} handoffs of the plan are left out", ahead.runs);
            session.watcher().warning(&what, Some("measure them by --resume with this folder"));
        }
        Ok(end)
    }

    fn round(
        &self,
        round: &Round,
        session: &mut Session<'_>,
        ahead: &mut Ahead,
    ) -> Result<End, Problem> {
        let host = guest(self.seed)?;
        let job = Job {
            lab: lab_of_guest(session.lab()),
            scenario: round.scenario.clone(),
            asked: round.asked.iter().map(|(point, repeat)| self.asked(point, *repeat)).collect(),
            trial: round.trial,
            seed: self.seed,
        };
        let mut steps = round.asked.iter().map(|(point, _)| step(point));
        let what = steps.next().unwrap_or_default();
        session.progress(&what, &ahead.time);
        let limit = PREPARING + round.expected() * SLACK;
        let remedy = Some("give the machine less to do beside");
        let job = StudyJob::<Handoffs> { host: &host, what: &what, job: &job, limit, remedy };
        job.run(session, |session, sample, files| {
            record(round, sample, files, session)?;
            ahead.passed(round);
            session.progress(&steps.next().unwrap_or_else(|| what.clone()), &ahead.time);
            Ok(())
        })
    }

    fn asked(&self, point: &Point, repeat: u32) -> Asked {
        Asked { point: point.fields(), repeat, command: self.command(point, repeat) }
    }

    /// The command that measures a run again.
    pub(crate) fn command(&self, point: &Point, repeat: u32) -> String {
        let named = AXES.axes.iter().filter(|axis| {
            axis.name != "scenario" && axis.usual.is_none_or(|usual| usual != (axis.write)(point))
        });
        let differs = named.map(|axis| format!(" --{} {}", axis.name, (axis.write)(point)));
        let scenario = study::quoted(self.files.word(&point.scenario));
        let more = format!(" --repeat {} --trial {} --seed {}", repeat + 1, self.trial, self.seed);
        format!("wiretax roam --scenario {scenario}{}{more}", differs.collect::<String>())
    }
}

/// A guest that has what beds are made of.
pub(crate) fn guest(seed: u64) -> Result<Host, Problem> {
    let launch = mobility::guest()?.with_seed(seed).launch()?;
    Ok(Host::new(Place::Process(launch)))
}

/// One processor, and nobody to leave it to.
fn lab_of_guest(lab: LabOptions) -> LabOptions {
    let mut own = LabOptions { node_cpu: None, ..lab };
    own.pump.cpu = None;
    own
}

/// What is yet to be measured.
struct Ahead {
    runs: usize,
    time: Expected,
}

impl Ahead {
    fn of(rounds: &[Round]) -> Ahead {
        let runs = rounds.iter().map(|round| round.asked.len()).sum();
        let time = rounds.iter().map(Round::expected).sum();
        Ahead { runs, time: Expected::of(time) }
    }

    /// One is measured; what a bed takes to stand is shared out between its runs.
    fn passed(&mut self, round: &Round) {
        self.runs = self.runs.saturating_sub(1);
        let count = u32::try_from(round.asked.len()).unwrap_or(u32::MAX).max(1);
        self.time.done += round.expected() / count;
    }
}

/// Records a sample that a job gave, with what happened beside it.
fn record(
    round: &Round,
    mut sample: Sample,
    files: Vec<Attachment>,
    session: &mut Session<'_>,
) -> Result<(), Problem> {
    let is_asked =
        |(point, repeat): &(Point, u32)| *repeat == sample.repeat && point.fields() == sample.point;
    if !round.asked.iter().any(is_asked) {
        return Err(stranger(&sample));
    }
    Clock::Virtual.stamp(&mut sample);
    for Attachment { name, bytes } in files.iter().filter(|file| file.name == TIMELINE) {
        session.attach(&mut sample, name, AttachmentKind::Timeline, bytes)?;
    }
    session.record(&sample)
}

fn step(point: &Point) -> String {
    format!("{}, {}", point.title(), point.rate)
}
