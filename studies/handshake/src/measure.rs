//! The measuring itself: cells in turn, in guests side by side, each a job for who has the lab; every sample is
//! recorded as it comes.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use fault::Problem;
use host::{Host, Launch, Place, Registry};
use lab::LabOptions;
use linkmodel::Middlebox;
use record::Sample;
use study::{Clock, End, Expected, Session, StudyJob, side_by_side, stranger};
use testbed::{Error, Way};

use crate::job::{Batch, Cells, Fault, Job, record_patience};
use crate::plan::{Cell, Plan};
use crate::point::{Point, Queueing, Visit};
use crate::so_far::SoFar;
use crate::summary::value;
use crate::variant::CLIENT;

/// What a job may take beside its connections: servers, certificates, tickets and cookies.
const PREPARING: Duration = Duration::from_secs(600);

/// The lab of this study: a client and a server, joined by a link; and who measures in it.
pub struct Bench {
    host: Host,
    options: LabOptions,
    cells: Cells,
    fault: Option<Fault>,
}

impl Bench {
    /// Makes the lab; a thread of this process measures in it. The process must be in a lab already
    /// ([`lab::enter`]).
    ///
    /// # Errors
    /// The lab's own.
    pub fn new(options: LabOptions) -> Result<Bench, Error> {
        let cells = Cells::new(options)?;
        let host =
            Host::new(Place::Thread(Registry::new().with(cells.clone()))).granting(study::GRACE);
        Ok(Bench { host, options, cells, fault: None })
    }

    /// Has each cell measured by a process of its own, which enters a lab and does the jobs of
    /// [`crate::workers`].
    #[must_use]
    pub fn in_processes(options: LabOptions, launch: Launch) -> Bench {
        let host = Host::new(Place::Process(launch));
        Bench { host, options, cells: Cells::default(), fault: None }
    }

    /// Has each cell measured in a guest, in virtual time: this program's `main` begins with
    /// `guest::init_if_guest` and [`crate::workers`].
    ///
    /// # Errors
    /// QEMU, a kernel or a library is missing.
    pub fn in_guests(options: LabOptions, seed: u64) -> Result<Bench, Problem> {
        let (host, options) = study::guest_host(&options, seed)?;
        Ok(Bench { host, options, cells: Cells::default(), fault: None })
    }

