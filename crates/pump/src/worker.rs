//! The pump's thread: its loop, and what it is told.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use linkmodel::Path;
use packet::clock::{self, RealtimeOffset};
use packet::{BATCH, OpenPort, Poller, Pool, SendBatch};
use units::Time;

use crate::direction::{Direction, Turn};
use crate::options::Size;
use crate::pace::{Pacer, Wait};
use crate::pool::Pools;
use crate::queue::QueueWatch;
use crate::stats::{Mode, Stats, ThreadStats};
use crate::{Error, FinalStats};

/// A link whose ports are open.
pub(crate) struct OpenLink {
    pub(crate) a: OpenPort,
    pub(crate) b: OpenPort,
    pub(crate) size: Size,
    pub(crate) path: Path,
    pub(crate) seed: u64,
}

/// What the thread is told to do. Links go by the order in which they were added.
pub(crate) enum Command {
    Add(Box<OpenLink>, Sender<Result<(), Error>>),
    SetPath(usize, Box<Path>, Sender<Result<(), Error>>),
    Restart(usize, Sender<Result<(), Error>>),
    SetConnected(usize, bool, Sender<Result<(), Error>>),
    Stats(usize, Sender<Result<Stats, Error>>),
    Queues(usize, Sender<Result<[QueueWatch; 2], Error>>),
    ClearErrors(usize, Sender<Result<(), Error>>),
    Remove(usize, Sender<Result<Stats, Error>>),
    Thread(Sender<ThreadStats>),
    Stop,
}

/// How the thread is reached.
pub(crate) struct Mailbox {
    pub(crate) commands: Receiver<Command>,
    /// Set when a command waits; looked at once in a turn.
    pub(crate) pending: Arc<AtomicBool>,
    /// An eventfd that ends a sleep.
    pub(crate) wake: Arc<OwnedFd>,
}

/// Places in the poll set.
const WAKE: usize = 0;

struct LiveLink {
    ports: [OpenPort; 2],
    directions: [Direction; 2],
    pool: Rc<Pool>,
    /// Places of the two ports in the poll set.
    places: [usize; 2],
    broken: [bool; 2],
}

/// A link's place: live, or as it was when it was removed.
enum Slot {
    Live(Box<LiveLink>),
    Gone(Box<Stats>),
}

pub(crate) struct Worker {
    slots: Vec<Slot>,
    pools: Pools,
    pacer: Pacer,
    poller: Poller,
    batch: SendBatch,
    mailbox: Mailbox,
    offset: RealtimeOffset,
    housekeeping: Time,
    has_tap: bool,
    started: Time,
    thread: ThreadStats,
}

/// How often the offset between the clocks is measured again.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// How often a spinning pump looks at TAP devices, which have no ring to look into.
const TAP_GLANCE: Duration = Duration::from_micros(5);

impl Worker {
    pub(crate) fn new(mailbox: Mailbox, pools: Pools, mode: Mode) -> Self {
        let now = clock::monotonic();
        let mut worker = Worker {
            slots: Vec::new(),
            pools,
            pacer: Pacer::new(mode.spins, mode.realtime, now),
            poller: Poller::new(),
            batch: SendBatch::new(BATCH),
            mailbox,
            offset: RealtimeOffset::measure(),
            housekeeping: now,
            has_tap: false,
            started: now,
            thread: ThreadStats { mode, ..ThreadStats::default() },
        };
        worker.rebuild_poll_set();
        worker
    }

    /// Moves frames until told to stop.
    pub(crate) fn run(mut self) -> FinalStats {
        loop {
            if self.mailbox.pending.load(Ordering::Acquire) && !self.obey() {
                return self.finish();
            }
            let now = clock::monotonic();
            if now.saturating_since(self.housekeeping) >= HOUSEKEEPING {
                self.offset = RealtimeOffset::measure();
                self.housekeeping = now;
            }
            let next_due = self.turn(now);
            self.wait(next_due);
        }
    }

    /// One turn over all links; the result is when something is next due.
    fn turn(&mut self, now: Time) -> Option<Time> {
        self.thread.turns += 1;
        let mut next_due: Option<Time> = None;
        for slot in &mut self.slots {
            let Slot::Live(link) = slot else { continue };
            let [a, b] = &mut link.ports;
            let [forward, backward] = &mut link.directions;
            let (offset, pool, batch) = (self.offset, &link.pool, &mut self.batch);
            let there = forward.turn(a, b, now, offset, pool, batch);
            let back = backward.turn(b, a, now, offset, pool, batch);
            for event in [forward.next_event(), backward.next_event()].into_iter().flatten() {
                next_due = Some(next_due.map_or(event, |due| due.min(event)));
            }
            for (side, turn) in [there, back].iter().enumerate() {
                count(&mut self.thread, turn);
                if turn.took {
                    self.pacer.frame_came(now);
                }
                if turn.broken && !link.broken[side] {
                    link.broken[side] = true;
                    self.poller.disable(link.places[side]);
                    tracing::warn!("a link's TAP device is gone; its frames are no longer taken");
                }
            }
        }
        next_due
    }

