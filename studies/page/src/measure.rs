//! The measuring itself: cells in turn, each a job for who has the lab; every sample is recorded as it
//! comes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use browser::CrossTraffic;
use fault::Problem;
use host::{Attachment, Host, Place, Registry};
use record::{AttachmentKind, Sample};
use study::{Clock, End, Expected, Session, StudyJob, side_by_side, stranger};
use units::counted;

use crate::job::{Batch, HAR, Job, Loads, Planned};
use crate::pages::PageName;
use crate::plan::{Cell, Load, Plan, Series, visits_for};
use crate::point::{Loader, Point, Visit};

/// What a job may take beside its loads.
const PREPARING: Duration = Duration::from_secs(120);
/// What a first load takes beside its bytes and round trips: computation in the page, servers, certificates.
const OVERHEAD: Duration = Duration::from_millis(400);
/// The same of a repeated one.
const REPEATED_OVERHEAD: Duration = Duration::from_millis(100);
/// Time of a load in a guest, whatever its round trips.
const IN_GUEST: Duration = Duration::from_secs(3);
/// How long cross traffic takes to fill the queue, about; with it a load has half of the rate.
const FILLING: Duration = Duration::from_secs(8);
/// What takes longer is said beforehand.
const LONG: Duration = Duration::from_secs(300);
/// The longest that cross traffic takes before and after a load.
const CROSSING: Duration = Duration::from_secs(40);
/// What Chromium takes to start, and once more to lay a page out.
const STARTING: Duration = Duration::from_millis(1500);
/// What of a first visit's bytes a repeated one takes the time of, about: most of the page is in the cache.
const REPEATED: f64 = 0.2;

impl Plan {
    /// How many loads it comes to, and how long they take, about.
    #[must_use]
    pub fn size(&self) -> (u64, Duration) {
        // A plan's words were read when it was made.
        let cells = self.cells().map(|(cells, _)| cells).unwrap_or_default();
        let sizes = self.sizes(&cells);
        let mut time = Duration::ZERO;
        let mut loads = 0;
        for cell in &cells {
            let (series, bytes) = (cell.series(), size_of(&sizes, cell));
            let rounds = u64::from(cell.repeat) * series.len() as u64;
            let each: Duration = series.iter().map(|series| series_time(cell, series, bytes)).sum();
            let lanes = (cell.lanes as u64).min(rounds).max(1);
            time += each * cell.repeat / u32::try_from(lanes).unwrap_or(1);
            loads += cell.points.iter().map(|point| u64::from(cell.loads_of(point))).sum::<u64>();
        }
        (loads, self.clock().side_by_side(time))
    }

    /// The bytes of the cells' pages: each is made once for it.
    fn sizes(&self, cells: &[Cell]) -> Sizes {
        let mut sizes = Sizes::new();
        for Cell { page, .. } in cells {
            let bytes = || self.pages.page(page, self.seed).map_or(0, |page| page.bytes().count());
            sizes.entry(page.clone()).or_insert_with(bytes);
        }
        sizes
    }

    /// Where Chromium is, if a point asks for it.
    fn chromium_of(&self, cells: &[Cell]) -> Result<Option<PathBuf>, Problem> {
        let by_chromium = |point: &Point| point.loader == Loader::Chromium;
        if !cells.iter().flat_map(|cell| &cell.points).any(by_chromium) {
            return Ok(None);
        }
        Ok(Some(chromium::find(self.chromium.as_deref())?))
    }

