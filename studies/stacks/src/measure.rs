//! Carrying a plan out: many short slices in rounds over all libraries, each sample recorded as it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fault::{Fault, Problem};
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use study::{End, Expected, Session};
use tls_drivers::hosts::{HostFailure, Hosts, ProgramJob};
use tls_drivers::{Extent, Identity, Job, Key};

use crate::about;
use crate::plan::{Cell, Expanded};
use crate::point::{Point, Tool};
use crate::roster::{Library, Roster};
use crate::sample::{Answer, Verdict, label, sample, value};

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// Slices that are samples of something.
    pub good: u64,
    /// Slices that failed.
    pub failed: u64,
}

/// A library whose hosts died this often in a row is left alone; to hang counts twice.
const PATIENCE: u32 = 3;

/// A point of which so many slices failed in a row is left alone.
pub(crate) const FAILURES: u32 = 3;

/// A host may take so much longer than expected, and so long besides, before it is ended.
const SLOWER: u32 = 8;
const BESIDE: Duration = Duration::from_secs(20);

/// Within so long a signal has reached every process.
const MOMENT: Duration = Duration::from_millis(50);

/// What a run needs.
pub struct Bench<'a> {
    /// Who runs the jobs that measure.
    pub hosts: &'a dyn Hosts,
    /// The libraries that are measured.
    pub roster: &'a Roster,
    /// Written into samples.
    pub seed: u64,
    /// Cores that may be used.
    pub cores: usize,
}

impl Bench<'_> {
    /// Carries out `plan`, less what is finished already. A library that fails, crashes, hangs or
    /// gives an invalid answer is a sample and a warning, and the others continue.
    ///
    /// # Errors
    /// A sample cannot be written, or no certificate could be made.
    pub fn run(&self, plan: &Expanded, session: &mut Session<'_>) -> Result<Ended, Problem> {
        let libraries = about::named(self.roster, &plan.libraries());
        // A runtime's program may have to be built first, and a busy machine takes long to say what its locks
        // cost: neither is to take the time of what is measured.
        let (programs, drivers): (Vec<_>, Vec<_>) =
            libraries.into_iter().enumerate().partition(|(_, library)| library.is_program());
        about::record_libraries(self.hosts, &drivers, self.seed, session)?;
        let mut run = Run {
            bench: self,
            identities: BTreeMap::new(),
            broken: BTreeMap::new(),
            missing: BTreeSet::new(),
            reported: BTreeSet::new(),
            expected: Expected::of(remaining(plan, session)),
            session,
            ended: Ended { end: End::Complete, good: 0, failed: 0 },
        };
        for cell in &plan.cells {
            if let Some(end) = run.cell(cell)? {
                run.ended.end = end;
                break;
            }
        }
        let Run { session, mut ended, .. } = run;
        if ended.end != End::Interrupted {
            about::record_libraries(self.hosts, &programs, self.seed, session)?;
            about::record_machine(self.hosts, self.cores, self.seed, session)?;
            if session.interrupted() {
                ended.end = End::Interrupted;
            }
        }
        Ok(ended)
    }
}

fn is_finished(point: &Point, repeat: u32, session: &Session<'_>) -> bool {
    session.is_finished(&point.fields(), repeat)
}

/// Time of what is yet to be measured, about.
fn remaining(plan: &Expanded, session: &Session<'_>) -> Duration {
    let of = |cell: &Cell| -> Duration {
        let point = |point: &Point| {
            let left = (0..cell.repeat).filter(|n| !is_finished(point, *n, session)).count();
            let once = if left > 0 { point.expected_once(cell.extent) } else { Duration::ZERO };
            once + point.expected(cell.extent) * u32::try_from(left).unwrap_or(u32::MAX)
        };
        cell.points.iter().map(point).sum()
    };
    plan.cells.iter().map(of).sum()
}

/// What is to be done at a point.
enum Work {
    /// By a host that loads both libraries.
    Drivers(Box<Job>),
    /// By a runtime's program.
    Program(Box<ProgramJob>),
}

struct Run<'a, 's> {
    bench: &'a Bench<'a>,
    identities: BTreeMap<Key, Identity>,
    /// How often in a row a library's hosts broke.
    broken: BTreeMap<String, u32>,
    /// Tools that this machine lacks.
    missing: BTreeSet<Tool>,
    /// Warnings that were given.
    reported: BTreeSet<String>,
    session: &'a mut Session<'s>,
    expected: Expected,
    ended: Ended,
}

