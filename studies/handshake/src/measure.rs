//! The measuring itself: the lab, the cells in turn, a sample for every connection.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use conn::{ClientPlan, ServerLog};
use fault::Problem;
use lab::LabOptions;
use linkmodel::{Middlebox, Path};
use record::Sample;
use study::{End, Expected, Session, Watcher};
use testbed::{Error, Testbed, Way};

use crate::plan::{Cell, Plan};
use crate::point::{Point, Visit};
use crate::sample::{Seen, sample};
use crate::variant::{CLIENT, Variant};

/// How long the server's record of a finished connection may take to appear, beside two round trips:
/// longer than a QUIC server waits for a CONNECTION_CLOSE that was lost.
const SERVER_RECORD_PATIENCE: Duration = Duration::from_secs(6);

/// The lab of this study: a client and a server, joined by a link.
pub struct Bench {
    bed: Testbed<Variant>,
    fault: Option<Fault>,
}

/// Something that goes wrong between priming and measuring, so that a test can see what becomes of
/// the connections.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The server is replaced by one that does not know the tickets.
    NewServer,
    /// The server's kernel takes no more data from a SYN.
    NoFastOpen,
}

impl Bench {
    /// Makes the lab. The process must be in it already ([`lab::enter`]).
    ///
    /// # Errors
    /// The lab's own.
    pub fn new(options: LabOptions) -> Result<Bench, Error> {
        let bed = Testbed::new(options, &[("client", Path::default())])?;
        Ok(Bench { bed, fault: None })
    }

    /// Lets `fault` happen in every cell measured from now on.
    #[doc(hidden)]
    pub fn inject(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    /// What the link has carried so far.
    ///
    /// # Errors
    /// The lab's own.
    #[doc(hidden)]
    pub fn link_stats(&self) -> Result<pump::Stats, Error> {
        self.bed.link_stats(CLIENT)
    }

    fn let_happen(&mut self, fault: Option<Fault>, variant: Variant) -> Result<(), Error> {
        match fault {
            None => Ok(()),
            Some(Fault::NewServer) => variant.serve(&mut self.bed),
            Some(Fault::NoFastOpen) => {
                Ok(self.bed.server().sysctl("net.ipv4.tcp_fastopen", "0")?)
            }
        }
    }

    /// What carries the frames of the link.
    #[must_use]
    pub fn backend(&self) -> lab::Backend {
        self.bed.backend()
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
        let mut ahead = Ahead::of(&cells, session);
        let mut end = End::Complete;
        for (number, cell) in cells.iter().enumerate() {
            if missing(cell, session) == 0 {
                continue;
            }
            let path = plan.path(cell);
            let file = session.captures().map(|folder| capture_file(folder, number));
            let client = self.bed.client(CLIENT)?;
            let capture = file.map(|file| client.capture(file)).transpose()?;
            end = CellRun { bench: self, plan, cell, path, session }.run(&mut ahead)?;
            if let Some(capture) = capture {
                let stats = capture.stop()?;
                warn_of_drops(stats.kernel_drops, session.watcher());
            }
            if end != End::Complete {
                break;
            }
        }
        if end == End::OutOfTime {
            let left = ahead.connections;
            let what = format!("out of time: {left} connections of the plan are left out");
            session.watcher().warning(&what, Some("measure them by --resume with this folder"));
        }
        Ok(end)
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
                time += expected_of_one(cell, point) * count as u32;
            }
        }
        Ahead { connections, time: Expected::of(time) }
    }

    fn passed(&mut self, cell: &Cell, batch: &Batch) {
        let count = batch.repeats.len();
        self.connections -= count;
        self.time.done += expected_of_one(cell, &batch.point) * count as u32;
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
    files.find(|file| !file.exists()).unwrap_or_else(|| folder.join("cell.pcapng"))
}

fn warn_of_drops(drops: u64, watcher: &mut dyn Watcher) {
    if drops > 0 {
        let what = format!("a capture lost {drops} frames");
        watcher.warning(&what, Some("give the machine less to do beside"));
    }
}

/// Time of one connection beside its round trips: compute, scheduling, capture. Measured over all
/// modes, as is the next.
const OVERHEAD: Duration = Duration::from_millis(45);
/// Half round trips of a connection with its end, about.
const HALF_ROUND_TRIPS: u32 = 7;

impl Plan {
    /// How many connections it comes to, and how long they take, about.
    #[must_use]
    pub fn expected(&self) -> (u64, Duration) {
        // A plan's words were read when it was made.
        let cells = self.cells().map(|(cells, _)| cells).unwrap_or_default();
        let points = || cells.iter().flat_map(|cell| cell.points.iter().map(move |p| (cell, p)));
        let time = points().map(|(cell, point)| expected_of_one(cell, point) * cell.repeat).sum();
        (points().map(|(cell, _)| u64::from(cell.repeat)).sum(), time)
    }
}