    /// Waits as the pacer says.
    fn wait(&mut self, next_due: Option<Time>) {
        if self.any_ring_ready() {
            // More frames wait: only a rest may come between.
            if let Wait::Rest(pause) = self.pacer.plan(clock::monotonic(), Some(Time::ZERO)) {
                self.rest(pause);
            }
            return;
        }
        let now = clock::monotonic();
        match self.pacer.plan(now, next_due) {
            Wait::No => {}
            Wait::Rest(pause) => self.rest(pause),
            Wait::Spin { until } => self.spin(now, until),
            Wait::Sleep { until } => self.sleep(now, until),
        }
    }

    fn any_ring_ready(&self) -> bool {
        self.slots.iter().any(|slot| match slot {
            Slot::Live(link) => link.ports.iter().any(OpenPort::is_ready),
            Slot::Gone(_) => false,
        })
    }

    fn rest(&mut self, pause: Duration) {
        let from = clock::monotonic();
        std::thread::sleep(pause);
        self.thread.rested += clock::monotonic().saturating_since(from);
    }

    /// Looks at clock, rings and mailbox until `until`; the pacer has seen to it that this is
    /// allowed and short.
    fn spin(&mut self, from: Time, until: Time) {
        let mut glance = from + TAP_GLANCE;
        let mut now = from;
        while now < until && !self.any_ring_ready() && !self.mailbox.pending.load(Ordering::Relaxed)
        {
            std::hint::spin_loop();
            now = clock::monotonic();
            if self.has_tap && now >= glance {
                self.thread.wait_calls += 1;
                if self.poller.wait(Some(Duration::ZERO)).unwrap_or(true) {
                    self.look_for_errors();
                    break;
                }
                glance = now + TAP_GLANCE;
            }
        }
        self.pacer.spun(from, now);
        self.thread.spun += now.saturating_since(from);
    }

    fn sleep(&mut self, from: Time, until: Option<Time>) {
        self.thread.wait_calls += 1;
        let timeout = until.map(|until| until.saturating_since(from));
        let ready = match self.poller.wait(timeout) {
            Ok(ready) => ready,
            Err(error) => {
                tracing::warn!("the pump cannot wait ({error}); it sleeps a millisecond instead");
                std::thread::sleep(Duration::from_millis(1));
                false
            }
        };
        let to = clock::monotonic();
        self.pacer.slept(from, to, if ready { None } else { until });
        if ready {
            // The write that follows a command may come after the command was obeyed.
            if self.poller.readiness(WAKE).readable {
                self.empty_eventfd();
            }
            self.look_for_errors();
        }
    }

    fn empty_eventfd(&self) {
        // EAGAIN: it was empty.
        let _ = rustix::io::read(&self.mailbox.wake, &mut [0; 8]);
    }

    /// A descriptor with an error would end every wait at once: takes the error, or gives the
    /// descriptor up.
    fn look_for_errors(&mut self) {
        for slot in &mut self.slots {
            let Slot::Live(link) = slot else { continue };
            for (side, place) in link.places.into_iter().enumerate() {
                if self.poller.readiness(place).error && !link.ports[side].recover() {
                    link.broken[side] = true;
                    self.poller.disable(place);
                    tracing::warn!("a link's interface is gone; its frames are no longer taken");
                }
            }
        }
    }

    /// Does what was asked for; false to stop.
    fn obey(&mut self) -> bool {
        self.mailbox.pending.store(false, Ordering::Release);
        self.empty_eventfd();
        // A reply that nobody waits for any more is no fault.
        while let Ok(command) = self.mailbox.commands.try_recv() {
            match command {
                Command::Add(link, reply) => drop(reply.send(self.add(*link))),
                Command::SetPath(id, path, reply) => drop(reply.send(self.set_path(id, *path))),
                Command::Restart(id, reply) => drop(reply.send(self.restart(id))),
                Command::SetConnected(id, connected, reply) => {
                    drop(reply.send(self.set_connected(id, connected)));
                }
                Command::Queues(id, reply) => drop(reply.send(self.queues(id))),
                Command::Stats(id, reply) => drop(reply.send(self.stats(id))),
                Command::ClearErrors(id, reply) => drop(reply.send(self.clear_errors(id))),
                Command::Remove(id, reply) => drop(reply.send(self.remove(id))),
                Command::Thread(reply) => drop(reply.send(self.thread_stats())),
                Command::Stop => return false,
            }
        }
        true
    }