/// A slice to be measured.
#[derive(Debug, Clone, Copy)]
struct Slice {
    extent: Extent,
    /// Its round: the sample's `repeat`.
    repeat: u32,
    /// How many slices in a row failed before it.
    failed_before: u32,
    /// How many of its point come after it.
    after: u32,
}

/// What a slice says of those of its point that come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// It failed; the next may do better.
    Failed,
    /// What cannot be done once cannot be done twice.
    Over,
}

/// The points in the order of one round: drawn anew for each, so that none always follows the same other.
/// The first has the plan's, which is that of the report's rows.
fn order_of(points: &[Point], seed: u64, round: u32) -> Vec<&Point> {
    let mut order: Vec<&Point> = points.iter().collect();
    if round == 0 {
        return order;
    }
    order.shuffle(&mut Pcg64::new(u128::from(seed), u128::from(round)));
    order
}

impl Run<'_, '_> {
    /// Why to stop, if there is a reason.
    fn cell(&mut self, cell: &Cell) -> Result<Option<End>, Problem> {
        let end = self.rounds(cell);
        self.bench.hosts.end_kept();
        end
    }

    fn rounds(&mut self, cell: &Cell) -> Result<Option<End>, Problem> {
        // How often in a row each point failed; those that need no further try have failed often enough.
        let mut failed: BTreeMap<&Point, u32> = BTreeMap::new();
        for repeat in 0..cell.repeat {
            for point in order_of(&cell.points, self.bench.seed, repeat) {
                if is_finished(point, repeat, self.session) {
                    continue;
                }
                if let Some(end) = self.session.stop() {
                    return Ok(Some(end));
                }
                let expected = point.expected(cell.extent);
                let failed_before = failed.get(point).copied().unwrap_or_default();
                if failed_before < FAILURES && !self.is_given_up(point) {
                    self.session.progress(&point.title(), &self.expected);
                    let left = (repeat + 1..cell.repeat)
                        .filter(|n| !is_finished(point, *n, self.session))
                        .count();
                    let after = u32::try_from(left).unwrap_or(u32::MAX);
                    let slice = Slice { extent: cell.extent, repeat, failed_before, after };
                    let failures = match self.measure(point, slice)? {
                        Next::GoOn => 0,
                        Next::Failed => failed_before + 1,
                        Next::Over => FAILURES,
                    };
                    failed.insert(point, failures);
                }
                self.expected.done += expected;
            }
        }
        Ok(None)
    }

    fn is_given_up(&self, point: &Point) -> bool {
        let broken = |name: &String| self.broken.get(name).is_some_and(|times| *times >= PATIENCE);
        broken(&point.library) || broken(&point.client) || self.missing.contains(&point.tool)
    }

    /// Measures a slice.
    fn measure(&mut self, point: &Point, slice: Slice) -> Result<Next, Problem> {
        let Slice { extent, repeat, .. } = slice;
        let Some(job) = self.work(point, extent)? else { return Ok(Next::Over) };
        let limit = point.expected(extent) * SLOWER + BESIDE;
        let hosts = self.bench.hosts;
        let (joules, stolen) = (hosts.joules(), hosts.stolen());
        let reply = |reply| Answer::Reply(Box::new(reply));
        let answer = match (&job, point.tool) {
            (Work::Drivers(job), Tool::Host) if point.is_sliced(extent) => {
                hosts.run_slice(job, limit, &|| self.session.interrupted()).map(reply)
            }
            (Work::Drivers(job), Tool::Host) => {
                hosts.run(job, limit, &|| self.session.interrupted()).map(reply)
            }
            (Work::Drivers(job), Tool::Callgrind) => {
                hosts.count(job, limit).map(|counted| Answer::Counted(Box::new(counted)))
            }
            (Work::Program(job), _) => hosts.run_program(job).map(reply),
        };
        let answer = match answer {
            Err(HostFailure::Missing { what, remedy }) => {
                self.missing.insert(point.tool);
                self.warn_once(&what, Some(remedy));
                return Ok(Next::Over);
            }
            // Ctrl-C reaches the host too: its death then is no result.
            Err(_) if self.interrupted_soon() => return Ok(Next::GoOn),
            other => other.unwrap_or_else(Answer::Failure),
        };
        let (mut sample, verdict) = sample(point, extent, repeat, self.bench.seed, &answer);
        if let Some(used) = joules.zip(hosts.joules()).map(|(before, after)| after - before) {
            // The counter wraps around now and then.
            if used >= 0.0 {
                sample.values.insert(value::JOULES.to_owned(), used);
            }
        }
        if let Some(taken) = stolen.zip(hosts.stolen()).map(|(from, to)| to.saturating_sub(from)) {
            sample.values.insert(value::STOLEN.to_owned(), taken.as_secs_f64() * 1e3);
        }
        let next = match verdict {
            Verdict::Good => Next::GoOn,
            Verdict::Impossible => Next::Over,
            Verdict::Bad | Verdict::Broken => Next::Failed,
        };
        let ends = next == Next::Failed && slice.failed_before + 1 >= FAILURES && slice.after > 0;
        if ends {
            sample.values.insert(value::LEFT_OUT.to_owned(), f64::from(slice.after));
        }
        self.session.record(&sample)?;
        self.judge(point, verdict, &sample);
        if ends {
            let what = format!(
                "{}: {FAILURES} slices in a row failed; the other {} are left out",
                point.title(),
                slice.after
            );
            self.warn_once(&what, Some(&format!("`{}` measures it alone", sample.command)));
        }
        Ok(next)
    }