/// Expected time of one connection, from round trips alone.
fn expected_of_one(cell: &Cell, point: &Point) -> Duration {
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

/// One cell being measured.
struct CellRun<'a, 's> {
    bench: &'a mut Bench,
    plan: &'a Plan,
    cell: &'a Cell,
    path: Path,
    session: &'a mut Session<'s>,
}

impl CellRun<'_, '_> {
    fn run(&mut self, ahead: &mut Ahead) -> Result<End, Problem> {
        let batches = self.batches();
        if batches.is_empty() {
            return Ok(End::Complete);
        }
        self.session.progress(&self.step("preparing"), &ahead.time);
        let prepared = self.prepare(&batches)?;
        if prepared != End::Complete {
            return Ok(prepared);
        }
        for batch in batches {
            if let Some(end) = self.session.stop() {
                return Ok(end);
            }
            self.session.progress(&self.step(&batch.point.mode.to_string()), &ahead.time);
            self.measure(&batch)?;
            ahead.passed(self.cell, &batch);
        }
        Ok(End::Complete)
    }

    fn step(&self, what: &str) -> String {
        let loss = match self.cell.loss.value() {
            0.0 => String::new(),
            loss => format!(", loss {} %", loss * 100.0),
        };
        let middlebox = match self.cell.middlebox {
            Middlebox::None => String::new(),
            middlebox => format!(", {middlebox}"),
        };
        format!("RTT {}{loss}{middlebox}: {what}", self.cell.rtt)
    }

    /// Connections that are under way together, in the order to make them: one point's each, the
    /// points in turn.
    fn batches(&self) -> Vec<Batch> {
        let step = self.cell.concurrent.max(1);
        let starts = (0..self.cell.repeat).step_by(step as usize);
        let mut batches = Vec::new();
        for start in starts {
            for point in &self.cell.points {
                let last = start.saturating_add(step).min(self.cell.repeat);
                let fields = point.fields();
                let repeats: Vec<u32> = (start..last)
                    .filter(|repeat| !self.session.is_finished(&fields, *repeat))
                    .collect();
                if !repeats.is_empty() {
                    batches.push(Batch { point: point.clone(), repeats });
                }
            }
        }
        batches
    }

    /// Servers, tickets and cookies, fetched on a path without delay; then the cell's path.
    fn prepare(&mut self, batches: &[Batch]) -> Result<End, Error> {
        self.bench.bed.set_path(CLIENT, &Path::default())?;
        for point in &self.cell.points {
            if let Some(end) = self.session.stop() {
                return Ok(end);
            }
            let variant = Variant::from(point);
            let own = batches.iter().filter(|batch| batch.point == *point);
            let count = own.map(|batch| batch.repeats.len()).sum();
            if count > 0 {
                variant.set_up(&mut self.bench.bed)?;
                let tickets = if point.mode.resumes() { count } else { 0 };
                self.bench.bed.prime(&variant, tickets, 1)?;
                self.bench.let_happen(self.bench.fault, variant)?;
            }
        }
        self.bench.bed.settle()?;
        self.bench.bed.set_path(CLIENT, &self.path)?;
        for point in self.cell.points.iter().filter(|point| point.visit == Visit::Remembered) {
            if batches.iter().any(|batch| batch.point == *point) {
                // Our TCP learns what the path does to its SYN.
                self.bench.bed.prime(&Variant::from(point), 0, 1)?;
            }
        }
        Ok(End::Complete)
    }

    fn measure(&mut self, batch: &Batch) -> Result<(), Problem> {
        let variant = Variant::from(&batch.point);
        let timeout = self.plan.timeout.duration();
        let bed = &mut self.bench.bed;
        let plans = batch.repeats.iter().filter_map(|_| bed.plan(CLIENT, &variant));
        let plans = plans.map(|plan| ClientPlan { timeout, ..plan }).collect();

        let capture = bed.capture_at_client(CLIENT)?;
        let attempts = bed.connect(CLIENT, plans)?.join()?;
        let (connections, drops) = capture.stop()?;
        warn_of_drops(drops, self.session.watcher());

        let patience = SERVER_RECORD_PATIENCE + Way::of(&self.path).round_trip() * 2;
        for (repeat, attempt) in batch.repeats.iter().zip(&attempts) {
            let server = match attempt {
                Ok(outcome) => self.bench.bed.server_record(&variant, outcome.local, patience)?,
                Err(_) => None,
            };
            let seen = Seen { attempt, server: server.as_ref(), connections: &connections };
            let sample = self.sample(&batch.point, *repeat, &seen);
            self.session.record(&sample)?;
        }
        // Records of attempts that the client gave up, whose port is not known.
        drop(self.bench.bed.log(&variant).map(ServerLog::drain));
        Ok(())
    }

    fn sample(&self, point: &Point, repeat: u32, seen: &Seen<'_>) -> Sample {
        let way = Way::of(&self.path);
        sample(point, repeat, self.plan.seed, seen, way, &self.plan.options())
    }
}

/// Connections of one point that are under way together.
struct Batch {
    point: Point,
    repeats: Vec<u32>,
}