    /// Carries it out, less what the session has already. Each sample is recorded as it ends.
    ///
    /// # Errors
    /// The lab, a server or the recorder failed. Failed loads are samples, not errors.
    pub(crate) fn run(&self, session: &mut Session<'_>) -> Result<End, Problem> {
        let (cells, impossible) = self.cells()?;
        for (point, reason) in &impossible {
            let what = format!("{} over {} left out: {reason}", point.protocol, point.link);
            session.watcher().warning(&what, None);
        }
        let chromium = self.chromium_of(&cells)?;
        let clock = self.clock();
        let (host, lab) = match clock {
            Clock::Wall => {
                let place = Place::Thread(Registry::new().with(Loads::default()));
                (Host::new(place).granting(study::GRACE), session.lab())
            }
            Clock::Virtual => study::guest_host(&session.lab(), self.seed)?,
        };
        let captures = session.captures().filter(|_| clock == Clock::Wall).map(Path::to_owned);
        if captures.is_none() && session.captures().is_some() {
            session.watcher().warning("captures stay in the guest, and are not kept", None);
        }
        let mut ahead = Ahead::of(self, &cells, session);
        if let Some(said) = beforehand(ahead.loads, ahead.time.total) {
            session.watcher().note(&said);
        }
        let mut jobs = Vec::with_capacity(cells.len());
        for cell in &cells {
            let batches = batches(cell, session);
            if !batches.is_empty() {
                let job = Job {
                    lab,
                    lanes: cell.lanes,
                    path: self.path(cell),
                    cross: cell.cross.name().to_owned(),
                    page: self.pages.page(&cell.page, self.seed)?.to_toml(),
                    batches,
                    timeout: self.timeout,
                    seed: self.seed,
                    chromium: chromium.clone(),
                    captures: captures.clone(),
                    keep_hars: self.keep_hars,
                    options: self.page_options.clone(),
                };
                jobs.push((cell, step(cell), job));
            }
        }
        let asked: Vec<StudyJob<'_, Loads>> = jobs
            .iter()
            .map(|(_, what, job)| StudyJob {
                host: &host,
                what,
                job,
                limit: limit(job),
                remedy: None,
            })
            .collect();
        session.progress(asked.first().map_or("", |job| job.what), &ahead.time);
        let end = side_by_side(clock.lanes(), &asked, session, |session, at, sample, files| {
            let Some((cell, what, _)) = jobs.get(at) else { return Err(stranger(&sample)) };
            record(cell, sample, files, session, &mut ahead)?;
            session.progress(what, &ahead.time);
            Ok(())
        })?;
        Ok(end.with_left(ahead.loads, "load", session.watcher()))
    }
}

/// The bytes of pages.
type Sizes = BTreeMap<PageName, u64>;

fn size_of(sizes: &Sizes, cell: &Cell) -> u64 {
    sizes.get(&cell.page).copied().unwrap_or_default()
}

/// About how long the loads of a series take, one after the other.
fn series_time(cell: &Cell, series: &Series, bytes: u64) -> Duration {
    let starting = match series.points.first().map(|point| point.loader) {
        Some(Loader::Chromium) => STARTING,
        _ => Duration::ZERO,
    };
    let visits = visits_for(cell.loads(series, 0).iter().map(|load| load.point.visit)).into_iter();
    visits.map(|visit| load_time(cell, visit, bytes) + starting).sum()
}

/// Expected time of one load, from bytes and round trips alone.
fn load_time(cell: &Cell, visit: Visit, bytes: u64) -> Duration {
    if cell.points.iter().any(|point| point.clock == Clock::Virtual) {
        return IN_GUEST;
    }
    let rate = cell.down.max(1) as f64;
    let share = if visit == Visit::First { 1.0 } else { REPEATED };
    let sending = Duration::from_secs_f64(bytes as f64 * 8.0 * 1.05 / rate * share);
    let (round_trips, overhead) = beside_bytes(visit);
    let alone = sending + cell.link.rtt() * round_trips + overhead;
    match cell.cross {
        CrossTraffic::None => alone,
        CrossTraffic::Bulk => alone * 2 + FILLING,
    }
}

/// Round trips of a load that are not hidden behind its bytes, and the rest, about: the committed results' medians.
fn beside_bytes(visit: Visit) -> (u32, Duration) {
    match visit {
        Visit::First => (10, OVERHEAD),
        Visit::Closed => (6, REPEATED_OVERHEAD),
        Visit::Kept => (3, REPEATED_OVERHEAD),
    }
}

/// What is yet to be measured.
struct Ahead {
    loads: usize,
    time: Expected,
    sizes: Sizes,
}