    /// Lets `fault` happen in every cell measured from now on.
    #[doc(hidden)]
    pub fn inject(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    /// What the link has carried so far, where a thread of this process measures.
    ///
    /// # Errors
    /// The lab's own.
    #[doc(hidden)]
    pub fn link_stats(&self) -> Option<Result<pump::Stats, Error>> {
        self.cells.ask(|bed| bed.link_stats(CLIENT))
    }

    /// What carries the frames of the link, where a thread of this process measures.
    #[must_use]
    pub fn backend(&self) -> Option<lab::Backend> {
        self.cells.ask(testbed::Testbed::backend)
    }

    /// Carries out `plan`, less what the session has already. Each sample is recorded as it ends.
    ///
    /// # Errors
    /// The lab, a server or the recorder failed. Failed connections are samples, not errors.
    pub fn run(&mut self, plan: &Plan, session: &mut Session<'_>) -> Result<End, Problem> {
        let (cells, impossible) = plan.cells()?;
        for (point, reason) in &impossible {
            let what = format!("{} with {} left out: {reason}", point.mode, point.library);
            session.watcher().warning(&what, None);
        }
        let captures = session.captures().filter(|_| plan.clock() == Clock::Wall);
        let captures = captures.map(FilePath::to_owned);
        if captures.is_none() && session.captures().is_some() {
            session.watcher().warning("captures stay in the guest, and are not kept", None);
        }
        let mut ahead = Ahead::of(&cells, session);
        let wanted = cells.iter().enumerate().filter(|(_, cell)| missing(cell, session) > 0);
        let jobs: Vec<(&Cell, String, Job)> = wanted
            .map(|(number, cell)| {
                let file = captures.as_deref().map(|folder| capture_file(folder, number));
                (cell, step(cell, "cell"), self.job(plan, cell, batches(cell, session), file))
            })
            .collect();
        let asked: Vec<StudyJob<'_, Cells>> = jobs
            .iter()
            .map(|(_, what, job)| StudyJob {
                host: &self.host,
                what,
                job,
                limit: limit(job),
                remedy: Some("stop other programs"),
            })
            .collect();
        let first_sweep = plan.sweeps.first().map_or("", |sweep| sweep.name.as_str());
        let mut so_far: Vec<SoFar> =
            jobs.iter().map(|(cell, ..)| SoFar::of(cell, first_sweep)).collect();
        if let Some((cell, ..)) = jobs.first() {
            session.progress(&step(cell, "preparing"), &ahead.time);
        }
        let lanes = plan.clock().lanes();
        let end = side_by_side(lanes, &asked, session, |session, at, mut sample, _| {
            let Some((cell, ..)) = jobs.get(at) else { return Err(stranger(&sample)) };
            let mode = record(cell, &mut sample, session, &mut ahead)?.mode;
            let response = sample.values.get(value::RESPONSE).copied();
            if let Some(told) = so_far.get_mut(at).and_then(|own| own.take(mode, response)) {
                session.watcher().note(&told);
            }
            session.progress(&step(cell, &mode.to_string()), &ahead.time);
            Ok(())
        })?;
        Ok(end.with_left(ahead.connections, "connection", session.watcher()))
    }

    /// What is to be done for a cell.
    fn job(&self, plan: &Plan, cell: &Cell, batches: Vec<Batch>, capture: Option<PathBuf>) -> Job {
        Job {
            lab: self.options,
            path: plan.path(cell),
            batches,
            timeout: plan.timeout,
            seed: plan.seed,
            options: plan.options(),
            capture,
            fault: self.fault,
        }
    }
}

/// What is yet to be measured.
struct Ahead {
    connections: usize,
    time: Expected,
}

impl Ahead {
    fn of(cells: &[Cell], session: &Session<'_>) -> Ahead {
        let (mut connections, mut time) = (0, Duration::ZERO);
        for cell in cells {
            for point in &cell.points {
                let count = missing_of(point, cell, session);
                connections += count;
                time += expected_share(cell, point) * count as u32;
            }
        }
        Ahead { connections, time: Expected::of(time) }
    }

