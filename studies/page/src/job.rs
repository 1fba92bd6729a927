//! A cell as a job of the crate `host`: data in, a sample per load out. Who does it has lanes of its own,
//! so that it can be a thread of this process, a process, or a machine that is a guest of this one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use browser::{Bed, CrossTraffic, Keeping, Kept, Seen, Side};
use fault::{Fault, OrProblem, Problem};
use host::{Outlet, Registry, Worker};
use lab::LabOptions;
use linkmodel::Path;
use page::{Page, har};
use serde::{Deserialize, Serialize};
use units::{Delay, Time};

use crate::link::begun;
use crate::plan::visits_for;
use crate::point::{Point, Visit};
use crate::sample::{again, sample};
use crate::stalled;

/// How a HAR file is called among a sample's attachments.
pub(crate) const HAR: &str = "load.har";
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The loads that one browser makes one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The loads, in order. If the first is a repeated visit, a first one goes before it.
    pub(crate) loads: Vec<Planned>,
    /// Which round of the cell this is, from 0.
    pub(crate) round: u32,
    /// Repeated visits of each kind per round.
    pub(crate) returns: u32,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    /// Its point, as the fields of a sample.
    pub(crate) point: BTreeMap<String, String>,
    /// Which of the point's loads it is, from 0.
    pub(crate) repeat: u32,
    /// Whether a sample of it is wanted, or it is there for those after it.
    pub(crate) wanted: bool,
}

/// The loads of a cell, in turn on one page and link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// How the lab is to be made, where there is none yet.
    pub(crate) lab: LabOptions,
    /// Loads under way at once.
    pub(crate) lanes: usize,
    /// The link between client and server.
    pub(crate) path: Path,
    /// The name of what else is on it.
    pub(crate) cross: String,
    /// The page, in TOML.
    pub(crate) page: String,
    /// What is loaded, in this order.
    pub(crate) batches: Vec<Batch>,
    /// After how long a load is given up.
    pub(crate) timeout: Delay,
    /// The seed that samples name.
    pub(crate) seed: u64,
    /// Chromium's program, where a point asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chromium: Option<PathBuf>,
    /// Where captures of first loads are kept, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) captures: Option<PathBuf>,
    /// Whether every load keeps its HAR file, not the first of a point alone.
    #[serde(default)]
    pub(crate) keep_hars: bool,
    /// What a command needs beside the point to measure it again.
    pub(crate) options: String,
}

/// Loads pages: a sample for every load, as its series ends. It looks again and again whether it is to
/// end.
#[derive(Clone, Default)]
pub(crate) struct Loads(Arc<Mutex<Option<Held>>>);

/// Lanes, and how they were asked for.
struct Held {
    options: LabOptions,
    lanes: usize,
    hosts: usize,
    bed: Bed,
}

/// Those who do the study's jobs in a process of its own: it must be in a lab ([`lab::enter`]).
#[must_use]
pub fn workers() -> Registry {
    Registry::new().with(Loads::default())
}

impl Worker for Loads {
    const KIND: &'static str = "page-cell";
    type Job = Job;
    type Answer = ();

    fn work(&self, job: Job, outlet: &mut Outlet<'_>) -> Result<(), Problem> {
        let page = Page::from_toml(&job.page)?;
        let hosts = page.hosts().len();
        let lanes = job.lanes.min(job.batches.len()).max(1);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |held: &Held| held.options == job.lab && held.lanes >= lanes && held.hosts >= hosts;
        let bed = match held.take() {
            Some(bed) if fits(&bed) => bed,
            other => {
                drop(other);
                let bed = Bed::new(job.lab, lanes, hosts)?;
                Held { options: job.lab, lanes, hosts, bed }
            }
        };
        let bed = &mut held.insert(bed).bed;
        let cross: CrossTraffic = job.cross.parse().blame(Fault::Measurement)?;
        bed.set_cross_traffic(cross)?;
        for batches in job.batches.chunks(lanes) {
            if outlet.stopped() {
                break;
            }
            together(bed, &page, &job, batches, outlet)?;
        }
        Ok(())
    }
}