impl Ahead {
    fn of(plan: &Plan, cells: &[Cell], session: &Session<'_>) -> Ahead {
        let sizes = plan.sizes(cells);
        let (mut loads, mut time) = (0, Duration::ZERO);
        for cell in cells {
            for point in &cell.points {
                let missing = missing(point, cell, session);
                loads += missing;
                time +=
                    Ahead::each(&sizes, cell, point) * u32::try_from(missing).unwrap_or(u32::MAX);
            }
        }
        Ahead { loads, time: Expected::of(time), sizes }
    }

    /// About what a load adds to the time of the whole.
    fn each(sizes: &Sizes, cell: &Cell, point: &Point) -> Duration {
        let time = load_time(cell, point.visit, size_of(sizes, cell));
        point.clock.side_by_side(time) / u32::try_from(cell.lanes).unwrap_or(1)
    }

    fn passed(&mut self, cell: &Cell, point: &Point) {
        self.loads = self.loads.saturating_sub(1);
        self.time.done += Ahead::each(&self.sizes, cell, point);
    }
}

/// What is said of a session before it begins, where it is long.
fn beforehand(loads: usize, time: Duration) -> Option<String> {
    (time >= LONG).then(|| {
        let time = study::about(time);
        let loads = counted(loads, "load");
        format!("{loads}, about {time}; after Ctrl-C --resume continues with what is missing")
    })
}

fn missing(point: &Point, cell: &Cell, session: &Session<'_>) -> usize {
    let fields = point.fields();
    (0..cell.loads_of(point)).filter(|repeat| !session.is_finished(&fields, *repeat)).count()
}

/// What is to be loaded yet: the series in turns, A B C D A B C D.
fn batches(cell: &Cell, session: &Session<'_>) -> Vec<Batch> {
    let series = cell.series();
    let mut batches = Vec::new();
    for round in 0..cell.repeat {
        for series in &series {
            let planned = |load: Load<'_>| {
                let point = load.point.fields();
                let wanted = !session.is_finished(&point, load.repeat);
                Planned { point, repeat: load.repeat, wanted }
            };
            let loads: Vec<Planned> = cell.loads(series, round).into_iter().map(planned).collect();
            if loads.iter().any(|load| load.wanted) {
                batches.push(Batch { loads, round, returns: cell.returns });
            }
        }
    }
    batches
}

/// Records a sample that a job gave.
fn record(
    cell: &Cell,
    mut sample: Sample,
    files: Vec<Attachment>,
    session: &mut Session<'_>,
    ahead: &mut Ahead,
) -> Result<(), Problem> {
    let point = cell.points.iter().find(|point| point.fields() == sample.point);
    let point = point.ok_or_else(|| stranger(&sample))?;
    point.clock.stamp(&mut sample);
    for Attachment { name, bytes } in files.iter().filter(|file| file.name == HAR) {
        session.attach(&mut sample, name, AttachmentKind::Har, bytes)?;
    }
    session.record(&sample)?;
    ahead.passed(cell, point);
    Ok(())
}

/// The most that a job takes: every load waits for as long as it may.
fn limit(job: &Job) -> Duration {
    let loads: usize = job.batches.iter().map(|batch| batch.loads.len() + 1).sum();
    let loads = u32::try_from(loads).unwrap_or(u32::MAX);
    let beside = if job.cross == CrossTraffic::None.name() { OVERHEAD } else { CROSSING };
    PREPARING.saturating_add((job.timeout.duration() + beside).saturating_mul(loads))
}

fn step(cell: &Cell) -> String {
    let loss = match cell.loss.value() {
        0.0 => String::new(),
        loss => format!(", loss {} %", loss * 100.0),
    };
    let cross = match cell.cross {
        CrossTraffic::None => "",
        CrossTraffic::Bulk => ", beside a download",
    };
    format!("{} over {}{loss}{cross}", cell.page, cell.link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sessions_say_how_long_they_take() {
        let said = |seconds| beforehand(70, Duration::from_secs(seconds));
        assert_eq!(said(299), None);
        assert!(said(300).unwrap().starts_with("70 loads, about 5 minutes; after Ctrl-C --resume"));
        let (loads, time) = Plan::built_in("full").unwrap().size();
        assert!(beforehand(usize::try_from(loads).unwrap(), time).is_some());
        assert_eq!(beforehand(40, Plan::built_in("quick").unwrap().size().1), None);
    }
}
