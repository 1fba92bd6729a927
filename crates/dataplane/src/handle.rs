//! Starting an engine, and reading what it does.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use packet::clock::{self, ThreadCpuClock};
use packet::{Pool, PoolOptions};
use rustix::event::EventfdFlags;
use seclink::plane::{HEADROOM, TAILROOM};

use crate::board::Board;
use crate::chain::Part;
use crate::segment::Segment;
use crate::worker::{Ending, Worker};
use crate::{Chain, Error, Mode, Options, Stats, Threads};

/// A thread of an engine.
struct Running {
    board: Arc<Board>,
    ending: Arc<Ending>,
    cpu: Option<ThreadCpuClock>,
    /// Gives its CPU time at its end.
    thread: Option<JoinHandle<Duration>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("runs", &self.thread.is_some()).finish_non_exhaustive()
    }
}

/// A running engine. Dropping it stops it: its ports are closed.
#[derive(Debug)]
pub struct Handle {
    mode: Mode,
    threads: Vec<Running>,
}

/// Starts an engine on a chain of nodes.
///
/// # Errors
/// [`Error::Chain`]; [`Error::NoMemory`]; [`Error::Packet`] if it cannot stay on a processor; [`Error::System`].
pub fn start(chain: Chain, options: &Options) -> Result<Handle, Error> {
    let [forward, backward] = chain.parts()?;
    let [cpu, other] = options.cpus;
    let cpus = packet::thread::allowed_cpus().len();
    let spins = options.spins(cpus);
    let threads = match options.threads {
        Threads::One => vec![(forward.into_iter().chain(backward).collect(), cpu)],
        Threads::PerDirection => vec![(forward, cpu), (backward, other)],
    };
    let mode = Mode { spins, threads: options.threads.count(), cpus };
    let mut handle = Handle { mode, threads: Vec::new() };
    for (parts, cpu) in threads {
        handle.threads.push(run(parts, *options, cpu, spins)?);
    }
    Ok(handle)
}

fn eventfd() -> Result<OwnedFd, Error> {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|errno| Error::System { doing: "making an eventfd", source: errno.into() })
}

fn run(
    parts: Vec<Part>,
    options: Options,
    cpu: Option<usize>,
    spins: bool,
) -> Result<Running, Error> {
    let board = Arc::new(Board::new(&parts));
    let ending = Arc::new(Ending { stop: AtomicBool::new(false), wake: eventfd()? });
    let (own_board, own_ending) = (Arc::clone(&board), Arc::clone(&ending));
    let (ready, started) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("wiretax-engine".to_owned())
        .spawn(move || match prepare(&options, cpu) {
            Ok(pool) => {
                let now = clock::monotonic();
                let segments = parts.into_iter().map(|part| Segment::new(part, now)).collect();
                let worker = Worker::new(segments, pool, own_board, own_ending, spins);
                // Nobody who waits for it is no matter.
                let _ = ready.send(Ok(ThreadCpuClock::of_current_thread()));
                worker.run();
                clock::thread_cpu()
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                Duration::ZERO
            }
        })
        .map_err(|source| Error::System { doing: "starting the engine's thread", source })?;
    let cpu = started.recv().map_err(|_| Error::Stopped)??;
    Ok(Running { board, ending, cpu, thread: Some(thread) })
}

/// Sets the calling thread up as an engine's: processor, timers, buffers.
fn prepare(options: &Options, cpu: Option<usize>) -> Result<std::rc::Rc<Pool>, Error> {
    if let Some(cpu) = cpu {
        packet::thread::pin(cpu)?;
    }
    packet::thread::set_timer_slack(Duration::from_nanos(1))?;
    if let Err(error) = packet::thread::ask_for_short_slices() {
        tracing::debug!("{error}");
    }
    let buffers = options.buffers;
    let pool = PoolOptions {
        buffers,
        frame_bytes: options.frame_bytes,
        headroom: HEADROOM,
        tailroom: TAILROOM,
        vnet_header: false,
    };
    Pool::new(pool).map_err(|source| Error::NoMemory { buffers, source })
}

impl Running {
    /// CPU time so far; `None` if the thread has ended.
    fn cpu_time(&self) -> Option<Duration> {
        self.cpu
            .filter(|_| self.thread.as_ref().is_some_and(|thread| !thread.is_finished()))?
            .read()
    }

    /// Ends the thread: its CPU time, or `None` if it panicked or has ended before.
    fn end(&mut self) -> Option<Duration> {
        let thread = self.thread.take()?;
        self.ending.stop.store(true, Ordering::Release);
        // Fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&self.ending.wake, &1u64.to_ne_bytes());
        thread.join().ok()
    }
}

impl Handle {
    /// How it runs.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// CPU time of its threads so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        self.threads.iter().filter_map(Running::cpu_time).sum()
    }

    /// What it has done so far. Takes no lock; the engine does not notice.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = self.counted();
        stats.cpu = self.cpu_time();
        stats
    }

    fn counted(&self) -> Stats {
        let mut stats = Stats::default();
        self.threads.iter().for_each(|running| running.board.read_into(&mut stats));
        stats
    }

    /// Stops it, and says what it did. Frames that a slow gateway holds are lost.
    ///
    /// # Errors
    /// [`Error::Stopped`] if a thread had died.
    pub fn stop(mut self) -> Result<Stats, Error> {
        let ended: Option<Duration> = self.threads.iter_mut().map(Running::end).sum();
        let mut stats = self.counted();
        stats.cpu = ended.ok_or(Error::Stopped)?;
        Ok(stats)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        for running in &mut self.threads {
            // A thread that panicked has said so.
            let _ = running.end();
        }
    }
}
