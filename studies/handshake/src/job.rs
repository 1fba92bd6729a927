//! A cell as a job of the crate `host`: data in, a sample a connection out. Who does it has a testbed of
//! its own, so that it can be a thread of this process, a process, or a machine that is a guest of this
//! one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conn::{ClientPlan, ServerLog};
use fault::{Fault as Blame, Problem};
use host::{Outlet, Registry, Worker};
use lab::LabOptions;
use linkmodel::Path;
use serde::{Deserialize, Serialize};
use study::Clock;
use testbed::{Download, Error, Testbed, Way};
use units::Delay;

use crate::point::{AXES, Point, Queueing, Visit};
use crate::sample::{Seen, sample};
use crate::variant::{CLIENT, Variant};

/// How long the server's record of a finished connection may take to appear, beside two round trips:
/// longer than a QUIC server waits for a CONNECTION_CLOSE that was lost.
const SERVER_RECORD_PATIENCE: Duration = Duration::from_secs(6);
/// The same under loss: a FIN is sent again at intervals that double (RFC 6298 §5.5), from 0.2 s on, or 0.8 s where
/// the timer has backed off before, so that it is sent six to eight times by then.
const SERVER_RECORD_PATIENCE_UNDER_LOSS: Duration = Duration::from_secs(30);

/// How long the server's record of a finished connection may take to appear on such a way.
pub(crate) fn record_patience(way: Way) -> Duration {
    let least = if way.lossy { SERVER_RECORD_PATIENCE_UNDER_LOSS } else { SERVER_RECORD_PATIENCE };
    least + way.round_trip() * 2
}

/// How long a guest's processor is left to what the preparing has set off.
const ENDING: Duration = Duration::from_secs(5);

/// Something that goes wrong between priming and measuring, so that a test can see what becomes of
/// the connections.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The server is replaced by one that does not know the tickets.
    NewServer,
    /// The server's kernel takes no more data from a SYN.
    NoFastOpen,
}

/// Connections of one point that are under way together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The point, as the fields of a sample.
    pub(crate) point: BTreeMap<String, String>,
    /// Which of its connections these are.
    pub(crate) repeats: Vec<u32>,
}

/// The points of a cell, measured in turn on one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// How the lab is to be made, where there is none yet.
    pub(crate) lab: LabOptions,
    /// The link between client and server.
    pub(crate) path: Path,
    /// What is measured, in this order.
    pub(crate) batches: Vec<Batch>,
    /// After how long an attempt is given up.
    pub(crate) timeout: Delay,
    /// The seed that samples name.
    pub(crate) seed: u64,
    /// What a command needs beside the point to measure it again.
    pub(crate) options: String,
    /// Where all frames at the client go, if they are kept.
    pub(crate) capture: Option<PathBuf>,
    /// What goes wrong, in a test.
    pub(crate) fault: Option<Fault>,
}

/// Measures cells: a sample for every connection, as it ends; an event for what makes samples worth
/// less. It looks before each batch whether it is to end.
#[derive(Clone, Default)]
pub(crate) struct Cells(Arc<Mutex<Option<Bed>>>);

/// The testbed of a client and a server, and how its lab was asked for.
struct Bed {
    options: LabOptions,
    testbed: Testbed<Variant>,
}

/// Those who do the study's jobs in a process of its own: it must be in a lab ([`lab::enter`]).
#[must_use]
pub fn workers() -> Registry {
    Registry::new().with(Cells::default())
}

impl Cells {
    /// Measures on a lab that is made now.
    pub(crate) fn new(options: LabOptions) -> Result<Cells, Error> {
        Ok(Cells(Arc::new(Mutex::new(Some(Bed::new(options)?)))))
    }

    /// What the testbed says, if there is one.
    pub(crate) fn ask<T>(&self, ask: impl FnOnce(&Testbed<Variant>) -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|bed| ask(&bed.testbed))
    }
}

impl Bed {
    fn new(options: LabOptions) -> Result<Bed, Error> {
        let testbed = Testbed::new(options, &[("client", Path::default())])?;
        Ok(Bed { options, testbed })
    }
}

impl Worker for Cells {
    const KIND: &'static str = "handshake-cell";
    type Job = Job;
    type Answer = ();

    fn work(&self, job: Job, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bed = match held.take() {
            Some(bed) if bed.options == job.lab => bed,
            other => {
                drop(other);
                Bed::new(job.lab)?
            }
        };
        let bed = &mut held.insert(bed).testbed;
        let capture = match &job.capture {
            Some(file) => Some(bed.client(CLIENT)?.capture(file)?),
            None => None,
        };
        let batches = job.batches.iter().map(|batch| Ok((point_of(&batch.point)?, &batch.repeats)));
        let batches: Vec<(Point, &Vec<u32>)> = batches.collect::<Result<_, Problem>>()?;
        let done = Run { bed, job: &job, batches: &batches, outlet }.run();
        if let Some(capture) = capture {
            warn_of_drops(capture.stop()?.kernel_drops, outlet)?;
        }
        done
    }
}

