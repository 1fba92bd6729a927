//! Starting a pump, and talking to it while it runs.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linkmodel::Path;
use packet::{OpenPort, PortOptions};
use rustix::event::EventfdFlags;

use crate::pool::Pools;
use crate::worker::{Command, Mailbox, OpenLink, Worker};
use crate::{
    Error, FinalStats, Mode, Options, Port, QueueWatch, Realtime, Stats, ThreadStats, Timing,
};

/// A link of a pump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(usize);

/// A pump that has yet to start.
pub struct Builder {
    options: Options,
    links: Vec<OpenLink>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let links = self.links.len();
        f.debug_struct("Builder").field("options", &self.options).field("links", &links).finish()
    }
}

/// Bytes that a frame of a link carries if nothing else is said.
const MTU: u32 = 1500;

/// Opens both ports in the calling thread's namespace, for frames that carry at most `mtu` bytes.
fn open(
    options: &Options,
    [a, b]: [Port; 2],
    mtu: u32,
    path: &Path,
    seed: u64,
) -> Result<OpenLink, Error> {
    path.validate()?;
    let size = options.size_for(mtu);
    let ports = PortOptions {
        ring_frames: size.ring_frames,
        frame_bytes: size.frame_bytes,
        vnet_header: options.offload,
        promiscuous: false,
    };
    let (a, b) = (OpenPort::open(a, &ports)?, OpenPort::open(b, &ports)?);
    Ok(OpenLink { a, b, size, path: path.clone(), seed })
}

impl Builder {
    /// A pump without links. They may be added before or after it starts.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Builder { options, links: Vec::new() }
    }

    /// Joins two ports by a link like `path`: forward is from `a` to `b`. Its fates follow from
    /// `seed`; traces and outages count from the pump's start. Interfaces are those of the calling
    /// thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Port`].
    pub fn add_link(&mut self, a: Port, b: Port, path: &Path, seed: u64) -> Result<LinkId, Error> {
        self.links.push(open(&self.options, [a, b], MTU, path, seed)?);
        Ok(LinkId(self.links.len() - 1))
    }

    /// Starts the pump's thread, which serves all links.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::System`]; [`Error::Port`] if it cannot stay on
    /// [`Options::cpu`].
    pub fn start(self) -> Result<Handle, Error> {
        let options = self.options;
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::System { doing: "making an eventfd", source: errno.into() })?;
        let wake = Arc::new(wake);
        let pending = Arc::new(AtomicBool::new(false));
        let (sender, commands) = mpsc::channel();
        let mailbox = Mailbox { commands, pending: Arc::clone(&pending), wake: Arc::clone(&wake) };
        let (ready, started) = mpsc::channel();
        let work = move || match prepare(&options) {
            Ok((pools, mode)) => {
                let _ = ready.send(Ok(mode));
                Worker::new(mailbox, pools, mode).run()
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                FinalStats::default()
            }
        };
        let thread = packet::realtime::spawn("wiretax-pump", work)
            .map_err(|source| Error::System { doing: "starting the pump's thread", source })?;
        let mode = started.recv().map_err(|_| Error::Stopped)??;
        let handle = Handle {
            options,
            mode,
            mailbox: Mutex::new(Mailing { sender, added: 0 }),
            pending,
            wake,
            thread: Some(thread),
        };
        for link in self.links {
            handle.add_open(link)?;
        }
        Ok(handle)
    }
}

/// Sets the calling thread up as the pump's: processor, scheduling, buffers.
fn prepare(options: &Options) -> Result<(Pools, Mode), Error> {
    let cpus = packet::thread::allowed_cpus().len();
    if let Some(cpu) = options.cpu {
        packet::thread::pin(cpu)?;
    }
    let realtime = match options.realtime {
        Realtime::Off => false,
        Realtime::Try => match packet::thread::try_round_robin(packet::realtime::PRIORITY) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!("{error}");
                false
            }
        },
    };
    if !realtime && let Err(error) = packet::thread::ask_for_short_slices() {
        tracing::debug!("{error}");
    }
    packet::thread::set_timer_slack(Duration::from_nanos(1))?;
    let mut pools = Pools::new(options.offload);
    pools.of(options.size_for(MTU))?;
    let spins = may_spin(options.timing, realtime, cpus);
    Ok((pools, Mode { spins, realtime, offload: options.offload, cpus }))
}

/// Spinning on the only processor would keep the nodes from sending what is waited for, and
/// without real-time scheduling the scheduler would charge the pump for it and delay it later.
fn may_spin(timing: Timing, realtime: bool, cpus: usize) -> bool {
    match timing {
        Timing::Block => false,
        Timing::Auto | Timing::Spin => realtime && cpus > 1,
    }
}

/// The sending end of the mailbox, and how many links were added so far.
struct Mailing {
    sender: Sender<Command>,
    added: usize,
}

/// A running pump. Dropping it stops the pump, and with it all its links.
///
/// Its methods may be called from any thread; each waits until the pump has done it, some tens of
/// microseconds.
pub struct Handle {
    options: Options,
    mode: Mode,
    mailbox: Mutex<Mailing>,
    pending: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<FinalStats>>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("options", &self.options).field("mode", &self.mode).finish()
    }
}

impl Handle {
    /// Adds a link, as [`Builder::add_link`] does; its traces and outages count from now.
    ///
    /// # Errors
    /// As [`Builder::add_link`]; [`Error::Stopped`].
    pub fn add_link(&self, a: Port, b: Port, path: &Path, seed: u64) -> Result<LinkId, Error> {
        self.add_link_with_mtu([a, b], MTU, path, seed)
    }

