//! The measuring itself: each bed is a job for a guest of its own, one guest per processor; every sample is recorded
//! as it comes.

use std::time::Duration;

use fault::Problem;
use host::{Attachment, Host, Place};
use lab::LabOptions;
use record::{AttachmentKind, Sample};
use study::{Axis, Clock, End, Expected, Session, StudyJob, side_by_side, stranger};
use units::counted;

use crate::job::{Asked, Handoffs, Job, TIMELINE};
use crate::plan::{Again, Plan, Round, together};
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
            let what = format!("{} left out: {problem}", counted(ahead.runs, "planned handoff"));
            session.watcher().warning(&what, problem.remedy());
            return Ok(End::Complete);
        }
        let host = guest(self.seed)?;
        let jobs: Vec<(Job, String)> = rounds
            .iter()
            .map(|round| (self.job(round, session.lab()), first_step(round)))
            .collect();
        let remedy = Some("stop other programs");
        let jobs: Vec<StudyJob<'_, Handoffs>> = std::iter::zip(&jobs, &rounds)
            .map(|((job, what), round)| {
                let limit = PREPARING + round.expected() * SLACK;
                StudyJob { host: &host, what, job, limit, remedy }
            })
            .collect();
        session.progress(jobs.first().map_or("", |job| job.what), &ahead.time);
        let end =
            side_by_side(Clock::Virtual.lanes(), &jobs, session, |session, at, sample, files| {
                let Some(round) = rounds.get(at) else { return Err(stranger(&sample)) };
                let what = record(round, sample, files, session)?;
                ahead.passed(round);
                session.progress(&what, &ahead.time);
                Ok(())
            })?;
        Ok(end.with_left(ahead.runs, "handoff", session.watcher()))
    }

    /// What a guest is to do for a round.
    fn job(&self, round: &Round, lab: LabOptions) -> Job {
        Job {
            lab: lab_of_guest(lab),
            scenario: round.scenario.clone(),
            asked: round.asked.iter().map(|(point, repeat)| self.asked(point, *repeat)).collect(),
            trial: round.trial,
            seed: self.seed,
        }
    }

    fn asked(&self, point: &Point, repeat: u32) -> Asked {
        Asked { point: point.fields(), repeat, command: self.again().command(point, repeat) }
    }
}

impl Again {
    /// The command that measures a run again.
    pub(crate) fn command(&self, point: &Point, repeat: u32) -> String {
        let named = AXES.axes.iter().filter(|axis| {
            axis.name != "scenario" && axis.usual.is_none_or(|usual| usual != (axis.write)(point))
        });
        let value = |axis: &Axis<Point>| study::quoted(&(axis.write)(point));
        let differs = named.map(|axis| format!(" --{} {}", axis.name, value(axis)));
        let scenario = study::quoted(self.files.word(&point.scenario));
        let repeat = repeat.saturating_add(1);
        let more = format!(" --repeat {repeat} --trial {} --seed {}", self.trial, self.seed);
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
    /// What a round adds to the time of the whole, of what it takes alone: others are measured beside it.
    share: f64,
}

impl Ahead {
    fn of(rounds: &[Round]) -> Ahead {
        let runs = rounds.iter().map(|round| round.asked.len()).sum();
        let sum: Duration = rounds.iter().map(Round::expected).sum();
        let whole = together(rounds);
        let share = whole.as_secs_f64() / sum.as_secs_f64().max(1e-9);
        Ahead { runs, time: Expected::of(whole), share }
    }

    /// One is measured; what a bed takes to stand is shared out between its runs.
    fn passed(&mut self, round: &Round) {
        self.runs = self.runs.saturating_sub(1);
        let count = u32::try_from(round.asked.len()).unwrap_or(u32::MAX).max(1);
        self.time.done += (round.expected() / count).mul_f64(self.share);
    }
}

/// Records a sample that a job gave, with what happened beside it; says what it is of.
fn record(
    round: &Round,
    mut sample: Sample,
    files: Vec<Attachment>,
    session: &mut Session<'_>,
) -> Result<String, Problem> {
    let is_asked =
        |(point, repeat): &(Point, u32)| *repeat == sample.repeat && point.fields() == sample.point;
    let Some((point, _)) = round.asked.iter().find(|asked| is_asked(asked)) else {
        return Err(stranger(&sample));
    };
    Clock::Virtual.stamp(&mut sample);
    for Attachment { name, bytes } in files.iter().filter(|file| file.name == TIMELINE) {
        session.attach(&mut sample, name, AttachmentKind::Timeline, bytes)?;
    }
    session.record(&sample)?;
    Ok(step(point))
}

fn first_step(round: &Round) -> String {
    round.asked.first().map(|(point, _)| step(point)).unwrap_or_default()
}

fn step(point: &Point) -> String {
    format!("{}, {}", point.title(), point.rate)
}