fn point_of(fields: &BTreeMap<String, String>) -> Result<Point, Problem> {
    let sweep = fields.get("sweep").map_or("", String::as_str);
    let point = AXES.of_fields(fields, &Point::of_sweep(sweep));
    point
        .ok_or_else(|| Problem::new(Blame::Measurement, format!("this is not a point: {fields:?}")))
}

fn warn_of_drops(drops: u64, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
    if drops > 0 {
        outlet.event(format!("a capture lost {}", units::counted(drops, "frame")))?;
    }
    Ok(())
}

/// A job being done.
struct Run<'a, 'o> {
    bed: &'a mut Testbed<Variant>,
    job: &'a Job,
    batches: &'a [(Point, &'a Vec<u32>)],
    outlet: &'a mut Outlet<'o>,
}

impl Run<'_, '_> {
    fn run(mut self) -> Result<(), Problem> {
        if !self.prepare()? {
            return Ok(());
        }
        let beside = self.begin_download()?;
        for (point, repeats) in self.batches {
            if self.outlet.stopped() {
                break;
            }
            self.measure(point, repeats)?;
        }
        Ok(beside.map_or(Ok(()), Download::end)?)
    }

    /// Where a full queue is asked for, a download that keeps it full.
    fn begin_download(&mut self) -> Result<Option<Download>, Problem> {
        if self.batches.iter().all(|(point, _)| point.queue == Queueing::None) {
            return Ok(None);
        }
        let download = self.bed.download(CLIENT)?;
        if !download.is_steady() {
            self.outlet.event("the concurrent download did not fill the queue".to_owned())?;
        }
        Ok(Some(download))
    }

    /// Each point once, in the order of their first batches.
    fn points(&self) -> Vec<&Point> {
        let mut points: Vec<&Point> = Vec::new();
        for (point, _) in self.batches {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        points
    }

    /// Servers, tickets and cookies, fetched on a path without delay; then the cell's path. False if it
    /// was to end.
    fn prepare(&mut self) -> Result<bool, Error> {
        self.bed.set_path(CLIENT, &Path::default())?;
        let points = self.points().into_iter().cloned().collect::<Vec<_>>();
        for point in &points {
            if self.outlet.stopped() {
                return Ok(false);
            }
            let variant = Variant::from(point);
            let own = self.batches.iter().filter(|(other, _)| other == point);
            let count = own.map(|(_, repeats)| repeats.len()).sum();
            variant.set_up(self.bed)?;
            let tickets = if point.mode.resumes() { count } else { 0 };
            self.bed.prime(&variant, tickets, 1)?;
            self.let_happen(variant)?;
        }
        self.bed.settle()?;
        self.bed.set_path(CLIENT, &self.job.path)?;
        for point in points.iter().filter(|point| point.visit == Visit::Remembered) {
            // Our TCP learns what the path does to its SYN.
            self.bed.prime(&Variant::from(point), 0, 1)?;
        }
        if points.iter().any(|point| point.clock == Clock::Virtual) {
            // What the preparing has set off ends before anything is measured. Waiting is free there.
            std::thread::sleep(ENDING);
        }
        Ok(true)
    }

    fn let_happen(&mut self, variant: Variant) -> Result<(), Error> {
        match self.job.fault {
            None => Ok(()),
            Some(Fault::NewServer) => variant.serve(self.bed),
            Some(Fault::NoFastOpen) => {
                Ok(self.bed.server().sysctl("net.ipv4.tcp_fastopen", "0")?)
            }
        }
    }

    fn measure(&mut self, point: &Point, repeats: &[u32]) -> Result<(), Problem> {
        let variant = Variant::from(point);
        let timeout = self.job.timeout.duration();
        let plans = repeats.iter().filter_map(|_| self.bed.plan(CLIENT, &variant));
        let plans = plans.map(|plan| ClientPlan { timeout, ..plan }).collect();

        let capture = self.bed.capture_at_client(CLIENT)?;
        let attempts = self.bed.connect(CLIENT, plans)?.join()?;
        let (connections, drops) = capture.stop()?;
        warn_of_drops(drops, self.outlet)?;

        let way = Way::of(&self.job.path);
        // All of them are waited for together: one that never comes holds up no other.
        let until = Instant::now() + record_patience(way);
        for (repeat, attempt) in repeats.iter().zip(&attempts) {
            let server = match attempt {
                Ok(outcome) => {
                    let left = until.saturating_duration_since(Instant::now());
                    self.bed.server_record(&variant, outcome.local, left)?
                }
                Err(_) => None,
            };
            let seen = Seen { attempt, server: server.as_ref(), connections: &connections };
            let Job { seed, options, .. } = self.job;
            self.outlet.sample(&sample(point, *repeat, *seed, &seen, way, options))?;
        }
        // Records of attempts that the client gave up, whose port is not known.
        drop(self.bed.log(&variant).map(ServerLog::drain));
        Ok(())
    }
}
