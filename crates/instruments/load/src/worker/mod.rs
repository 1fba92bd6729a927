//! A worker: a thread with an epoll loop and connections of its own.

mod requests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::Error;
use crate::connection::{Slot, Step, Tools};
use crate::failure::{Alike, Kind};
use crate::options::{Options, Pace};
use crate::schedule::{self, Arrivals, Mix, closed_start, nanos};
use crate::tally::Tally;
use crate::tickets;
use crate::worker::requests::Requests;

/// How often timeouts are looked for and progress is told.
const TICK: u64 = 20_000_000;
/// Events taken at once.
const EVENTS: usize = 256;
/// Bytes read at once: more than a full record.
const READ: usize = 32 * 1024;
/// Starts in a row before the events are looked at again.
const BURST: usize = 64;
/// The pause of a closed loop's connection after its first failure; it doubles up to `LONG_PAUSE`.
const PAUSE: u64 = 10_000_000;
const LONG_PAUSE: u64 = 1_000_000_000;
/// The event of the timer.
const TIMER: u64 = u64::MAX;

/// What a worker tells while it runs: written by it alone, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Reported {
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) ended: AtomicBool,
    /// What all failures have in common, where nothing has succeeded.
    pub(crate) alike: Mutex<Alike>,
}

/// Reason for an early end of a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// From elsewhere.
    pub(crate) interrupted: &'a AtomicBool,
    /// All fails alike.
    pub(crate) hopeless: &'a AtomicBool,
}

impl Stops<'_> {
    fn are_set(self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.hopeless.load(Ordering::Relaxed)
    }
}

enum Starts {
    /// Starts of slots that wait for theirs.
    Closed(BinaryHeap<Reverse<(u64, usize)>>),
    Open(Arrivals, Vec<usize>),
}

pub(crate) struct Worker<'a> {
    tools: Tools<'a>,
    slots: Vec<Slot>,
    starts: Starts,
    /// HTTP/2: what is shared out among the connections.
    requests: Option<Requests>,
    mix: Mix,
    budget: Option<u64>,
    end: u64,
    live: usize,
    source: usize,
    timer: OwnedFd,
    armed: u64,
    tally: Tally,
    reported: &'a Reported,
}

/// Which worker this is, of how many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) worker: usize,
    pub(crate) of: usize,
}

fn system(what: &str) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::System(format!("{what}: {}", std::io::Error::from(errno)))
}