    /// As [`Handle::add_link`], for frames that carry at most `mtu` bytes. Longer ones than
    /// [`Options::frame_bytes`] have buffers of their own, as many as the same memory holds.
    ///
    /// # Errors
    /// As [`Handle::add_link`]; [`Error::NoMemory`].
    pub fn add_link_with_mtu(
        &self,
        ports: [Port; 2],
        mtu: u32,
        path: &Path,
        seed: u64,
    ) -> Result<LinkId, Error> {
        self.add_open(open(&self.options, ports, mtu, path, seed)?)
    }

    fn add_open(&self, link: OpenLink) -> Result<LinkId, Error> {
        let (reply, answer) = mpsc::channel();
        // Held while sending, so that links have their numbers in the order of the mailbox.
        let mut mailing = self.mailing();
        mailing.sender.send(Command::Add(Box::new(link), reply)).map_err(|_| Error::Stopped)?;
        let id = LinkId(mailing.added);
        mailing.added += 1;
        drop(mailing);
        self.ring();
        answer.recv().map_err(|_| Error::Stopped)??;
        Ok(id)
    }

    /// Changes a link's configuration. In force when this returns; frames under way keep their due
    /// times.
    ///
    /// # Errors
    /// [`Error::Config`], and nothing has changed; [`Error::NoSuchLink`]; [`Error::Stopped`].
    pub fn set_path(&self, id: LinkId, path: &Path) -> Result<(), Error> {
        path.validate()?;
        self.ask(|reply| Command::SetPath(id.0, Box::new(path.clone()), reply))?
    }

    /// Begins a link's traces and outages anew: they count from now. In force when this returns.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn restart(&self, id: LinkId) -> Result<(), Error> {
        self.ask(|reply| Command::Restart(id.0, reply))?
    }

    /// Connects a link's ports, or takes them apart: frames under way then are lost, and counted as
    /// [`crate::PumpCounters::refused`]. In force when this returns.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn set_connected(&self, id: LinkId, connected: bool) -> Result<(), Error> {
        self.ask(|reply| Command::SetConnected(id.0, connected, reply))?
    }

    /// What a link and the pump have done so far.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn stats(&self, id: LinkId) -> Result<Stats, Error> {
        self.ask(|reply| Command::Stats(id.0, reply))?
    }

    /// Says when frames last waited in a link's queues, forward then backward: read without asking the pump.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn queues(&self, id: LinkId) -> Result<[QueueWatch; 2], Error> {
        self.ask(|reply| Command::Queues(id.0, reply))?
    }

    /// Forgets a link's release errors, so that those of a new configuration are seen alone.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn clear_release_errors(&self, id: LinkId) -> Result<(), Error> {
        self.ask(|reply| Command::ClearErrors(id.0, reply))?
    }

    /// Takes a link down: frames under way are lost, its ports are closed.
    ///
    /// # Errors
    /// [`Error::NoSuchLink`], [`Error::Stopped`].
    pub fn remove_link(&self, id: LinkId) -> Result<Stats, Error> {
        self.ask(|reply| Command::Remove(id.0, reply))?
    }

    /// What the pump's thread has done so far.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn thread_stats(&self) -> Result<ThreadStats, Error> {
        self.ask(Command::Thread)
    }

    /// How the pump waits and is scheduled.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the pump was asked to be.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Stops the pump; frames under way are lost.
    ///
    /// # Errors
    /// [`Error::Stopped`] if its thread had died.
    pub fn stop(mut self) -> Result<FinalStats, Error> {
        self.end().unwrap_or(Err(Error::Stopped))
    }

    fn end(&mut self) -> Option<Result<FinalStats, Error>> {
        let thread = self.thread.take()?;
        // If the thread is gone already, joining it says so.
        let _ = self.mailing().sender.send(Command::Stop);
        self.ring();
        Some(thread.join().map_err(|_| Error::Stopped))
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = mpsc::channel();
        self.mailing().sender.send(command(reply)).map_err(|_| Error::Stopped)?;
        self.ring();
        answer.recv().map_err(|_| Error::Stopped)
    }

    fn mailing(&self) -> std::sync::MutexGuard<'_, Mailing> {
        // Nothing in it can be half-changed by a panic.
        self.mailbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tells the thread that a command waits, and wakes it if it sleeps.
    fn ring(&self) {
        self.pending.store(true, Ordering::Release);
        // Fails only if the counter is full, and then the thread wakes anyway.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_spins_on_one_processor_or_without_real_time_scheduling() {
        for timing in [Timing::Auto, Timing::Spin] {
            assert!(may_spin(timing, true, 2));
            assert!(!may_spin(timing, true, 1));
            assert!(!may_spin(timing, false, 8));
        }
        assert!(!may_spin(Timing::Block, true, 8));
    }

    #[test]
    fn a_pump_without_links_starts_answers_and_stops() {
        let options = Options { realtime: Realtime::Off, buffers: 16, ..Options::default() };
        let handle = Builder::new(options).start().unwrap();
        assert!(!handle.mode().spins);
        assert!(matches!(handle.stats(LinkId(0)), Err(Error::NoSuchLink)));
        assert_eq!(handle.thread_stats().unwrap().frames, 0);
        let end = handle.stop().unwrap();
        assert!(end.links.is_empty());
    }

    #[test]
    fn a_processor_that_does_not_exist_is_an_error_not_a_hang() {
        let options = Options { cpu: Some(100_000), buffers: 16, ..Options::default() };
        assert!(matches!(Builder::new(options).start(), Err(Error::Port(_))));
    }

    #[test]
    fn a_missing_interface_is_an_error() {
        let mut builder = Builder::new(Options::default());
        let port = || Port::Packet { interface: 0x7fff_fff0 };
        let error = builder.add_link(port(), port(), &Path::default(), 1).unwrap_err();
        assert!(matches!(error, Error::Port(_)), "{error}");
    }
}
