//! Inside a host process: one measurement, with the libraries loaded.

mod clock;
mod loopback;
mod memory;
mod open;
pub(crate) mod pipe;
mod proof;
mod script;
mod setup;
mod slab;
mod socket;
mod tally;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use ::host::{Outlet, Registry, Worker};
use fault::Problem;

use self::loopback::{Hops, machine};
use self::setup::{Gate, Setup, ThreadContexts};
use self::tally::Tally;
use crate::driver::Library;
use crate::job::{Contexts, Described, Job, Locks, Outcome, Reply, Side, Wire, Workload};
use crate::{DriverError, Footprint, LockCounts};

/// Says what a driver says of its library.
pub(crate) struct Describe;

impl Worker for Describe {
    const KIND: &'static str = "describe-driver";
    type Job = PathBuf;
    type Answer = Described;

    fn work(&self, object: PathBuf, _: &mut Outlet<'_>) -> Result<Described, Problem> {
        let library = Library::load(&object)?;
        Ok(library.described().clone())
    }
}

/// Measures with drivers. What it has loaded and made for one job serves the next that differs from it
/// in its extent only: a slice of the same measurement.
#[derive(Default)]
pub(crate) struct Measure {
    ready: Mutex<Option<Ready>>,
}

/// Libraries, and contexts of theirs with their certificates.
struct Ready {
    setup: Setup,
    contexts: Vec<ThreadContexts>,
}

impl Worker for Measure {
    const KIND: &'static str = "measure-drivers";
    type Job = Job;
    type Answer = Reply;

    fn work(&self, job: Job, _: &mut Outlet<'_>) -> Result<Reply, Problem> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let extent = job.extent;
        let serves = |ready: &Ready| {
            ready.setup.job == Job { extent: ready.setup.job.extent, ..job.clone() }
        };
        let made = match ready.take().filter(serves) {
            Some(ready) => Ok(ready),
            None => Ready::of(job),
        };
        let measured = made.and_then(|mut made| {
            made.setup.job.extent = extent;
            let outcome = made.measure();
            *ready = Some(made);
            outcome
        });
        Ok(match measured {
            Ok(outcome) => Reply::Done(Box::new(outcome)),
            Err(DriverError::Unsupported { what }) => Reply::Unsupported(what),
            Err(error) => Reply::Failed(error.to_string()),
        })
    }
}

/// Those who do what [`crate::Supervisor`] asks of a host.
#[must_use]
pub fn workers() -> Registry {
    Registry::new().with(Describe).with(Measure::default()).with(crate::ech::Ech)
}

/// Does one job in this process.
///
/// # Errors
/// If the libraries cannot be loaded or will not do what was asked for.
pub fn measure(job: Job) -> Result<Outcome, DriverError> {
    Ready::of(job)?.measure()
}

impl Ready {
    fn of(job: Job) -> Result<Ready, DriverError> {
        let server = Library::load(&job.server)?;
        let client =
            if job.client == job.server { server.clone() } else { Library::load(&job.client)? };
        setup::refuse(&job, [server.described(), client.described()])?;
        let counter = if job.locks == Locks::Count { locks::Counter::find() } else { None };
        let threads = job.threads.max(1);
        let (before, full_legs) = (Mutex::new(None), AtomicU64::new(0));
        let setup = Setup { job, server, client, counter, before, full_legs };
        let contexts = setup.contexts(threads)?;
        Ok(Ready { setup, contexts })
    }

    fn measure(&mut self) -> Result<Outcome, DriverError> {
        let Ready { setup, contexts } = self;
        *setup.full_legs.get_mut() = 0;
        let mut footprints: Option<[Footprint; 2]> = None;
        let tally = match (setup.job.workload, setup.job.wire) {
            (Workload::Footprint { connections }, _) => {
                let Some(contexts) = contexts.first() else { return Err(DriverError::Stuck) };
                footprints = Some(open::footprint(setup, contexts, connections)?);
                Tally { done: connections as u64, ..Tally::default() }
            }
            (Workload::Bulk { record }, _) => in_threads(setup, contexts, |contexts, gate| {
                open::bulk(setup, contexts, gate, record)
            })?,
            (Workload::Full | Workload::Resume, Wire::Memory) => {
                in_threads(setup, contexts, |contexts, gate| memory::worker(setup, contexts, gate))?
            }
            (Workload::Full | Workload::Resume, Wire::Loopback) => {
                over_loopback(setup, contexts, 0)?
            }
            (Workload::Chain { proxies }, _) => over_loopback(setup, contexts, proxies)?,
        };
        outcome(setup, tally, footprints)
    }
}