/// The epoll set of a worker.
pub(crate) fn epoll_set() -> Result<OwnedFd, Error> {
    epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll"))
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        tools: Tools<'a>,
        place: Place,
        reported: &'a Reported,
    ) -> Result<Self, Error> {
        let options: &Options = tools.options;
        let Place { worker, of } = place;
        let slots = schedule::part(options.connections() as u64, worker, of) as usize;
        let budget = options.count.map(|count| schedule::part(count, worker, of));
        let end = options.duration.map_or(u64::MAX, nanos);
        let plan = match options.pace {
            Pace::Closed => None,
            Pace::Open { rate } => {
                let (duration, count) = (options.duration, options.count);
                Some(Arrivals::new(rate, options.ramp, duration, count, worker, of))
            }
        };
        let each = |slot| {
            let number = slot * of + worker;
            Reverse((closed_start(options.ramp, number, options.connections()), slot))
        };
        let (starts, requests, budget) = match (options.streams(), plan) {
            (Some(_), plan) => {
                let requests = Requests::new(plan, budget, slots);
                (Starts::Closed((0..slots).map(each).collect()), Some(requests), None)
            }
            (None, None) => (Starts::Closed((0..slots).map(each).collect()), None, budget),
            (None, Some(plan)) => (Starts::Open(plan, (0..slots).rev().collect()), None, budget),
        };
        let kept = requests.is_some() && options.requests_per_connection == 0;
        tickets::keep(options.resume > 0.0);
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )
        .map_err(system("a timer"))?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&tools.epoll, &timer, EventData::new_u64(TIMER), flags)
            .map_err(system("epoll"))?;
        Ok(Worker {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            starts,
            requests,
            mix: Mix::new(options.resume),
            budget,
            end,
            live: 0,
            source: worker,
            timer,
            armed: 0,
            tally: Tally::new(nanos(options.ramp), end, kept)?,
            reported,
            tools,
        })
    }

    /// Runs to its end, or until `stop`.
    pub(crate) fn run(mut self, stops: Stops<'_>) -> Result<Tally, Error> {
        let cpu = cpu_nanos();
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let mut buffer = vec![0; READ];
        let mut ticked = 0;
        loop {
            let now = self.tools.now();
            if now.saturating_sub(ticked) >= TICK {
                ticked = now;
                self.tick(now);
                if stops.are_set() {
                    break;
                }
            }
            let more = self.start_due(now) | self.share_out(now);
            if self.live == 0 && self.is_over(now) {
                break;
            }
            let timeout = if more { Duration::ZERO } else { self.sleep(now)? };
            let timeout = Timespec::try_from(timeout).unwrap_or_default();
            events.clear();
            match epoll::wait(
                &self.tools.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&timeout),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(system("epoll")(errno)),
            }
            for event in &events {
                let (key, flags) = (event.data.u64(), event.flags);
                if key != TIMER {
                    self.ready(key, flags, &mut buffer);
                }
            }
        }
        self.finish(cpu, stops.hopeless.load(Ordering::Relaxed));
        Ok(self.tally)
    }

    /// Counts what has not come to an end. Of a hopeless run nothing is learnt by that.
    fn finish(&mut self, cpu: u64, hopeless: bool) {
        let now = self.tools.now();
        self.tally.ended = now;
        self.tally.unfinished = self.live as u64;
        if !hopeless {
            self.count_unfinished(now);
        }
        self.slots.clear();
        self.tally.cpu_nanos = cpu_nanos().saturating_sub(cpu);
        self.tell();
    }

    /// Counts what is under way, and what never started, as longer than until `now`.
    fn count_unfinished(&mut self, now: u64) {
        for place in &mut self.slots {
            place.censor(Some(now), &self.tools, &mut self.tally);
            place.lose_requests(Some(now), false, &mut self.tally);
        }
        let until = now.min(self.end);
        let (plan, waiting) = match (&self.starts, &self.requests) {
            (Starts::Open(plan, _), _) => (Some(plan), [].as_slice()),
            (_, Some(requests)) => (requests.plan(), requests.waiting()),
            _ => (None, [].as_slice()),
        };
        for due in waiting {
            self.tally.never_started(*due, now, 1);
        }
        self.tally.not_started += waiting.len() as u64;
        if let Some(plan) = plan {
            self.tally.not_started += plan.behind(until);
            for (due, count) in plan.sample_behind(until) {
                self.tally.never_started(due, until, count);
            }
        }
    }

    /// No connection starts any more.
    fn is_over(&self, now: u64) -> bool {
        if now >= self.end || self.budget == Some(0) {
            return true;
        }
        if let Some(requests) = &self.requests {
            return requests.are_over();
        }
        match &self.starts {
            Starts::Closed(waiting) => waiting.is_empty(),
            Starts::Open(plan, _) => plan.peek().is_none(),
        }
    }

    /// Starts what is due. Says whether there is more.
    fn start_due(&mut self, now: u64) -> bool {
        for _ in 0..BURST {
            if self.is_over(now) {
                return false;
            }
            let (due, slot) = match &mut self.starts {
                Starts::Closed(waiting) => match waiting.peek() {
                    Some(Reverse((due, _))) if *due <= now => match waiting.pop() {
                        Some(Reverse(start)) => start,
                        None => return false,
                    },
                    _ => return false,
                },
                Starts::Open(plan, free) => {
                    if plan.peek().is_none_or(|due| due > now) {
                        return false;
                    }
                    let Some(slot) = free.pop() else { return false };
                    match plan.take() {
                        Some(due) => (due, slot),
                        None => return false,
                    }
                }
            };
            // A closed loop starts when it can; it has no times to keep after its ramp.
            let due = if matches!(self.starts, Starts::Closed(_)) { now } else { due };
            self.start(slot, due);
        }
        true
    }

    fn start(&mut self, slot: usize, due: u64) {
        let source = self.next_source();
        let resume = self.mix.next_resumes();
        if let Some(budget) = &mut self.budget
            && matches!(self.starts, Starts::Closed(_))
        {
            *budget = budget.saturating_sub(1);
        }
        let Some(place) = self.slots.get_mut(slot) else { return };
        let step = place.start(slot as u64, due, source, resume, &self.tools, &mut self.tally);
        self.live += 1;
        self.follow(slot, step);
        self.go_on(slot);
    }

    fn next_source(&mut self) -> Option<std::net::IpAddr> {
        let sources = &self.tools.options.sources;
        let source = sources.get(self.source.checked_rem(sources.len())?).copied();
        self.source = self.source.wrapping_add(1);
        source
    }

    fn ready(&mut self, key: u64, flags: EventFlags, buffer: &mut [u8]) {
        let Ok(slot) = usize::try_from(key) else { return };
        let Some(place) = self.slots.get_mut(slot) else { return };
        let step = place.ready(key, flags, buffer, &self.tools, &mut self.tally);
        self.follow(slot, step);
        self.go_on(slot);
    }

    /// What follows from a step of a connection.
    fn follow(&mut self, slot: usize, step: Step) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        let pause = match step {
            Step::Wait => return,
            Step::Done => {
                place.failures = 0;
                0
            }
            Step::Failed(stage, failure) => {
                let given_up = failure.kind == Kind::Timeout;
                if given_up {
                    place.censor(None, &self.tools, &mut self.tally);
                }
                let now = self.tools.now();
                self.tally.failed(stage, failure, now);
                self.lose_connection(slot, given_up.then_some(now));
                let Some(place) = self.slots.get_mut(slot) else { return };
                place.failures = place.failures.saturating_add(1);
                (PAUSE << (place.failures - 1).min(7)).min(LONG_PAUSE)
            }
        };
        let Some(place) = self.slots.get_mut(slot) else { return };
        place.lose_requests(None, true, &mut self.tally);
        place.clear();
        self.live -= 1;
        match &mut self.starts {
            Starts::Closed(waiting) => {
                waiting.push(Reverse((self.tools.now().saturating_add(pause), slot)));
            }
            Starts::Open(_, free) => free.push(slot),
        }
    }

    fn tick(&mut self, now: u64) {
        for slot in 0..self.slots.len() {
            let Some(place) = self.slots.get_mut(slot) else { break };
            let step = place.look_at_clock(slot as u64, now, &self.tools, &mut self.tally);
            self.follow(slot, step);
            self.go_on(slot);
        }
        self.tell();
    }

    fn tell(&self) {
        let tally = &self.tally;
        let (completed, failed) = match self.requests {
            Some(_) => (tally.requests, tally.request_failures.total() + tally.failures.total()),
            None => (tally.completed, tally.failures.total()),
        };
        self.reported.completed.store(completed, Ordering::Relaxed);
        self.reported.failed.store(failed, Ordering::Relaxed);
        self.reported.open.store(self.live as u64, Ordering::Relaxed);
        if completed == 0
            && failed > 0
            && let Ok(mut alike) = self.reported.alike.lock()
            && *alike != tally.alike
        {
            alike.clone_from(&tally.alike);
        }
    }

    /// How long to wait for events: to the next tick, or by the timer to the next start.
    fn sleep(&mut self, now: u64) -> Result<Duration, Error> {
        let next = match &self.starts {
            Starts::Closed(waiting) => waiting.peek().map(|Reverse((due, _))| *due),
            Starts::Open(plan, free) => plan.peek().filter(|_| !free.is_empty()),
        };
        let request = self.requests.as_ref().and_then(Requests::next_due);
        let next = next.into_iter().chain(request).min();
        let tick = Duration::from_nanos(TICK);
        let Some(next) = next.filter(|_| !self.is_over(now)) else { return Ok(tick) };
        let wait = next.saturating_sub(now);
        if wait == 0 || wait >= TICK {
            return Ok(if wait == 0 { Duration::ZERO } else { tick });
        }
        // epoll_wait counts in milliseconds; a timer in nanoseconds.
        if self.armed != next {
            self.armed = next;
            let value = Timespec { tv_sec: 0, tv_nsec: wait as _ };
            let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)
                .map_err(system("a timer"))?;
        }
        Ok(tick)
    }
}

/// CPU time of this thread.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}