    /// A connection at `point` is measured.
    fn passed(&mut self, cell: &Cell, point: &Point) {
        self.connections = self.connections.saturating_sub(1);
        self.time.done += expected_share(cell, point);
    }
}

/// Samples of a cell that were not measured before.
fn missing(cell: &Cell, session: &Session<'_>) -> usize {
    cell.points.iter().map(|point| missing_of(point, cell, session)).sum()
}

fn missing_of(point: &Point, cell: &Cell, session: &Session<'_>) -> usize {
    let fields = point.fields();
    (0..cell.repeat).filter(|repeat| !session.is_finished(&fields, *repeat)).count()
}

/// Where a cell's frames go. A resumed run does not write over what it captured before.
fn capture_file(folder: &FilePath, cell: usize) -> PathBuf {
    let names = std::iter::once(format!("cell-{cell}.pcapng"))
        .chain((2u32..).map(|part| format!("cell-{cell}-{part}.pcapng")));
    let mut files = names.map(|name| folder.join(name));
    files
        .find(|file| file.symlink_metadata().is_err())
        .unwrap_or_else(|| folder.join("cell.pcapng"))
}

/// Time of one connection beside its round trips: compute, scheduling, capture. Measured over all
/// modes, as is the next.
const OVERHEAD: Duration = Duration::from_millis(45);
/// Time of one connection in a guest, whatever its round trips.
const IN_GUEST: Duration = Duration::from_millis(250);
/// Time until a guest begins with a cell.
const BOOT: Duration = Duration::from_secs(6);
/// Half round trips of a connection with its end, about.
const HALF_ROUND_TRIPS: u32 = 7;

impl Plan {
    /// How many connections it comes to, and how long they take, about.
    #[must_use]
    pub fn expected(&self) -> (u64, Duration) {
        // A plan's words were read when it was made.
        let cells = self.cells().map(|(cells, _)| cells).unwrap_or_default();
        let points = || cells.iter().flat_map(|cell| cell.points.iter().map(move |p| (cell, p)));
        let time = points().map(|(cell, point)| expected_of_one(cell, point) * cell.repeat);
        let guests = if self.clock() == Clock::Virtual { cells.len() as u32 } else { 0 };
        let time = self.clock().side_by_side(time.sum::<Duration>() + BOOT * guests);
        (points().map(|(cell, _)| u64::from(cell.repeat)).sum(), time)
    }
}

/// What a connection adds to the time of the whole, from round trips alone.
fn expected_share(cell: &Cell, point: &Point) -> Duration {
    point.clock.side_by_side(expected_of_one(cell, point))
}

/// Expected time of one connection, from round trips alone.
fn expected_of_one(cell: &Cell, point: &Point) -> Duration {
    if point.clock == Clock::Virtual {
        return IN_GUEST;
    }
    // Under loss the slowest of a batch counts: some SYNs are lost, and wait for a second, as all
    // with data do where a middlebox drops them.
    let dropped = cell.middlebox == Middlebox::DropSynData
        && point.mode.loads_syn()
        && point.visit == Visit::First;
    let retransmission = match dropped {
        _ if !cell.loss.is_zero() => 3000,
        true => 1000,
        false => 0,
    };
    let alone = cell.rtt.duration() * HALF_ROUND_TRIPS / 2 + Duration::from_millis(retransmission);
    alone / cell.concurrent + OVERHEAD
}

/// Connections that are under way together, in the order to make them: one point's each, the points in
/// turn.
fn batches(cell: &Cell, session: &Session<'_>) -> Vec<Batch> {
    let step = cell.concurrent.max(1);
    let mut batches = Vec::new();
    for start in (0..cell.repeat).step_by(step as usize) {
        for point in &cell.points {
            let last = start.saturating_add(step).min(cell.repeat);
            let point = point.fields();
            let repeats: Vec<u32> =
                (start..last).filter(|repeat| !session.is_finished(&point, *repeat)).collect();
            if !repeats.is_empty() {
                batches.push(Batch { point, repeats });
            }
        }
    }
    batches
}

/// Records a sample that a job gave; the point that it is of.
fn record<'a>(
    cell: &'a Cell,
    sample: &mut Sample,
    session: &mut Session<'_>,
    ahead: &mut Ahead,
) -> Result<&'a Point, Problem> {
    let point = cell.points.iter().find(|point| point.fields() == sample.point);
    let point = point.ok_or_else(|| stranger(sample))?;
    point.clock.stamp(sample);
    session.record(sample)?;
    ahead.passed(cell, point);
    Ok(point)
}

/// The most that a job takes: every connection waits for as long as it may.
fn limit(job: &Job) -> Duration {
    let count: usize = job.batches.iter().map(|batch| batch.repeats.len()).sum();
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let each = job.timeout.duration() + record_patience(Way::of(&job.path));
    PREPARING.saturating_add(each.saturating_mul(count))
}

fn step(cell: &Cell, what: &str) -> String {
    let loss = match cell.loss.value() {
        0.0 => String::new(),
        loss => format!(", loss {} %", loss * 100.0),
    };
    let middlebox = match cell.middlebox {
        Middlebox::None => String::new(),
        middlebox => format!(", {middlebox}"),
    };
    let queue = match cell.queue {
        Queueing::None => String::new(),
        queue => format!(", {queue}"),
    };
    format!("RTT {}{loss}{middlebox}{queue}: {what}", cell.rtt)
}