fn outcome(
    setup: &Setup,
    tally: Tally,
    footprints: Option<[Footprint; 2]>,
) -> Result<Outcome, DriverError> {
    if tally.done == 0
        && let Some(failure @ DriverError::Unsupported { .. }) = tally.failure
    {
        return Err(failure);
    }
    let before = setup.before.lock().unwrap_or_else(PoisonError::into_inner).take();
    let before = before.unwrap_or_default();
    let locks = |side, before: &LockCounts| {
        setup.counter.as_ref().map(|counter| counter.read(side).since(before))
    };
    let [of_client, of_server] = match footprints {
        Some([client, server]) => [Some(client), Some(server)],
        None => [None, None],
    };
    Ok(Outcome {
        done: tally.done,
        failed: tally.failed,
        failure: tally.failure.map(|failure| failure.to_string()),
        wall_ns: tally.wall.as_nanos() as u64,
        waited_ns: tally.waited.map(|waited| waited.as_nanos() as u64),
        resumed: tally.resumed,
        full_legs: tally.full_legs,
        misreported: tally.misreported,
        bytes: tally.bytes,
        server: Side {
            described: setup.server.described().clone(),
            cpu_ns: tally.server_cpu.as_nanos() as u64,
            locks: locks(locks::Side::Server, &before[1]),
            footprint: of_server,
        },
        client: Side {
            described: setup.client.described().clone(),
            cpu_ns: tally.client_cpu.as_nanos() as u64,
            locks: locks(locks::Side::Client, &before[0]),
            footprint: of_client,
        },
    })
}

/// The same work in as many threads as the job asks for.
fn in_threads(
    setup: &Setup,
    contexts: &[ThreadContexts],
    work: impl Fn(&ThreadContexts, &Gate) -> Tally + Sync,
) -> Result<Tally, DriverError> {
    let gate = Gate::new(setup.job.extent, contexts.len());
    let mut total = Tally::default();
    let (gate, work) = (&gate, &work);
    let works = contexts.iter().map(|contexts| {
        move || {
            let tally = work(contexts, gate);
            setup.server.end_thread();
            setup.client.end_thread();
            tally
        }
    });
    for tally in together(works.collect())? {
        total.add(tally);
    }
    Ok(total)
}

/// Does each piece of work on a thread of its own: all of them, as they wait for each other, or none where a thread
/// cannot be started.
fn together<T: Send>(works: Vec<impl FnOnce() -> T + Send>) -> Result<Vec<T>, DriverError> {
    let all_are_there = OnceLock::<bool>::new();
    thread::scope(|scope| {
        let start = |work| {
            let all_are_there = &all_are_there;
            let work = move || all_are_there.wait().then(work);
            thread::Builder::new().spawn_scoped(scope, work)
        };
        let started: io::Result<Vec<_>> = works.into_iter().map(start).collect();
        // Nobody else sets it.
        let _ = all_are_there.set(started.is_ok());
        let started = started.map_err(machine("starting a thread"))?;
        let ended = started.into_iter().filter_map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        Ok(ended.collect())
    })
}

/// What a thread over TCP has counted.
enum Ended {
    Server(Result<Tally, DriverError>),
    Client(Result<Tally, DriverError>),
}

/// Server threads and as many client threads, over TCP.
fn over_loopback(
    setup: &Setup,
    contexts: &[ThreadContexts],
    proxies: usize,
) -> Result<Tally, DriverError> {
    let threads = contexts.len();
    let shared = setup.job.contexts == Contexts::Shared;
    let hops = proxies + 1;
    // A ticket is good for the context that made it: threads with contexts of their own have ports of
    // their own too.
    let mut opened: Vec<Hops> = Vec::with_capacity(threads);
    for _ in 0..threads {
        let with = opened.first().filter(|_| shared);
        opened.push(Hops::open(hops, with, shared).map_err(machine("listening on loopback"))?);
    }
    let entries: Vec<SocketAddr> =
        opened.iter().filter_map(|hops| hops.addresses.first().copied()).collect();
    let gate = Gate::new(setup.job.extent, threads);
    let running_clients = AtomicUsize::new(threads);
    let mut servers_tally = Tally::default();
    let mut total = Tally::default();
    let (gate, running_clients) = (&gate, &running_clients);
    let over = move || running_clients.load(Ordering::Acquire) == 0;
    let mut works: Vec<Box<dyn FnOnce() -> Ended + Send + '_>> = Vec::with_capacity(2 * threads);
    for (hops, contexts) in opened.into_iter().zip(contexts) {
        works.push(Box::new(move || {
            let served = loopback::serve(setup, contexts, hops, gate, &over);
            setup.server.end_thread();
            setup.client.end_thread();
            Ended::Server(served)
        }));
    }
    for (entry, contexts) in entries.iter().zip(contexts) {
        works.push(Box::new(move || {
            let called = loopback::call(setup, contexts, *entry, gate);
            running_clients.fetch_sub(1, Ordering::Release);
            setup.client.end_thread();
            Ended::Client(called)
        }));
    }
    for ended in together(works)? {
        match ended {
            Ended::Server(served) => servers_tally.add(served?),
            Ended::Client(called) => total.add(called?),
        }
    }
    // The clients count connections; of the servers only what nobody else knows.
    total.server_cpu = servers_tally.server_cpu;
    total.resumed += servers_tally.resumed;
    total.full_legs = servers_tally.full_legs;
    total.misreported += servers_tally.misreported;
    if total.failure.is_none() && total.failed > 0 {
        total.failure = servers_tally.failure;
    }
    Ok(total)
}
