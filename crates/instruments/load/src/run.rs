//! A run: the workers' threads, their progress, and what they come to together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::Template;
use crate::connection::Tools;
use crate::failure::{Alike, FailureCount};
use crate::report::Course;
use crate::tally::Tally;
use crate::worker::{Place, Reported, Stops, Worker, epoll_set};
use crate::{Error, Options, Report, address, socket};

/// Stops a run from elsewhere. Clones control the same run.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<AtomicBool>);

impl Control {
    /// Ends the run at once. What was measured is kept.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether that was asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// The time that is left by duration or count, if that can be told.
    pub left: Option<Duration>,
    /// Connections completed so far; in HTTP/2 requests.
    pub completed: u64,
    /// Connections failed so far; in HTTP/2 requests, too.
    pub failed: u64,
    /// Connections under way.
    pub open: u64,
}

/// How often progress is told.
const BETWEEN: Duration = Duration::from_millis(100);
/// A run in which all fails alike ends after this time, and this many failures.
const PATIENCE: Duration = Duration::from_secs(1);
const ENOUGH: u64 = 5;

/// Loads a server, and says what came of it.
///
/// # Errors
/// [`Error`] when the run cannot be made. What happens to connections is in the report.
pub fn run(options: &Options, control: &Control) -> Result<Report, Error> {
    run_with(options, control, |_| {})
}

/// As [`run`]; `progress` is called ten times a second.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    options: &Options,
    control: &Control,
    mut progress: impl FnMut(Progress),
) -> Result<Report, Error> {
    options.check()?;
    let connections = options.connections();
    // A socket for each connection; an epoll set and a timer for each thread; some for the rest.
    let threads = options.workers();
    let wanted = connections + 2 * threads + 64;
    let may = socket::raise_file_limit(wanted as u64);
    if may < wanted as u64 {
        return Err(Error::Files { connections, wanted, may });
    }
    let candidates = options.candidates();
    let source = options.sources.first().copied();
    let Some(chosen) = address::choose(&candidates, source, options.timeout, control) else {
        return Err(Error::Options("there is no address to connect to".to_owned()));
    };
    let (address, hopeless) = (chosen.address, AtomicBool::new(false));
    let mut stopped_early = None;
    let template = Template::new(options)?;
    let reported: Vec<Reported> = (0..threads).map(|_| Reported::default()).collect();
    let configs: Vec<_> =
        (0..threads).map(|_| template.configure()).collect::<Result<_, Error>>()?;
    let (epoch, ready) = (OnceLock::new(), AtomicUsize::new(0));
    let began = Instant::now();
    let tallies = thread::scope(|scope| {
        let workers: Vec<_> = reported
            .iter()
            .zip(configs)
            .enumerate()
            .map(|(worker, (reported, config))| {
                let place = Place { worker, of: threads };
                let (name, epoch, ready) = (template.name.clone(), &epoch, &ready);
                let stops = Stops { interrupted: &control.0, hopeless: &hopeless };
                let work = move || {
                    warm_up(&config);
                    ready.fetch_add(1, Ordering::AcqRel);
                    while ready.load(Ordering::Acquire) < threads && !control.is_stopped() {
                        thread::sleep(Duration::from_micros(100));
                    }
                    let epoch = *epoch.get_or_init(Instant::now);
                    let tally = epoll_set().and_then(|epoll| {
                        let tools = Tools { options, address, config, name, epoll, epoch };
                        Worker::new(tools, place, reported)?.run(stops)
                    });
                    reported.ended.store(true, Ordering::Release);
                    tally
                };
                thread::Builder::new().name(format!("load {worker}")).spawn_scoped(scope, work)
            })
            .collect();
        if let Some(Err(cause)) = workers.iter().find(|worker| worker.is_err()) {
            control.stop();
            return Err(Error::System(format!("a thread cannot be started: {cause}")));
        }
        while !reported.iter().all(|reported| reported.ended.load(Ordering::Acquire)) {
            thread::sleep(BETWEEN);
            progress(progress_of(options, began.elapsed(), &reported));
            if stopped_early.is_none() && began.elapsed() >= PATIENCE {
                stopped_early = all_fail_alike(&reported);
                hopeless.store(stopped_early.is_some(), Ordering::Relaxed);
            }
        }
        let ended = workers.into_iter().flatten().map(|worker| match worker.join() {
            Ok(tally) => tally,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<Vec<Tally>, Error>>()
    })?;
    let mut tallies = tallies.into_iter();
    let Some(mut all) = tallies.next() else {
        return Err(Error::System("no worker ran".to_owned()));
    };
    tallies.for_each(|tally| all.merge(tally));
    let interrupted = control.is_stopped();
    let course = Course { address, tried: chosen.tried, interrupted, stopped_early };
    Ok(Report::new(options, all, course))
}

/// The failure that all connections have in common, if none has succeeded, more will fail likewise, and there
/// were enough to say so.
fn all_fail_alike(reported: &[Reported]) -> Option<FailureCount> {
    let sum = |of: fn(&Reported) -> u64| reported.iter().map(of).sum::<u64>();
    let count = sum(|reported| reported.failed.load(Ordering::Relaxed));
    if count < ENOUGH || sum(|reported| reported.completed.load(Ordering::Relaxed)) > 0 {
        return None;
    }
    let alike = reported.iter().filter_map(|one| one.alike.lock().ok().map(|alike| alike.clone()));
    match alike.fold(Alike::default(), Alike::merge) {
        Alike::All(stage, kind, detail) if kind.is_lasting(&detail) => {
            Some(FailureCount { stage, kind, detail, count })
        }
        _ => None,
    }
}

/// The first random bytes of a thread take up to 0.1 s (aws-lc gathers entropy); no connection should
/// wait for them.
fn warm_up(config: &rustls::ClientConfig) {
    // Where there are none, the first connection says so.
    let _ = config.crypto_provider().secure_random.fill(&mut [0; 32]);
}

fn progress_of(options: &Options, elapsed: Duration, reported: &[Reported]) -> Progress {
    let sum = |of: fn(&Reported) -> u64| reported.iter().map(of).sum::<u64>();
    let completed = sum(|reported| reported.completed.load(Ordering::Relaxed));
    let failed = sum(|reported| reported.failed.load(Ordering::Relaxed));
    let by_clock = options.duration.map(|duration| duration.saturating_sub(elapsed));
    let done = completed + failed;
    let by_count = options.count.filter(|_| done > 0).map(|count| {
        let left = count.saturating_sub(done) as f64 / done as f64;
        Duration::try_from_secs_f64(elapsed.as_secs_f64() * left).unwrap_or(Duration::MAX)
    });
    let left = match (by_clock, by_count) {
        (Some(clock), Some(count)) => Some(clock.min(count)),
        (clock, count) => clock.or(count),
    };
    let open = sum(|reported| reported.open.load(Ordering::Relaxed));
    Progress { elapsed, left, completed, failed, open }
}