/// One batch on each lane, all at once.
fn together(
    bed: &mut Bed,
    page: &Page,
    job: &Job,
    batches: &[Batch],
    outlet: &mut Outlet<'_>,
) -> Result<(), Problem> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut under_way = Vec::with_capacity(batches.len());
    let mut served = Vec::with_capacity(batches.len());
    // A browser that starts takes time from loads that are under way: none is yet.
    for (lane, batch) in bed.lanes().iter_mut().zip(batches) {
        let points = points_of(batch)?;
        let Some(first) = points.first() else { continue };
        let setting = first.setting(job.timeout, job.chromium.as_deref());
        lane.set_path(&begun(&job.path, job.seed, batch.round))?;
        lane.keep_secrets(keeps(job, batch));
        lane.serve(page, &setting)?;
        served.push((lane, batch, points, setting));
    }
    for (lane, batch, points, setting) in served {
        let visits = visits_for(points.iter().map(|point| point.visit));
        let before = visits.iter().map(|visit| visit.before()).collect();
        let keeping = keeps(job, batch).then(|| lane.keep_frames(Side::Server)).transpose()?;
        let loads = lane.visit(page, &setting, before, Arc::clone(&stop))?;
        under_way.push((batch, points, keeping, loads));
    }
    // Each is given as it ends, not as all have.
    while !under_way.is_empty() {
        if outlet.stopped() {
            stop.store(true, Ordering::Relaxed);
        }
        let Some(at) = under_way.iter().position(|(.., loads)| loads.is_finished()) else {
            std::thread::sleep(LOOK);
            continue;
        };
        let (batch, points, keeping, loads) = under_way.remove(at);
        let seen = loads.join().map_err(browser::Error::from)??;
        let mut kept = keeping.map(Keeping::stop).transpose()?;
        // A first visit that nobody asked for.
        let unasked = usize::from(points.first().is_some_and(|point| point.visit != Visit::First));
        let asked = batch.loads.iter().zip(&points);
        for ((load, point), seen) in asked.zip(seen.iter().skip(unasked)) {
            if load.wanted {
                give(job, page, (batch, load, point), (seen, &mut kept), outlet)?;
            }
        }
    }
    Ok(())
}

/// Whether a capture is kept of a batch's loads.
fn keeps(job: &Job, batch: &Batch) -> bool {
    job.captures.is_some() && batch.round == 0
}

/// The points of a batch's loads, in their order.
fn points_of(batch: &Batch) -> Result<Vec<Point>, Problem> {
    let of = |load: &Planned| {
        let fields = &load.point;
        let problem =
            || Problem::new(Fault::Measurement, format!("this is not a point: {fields:?}"));
        Point::of_fields(fields).ok_or_else(problem)
    };
    batch.loads.iter().map(of).collect()
}

/// Gives the sample of a load; a first load of a point has its HAR beside, or every load. What was kept
/// of all loads of the batch goes to the first of them: without its handshakes nobody can read the others.
fn give(
    job: &Job,
    page: &Page,
    (batch, load, point): (&Batch, &Planned, &Point),
    (seen, kept): (&Seen, &mut Option<Kept>),
    outlet: &mut Outlet<'_>,
) -> Result<(), Problem> {
    if load.repeat == 0 || job.keep_hars {
        let since = seen.ended.duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = Time::ZERO + since.saturating_sub(seen.load_time().duration());
        let protocol = point.protocol.to_string();
        let (version, stalled) = (env!("CARGO_PKG_VERSION"), stalled::by_object(page, seen));
        let stalled = har::Stalled { on_windows: &stalled.on_windows, on_tcp: &stalled.on_tcp };
        let about = har::About { begin, protocol: &protocol, version, stalled };
        let text = har::write(page, &seen.loaded, &about).to_string();
        outlet.attachment(HAR, text.into_bytes())?;
    }
    let again = again(batch.round + 1, batch.returns, &job.options);
    let mut sample = sample(point, load.repeat, job.seed, seen, job.timeout, &again);
    if let (Some(kept), Some(folder)) = (kept.take(), &job.captures) {
        crate::flow::keep(&mut sample, &kept, folder)?;
    }
    outlet.sample(&sample)?;
    Ok(())
}