    fn add(&mut self, link: OpenLink) -> Result<(), Error> {
        let now = clock::monotonic();
        let opened = link.path.open(now, link.seed).map_err(Error::from);
        let opened = opened.and_then(|links| Ok((links, self.pools.of(link.size)?)));
        let ((forward, backward), pool) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.slots.push(Slot::Gone(Box::default()));
                return Err(error);
            }
        };
        self.slots.push(Slot::Live(Box::new(LiveLink {
            ports: [link.a, link.b],
            directions: [Direction::new(forward, now), Direction::new(backward, now)],
            pool,
            places: [0; 2],
            broken: [false; 2],
        })));
        self.rebuild_poll_set();
        Ok(())
    }

    fn rebuild_poll_set(&mut self) {
        self.poller.clear();
        self.has_tap = false;
        let wake = self.poller.add(self.mailbox.wake.as_fd());
        debug_assert_eq!(wake, WAKE);
        for slot in &mut self.slots {
            let Slot::Live(link) = slot else { continue };
            for side in 0..2 {
                let place = self.poller.add(link.ports[side].as_fd());
                link.places[side] = place;
                self.has_tap |= link.ports[side].is_tap();
                if link.broken[side] {
                    self.poller.disable(place);
                }
            }
        }
    }

    fn live(&mut self, id: usize) -> Result<&mut LiveLink, Error> {
        match self.slots.get_mut(id) {
            Some(Slot::Live(link)) => Ok(link),
            Some(Slot::Gone(_)) | None => Err(Error::NoSuchLink),
        }
    }

    fn set_path(&mut self, id: usize, path: Path) -> Result<(), Error> {
        path.validate()?;
        let now = clock::monotonic();
        let [forward, backward] = &mut self.live(id)?.directions;
        forward.set_config(now, path.forward)?;
        backward.set_config(now, path.backward)?;
        Ok(())
    }

    fn restart(&mut self, id: usize) -> Result<(), Error> {
        let now = clock::monotonic();
        self.live(id)?.directions.iter_mut().for_each(|direction| direction.restart(now));
        Ok(())
    }

    fn set_connected(&mut self, id: usize, connected: bool) -> Result<(), Error> {
        let since = connected.then(clock::monotonic);
        self.live(id)?.directions.iter_mut().for_each(|direction| direction.connect(since));
        Ok(())
    }

    fn clear_errors(&mut self, id: usize) -> Result<(), Error> {
        self.live(id)?.directions.iter_mut().for_each(Direction::clear_errors);
        Ok(())
    }

    fn stats(&mut self, id: usize) -> Result<Stats, Error> {
        let thread = self.thread_stats();
        Ok(self.live(id)?.stats(thread))
    }

    fn queues(&mut self, id: usize) -> Result<[QueueWatch; 2], Error> {
        Ok(self.live(id)?.directions.each_ref().map(Direction::queue))
    }

    fn remove(&mut self, id: usize) -> Result<Stats, Error> {
        let stats = self.stats(id)?;
        if let Some(slot) = self.slots.get_mut(id) {
            // Closes the ports and returns frames under way to the pool.
            *slot = Slot::Gone(Box::new(stats));
        }
        self.rebuild_poll_set();
        Ok(stats)
    }

    fn thread_stats(&self) -> ThreadStats {
        let wall = clock::monotonic().saturating_since(self.started);
        ThreadStats { wall, cpu: clock::thread_cpu(), ..self.thread }
    }

    fn finish(mut self) -> FinalStats {
        let thread = self.thread_stats();
        let links = self
            .slots
            .iter_mut()
            .map(|slot| match slot {
                Slot::Live(link) => link.stats(thread),
                Slot::Gone(stats) => **stats,
            })
            .collect();
        FinalStats { links, thread }
    }
}

fn count(thread: &mut ThreadStats, turn: &Turn) {
    thread.frames += turn.sent;
    thread.send_calls += turn.send_calls;
    thread.receive_calls += turn.receive_calls;
}

impl LiveLink {
    fn stats(&mut self, thread: ThreadStats) -> Stats {
        let [a, b] = &mut self.ports;
        let [forward, backward] = &self.directions;
        Stats {
            forward: forward.stats(a.ring_drops()),
            backward: backward.stats(b.ring_drops()),
            thread,
        }
    }
}