    /// Whether the user stops, or has just done so: the signal reaches all processes, in no order.
    fn interrupted_soon(&self) -> bool {
        if !self.session.interrupted() {
            std::thread::sleep(MOMENT);
        }
        self.session.interrupted()
    }

    fn identity(&mut self, key: Key) -> Result<Identity, Problem> {
        if let Some(identity) = self.identities.get(&key) {
            return Ok(identity.clone());
        }
        let made = self.bench.hosts.identity(key).map_err(|reason| {
            let what = format!("no certificate with a {key} key could be made: {reason}");
            Problem::new(Fault::Measurement, what)
        })?;
        Ok(self.identities.entry(key).or_insert(made).clone())
    }

    fn work(&mut self, point: &Point, extent: Extent) -> Result<Option<Work>, Problem> {
        let roster = self.bench.roster;
        let Some(server) = roster.find(&point.library) else { return Ok(None) };
        if server.is_program() {
            let identity = self.identity(point.suite.key)?;
            return Ok(Some(Work::Program(Box::new(ProgramJob {
                server: point.library.clone(),
                client: point.client.clone(),
                workload: point.workload,
                suite: point.suite,
                threads: point.threads,
                warm_up: point.warm_up().unwrap_or_default(),
                keep: point.is_kept(),
                extent,
                identity,
            }))));
        }
        let client = roster.find(&point.client).and_then(Library::object).cloned();
        let (Some(server), Some(client)) = (server.object().cloned(), client) else {
            return Ok(None);
        };
        let identity = self.identity(point.suite.key)?;
        Ok(Some(Work::Drivers(Box::new(Job {
            server,
            client,
            workload: point.workload,
            wire: point.wire,
            suite: point.suite,
            threads: point.threads,
            tickets: point.tickets,
            sessions: point.sessions,
            contexts: point.contexts,
            locks: point.locks,
            extent,
            identity,
        }))))
    }

    fn judge(&mut self, point: &Point, verdict: Verdict, sample: &record::Sample) {
        if verdict == Verdict::Good {
            self.broken.remove(&point.library);
            self.ended.good += 1;
            return;
        }
        self.ended.failed += 1;
        let why = sample.labels.get(label::FAILURE).cloned().unwrap_or_default();
        let unsupported = matches!(&sample.outcome, record::Outcome::Failed { reason } if reason == "unsupported");
        if !unsupported {
            self.warn_once(&format!("{}: {why}", point.title()), None);
        }
        if verdict == Verdict::Broken {
            let times = self.broken.entry(point.library.clone()).or_default();
            let before = *times;
            // To wait for an answer that does not come costs more than a crash.
            let hung = matches!(sample.outcome, record::Outcome::TimedOut { .. });
            *times += if hung { 2 } else { 1 };
            if before < PATIENCE && *times >= PATIENCE {
                let name = point.library.clone();
                self.warn_once(
                    &format!("{name} broke again and again and is left out from here on"),
                    Some(&format!("`wiretax stacks --libraries {name}` tries it alone")),
                );
            }
        }
    }

    fn warn_once(&mut self, what: &str, remedy: Option<&str>) {
        if self.reported.insert(what.to_owned()) {
            self.session.watcher().warning(what, remedy);
        }
    }
}
