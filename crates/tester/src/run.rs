//! A trial: frames by a schedule out, and in.

use std::time::Duration;

use packet::clock::{self, RealtimeOffset};
use packet::{Poller, SendBatch};
use traffic::{Load, Schedule, Sizes, Tally};
use units::Time;

use crate::frames::Frames;
use crate::outcome::{Flow, Outcome};
use crate::{Error, Port};

/// Frames that one system call sends.
const BATCH: usize = 64;
/// How often the offset between the clocks is measured again.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// How often the caller is asked whether to stop.
const STOP_CHECKED: Duration = Duration::from_millis(5);
/// What it takes to make the frames, at most, so that the first is not late.
const SETTING_UP: Duration = Duration::from_millis(5);
/// The shortest time for which it is worth waiting in the kernel.
const SHORT: Duration = Duration::from_micros(5);

/// How a tester waits for the next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It looks at clock and rings without pause: exact, and takes a processor.
    Spin,
    /// It waits in the kernel: for one processor.
    Block,
}

impl Waiting {
    /// Spins where this thread may use more than one processor.
    #[must_use]
    pub fn here() -> Waiting {
        if packet::thread::allowed_cpus().len() > 1 { Waiting::Spin } else { Waiting::Block }
    }
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// How much is offered.
    pub load: Load,
    /// Of which sizes, in bytes without check sequence.
    pub sizes: Sizes,
    /// For how long; [`Load::BackToBack`] sends `frames` in place of it.
    pub duration: Duration,
    /// How many frames at most each way.
    pub frames: u32,
    /// Both ways at once, or from the first port to the second alone.
    pub both_ways: bool,
    /// How long after the last frame was sent the last may come (RFC 2544 §26.1: 2 s).
    pub patience: Duration,
}

impl Trial {
    fn schedule(&self, begin: Time) -> Schedule {
        let whole = Schedule::lasting(begin, self.load, self.sizes, self.duration);
        let frames = match self.load {
            Load::BackToBack => u64::from(self.frames),
            _ => whole.frames().min(u64::from(self.frames)),
        };
        Schedule::new(begin, self.load, self.sizes, frames)
    }
}

/// Two ports, and what lies between them.
#[derive(Debug)]
pub struct Tester {
    ports: [Port; 2],
    waiting: Waiting,
    longest: usize,
    batch: SendBatch,
    streams: u16,
}

/// One direction under way.
struct Direction {
    /// The port that it leaves by.
    from: usize,
    schedule: Schedule,
    frames: Frames,
    tally: Tally,
    flow: Flow,
    next: u64,
    first: Option<Time>,
    last: Time,
    drops_before: u64,
}

impl Tester {
    /// A tester on two ports, for frames of up to `longest` bytes.
    #[must_use]
    pub fn new(ports: [Port; 2], longest: usize, waiting: Waiting) -> Tester {
        Tester { ports, waiting, longest, batch: SendBatch::new(BATCH), streams: 0 }
    }

    /// Makes a trial. `stop` is asked now and then whether to end it before its time.
    ///
    /// # Errors
    /// [`Error::FrameSize`], [`Error::Send`]. What is lost is no error.
    pub fn run(&mut self, trial: &Trial, stop: &dyn Fn() -> bool) -> Result<Outcome, Error> {
        self.ports.iter_mut().for_each(Port::drain);
        let (began, cpu) = (clock::monotonic(), clock::thread_cpu());
        // The first frame leaves when everything is set up.
        let mut directions = self.directions(trial, began + SETTING_UP);
        let stopped = self.carry_out(trial, &mut directions, stop)?;
        let mut outcome = Outcome {
            flows: Vec::with_capacity(directions.len()),
            cpu: clock::thread_cpu().saturating_sub(cpu),
            lasted: clock::monotonic().saturating_since(began),
            stopped,
        };
        for mut direction in directions {
            let drops = self.port(1 - direction.from).map_or(0, Port::ring_drops);
            let drops = drops.saturating_sub(direction.drops_before);
            direction.flow.sending = direction
                .first
                .map_or(Duration::ZERO, |first| direction.last.saturating_since(first));
            direction.flow.take(&direction.tally, drops);
            outcome.flows.push(direction.flow);
        }
        Ok(outcome)
    }

    fn port(&mut self, at: usize) -> Option<&mut Port> {
        self.ports.get_mut(at)
    }

    fn directions(&mut self, trial: &Trial, begin: Time) -> Vec<Direction> {
        let ways: &[usize] = if trial.both_ways { &[0, 1] } else { &[0] };
        let mut directions = Vec::with_capacity(ways.len());
        for from in ways {
            self.streams = self.streams.wrapping_add(1);
            let schedule = trial.schedule(begin);
            let stream = self.streams;
            let longest = self.longest;
            let drops_before = self.port(1 - from).map_or(0, Port::ring_drops);
            let Some(addressing) = self.ports.get(*from).map(Port::addressing) else { continue };
            directions.push(Direction {
                from: *from,
                frames: Frames::new(addressing, stream, BATCH, longest),
                tally: Tally::new(stream),
                flow: Flow { scheduled: schedule.frames(), ..Flow::default() },
                next: 0,
                first: None,
                last: begin,
                drops_before,
                schedule,
            });
        }
        directions
    }

    /// Sends and takes until all is said; true if it was stopped before.
    fn carry_out(
        &mut self,
        trial: &Trial,
        directions: &mut [Direction],
        stop: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let mut poller = Poller::new();
        self.ports.iter().for_each(|port| port.add_to(&mut poller));
        let mut offset = RealtimeOffset::measure();
        let mut now = clock::monotonic();
        let (mut measured, mut asked) = (now, now);
        let mut all_sent: Option<Time> = None;
        loop {
            now = clock::monotonic();
            if now.saturating_since(measured) >= HOUSEKEEPING {
                (offset, measured) = (RealtimeOffset::measure(), now);
            }
            if now.saturating_since(asked) >= STOP_CHECKED {
                asked = now;
                if stop() {
                    return Ok(true);
                }
            }
            let mut moved = false;
            for direction in directions.iter_mut() {
                moved |= self.send_due(direction, now)?;
                if let Some(port) = self.ports.get_mut(1 - direction.from) {
                    moved |= port.take(offset, now, &mut direction.tally);
                }
            }
            if directions.iter().all(Direction::is_sent) {
                let since = *all_sent.get_or_insert(now);
                let over = now.saturating_since(since) >= trial.patience;
                if over || (!moved && directions.iter().all(Direction::has_come)) {
                    return Ok(false);
                }
            }
            if !moved {
                self.wait(directions, all_sent.map(|since| since + trial.patience), &mut poller);
            }
        }
    }

    /// Sends what is due; true if it was anything.
    fn send_due(&mut self, direction: &mut Direction, now: Time) -> Result<bool, Error> {
        let mut count = 0;
        while count < BATCH {
            let number = direction.next + count as u64;
            if number >= direction.schedule.frames() || direction.schedule.time_of(number) > now {
                break;
            }
            let len = direction.schedule.size_of(number);
            // A schedule has at most as many frames as a number has room for.
            direction.frames.write(count, len, number as u32, now)?;
            count += 1;
        }
        if count == 0 {
            return Ok(false);
        }
        let Some(port) = self.ports.get(direction.from) else { return Ok(false) };
        match port.send(&mut self.batch, direction.frames.written(0, count))? {
            Some(sent) => direction.note_sent(sent, now),
            // Its turn is over: a frame that is refused is not sent again.
            None => direction.note_refused(),
        }
        Ok(true)
    }

    /// Waits for the next frame, out or in.
    fn wait(&self, directions: &[Direction], end: Option<Time>, poller: &mut Poller) {
        let due = directions.iter().filter_map(Direction::next_due);
        let due = due.chain(end).min();
        let now = clock::monotonic();
        let left = due.map_or(STOP_CHECKED, |due| due.saturating_since(now)).min(STOP_CHECKED);
        match self.waiting {
            Waiting::Block if left > SHORT => {
                // An error is found by the next send.
                let _ = poller.wait(Some(left));
            }
            Waiting::Block => {}
            Waiting::Spin => {
                let until = now + left;
                while clock::monotonic() < until && !self.ports.iter().any(Port::is_ready) {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

impl Direction {
    fn is_sent(&self) -> bool {
        self.next >= self.schedule.frames()
    }

    /// Whether every frame that was sent has come.
    fn has_come(&self) -> bool {
        self.is_sent() && self.tally.lost(self.flow.sent) == 0
    }

    fn next_due(&self) -> Option<Time> {
        (!self.is_sent()).then(|| self.schedule.time_of(self.next))
    }

    fn note_sent(&mut self, count: usize, now: Time) {
        self.first.get_or_insert(now);
        self.last = now;
        self.flow.latest =
            self.flow.latest.max(now.saturating_since(self.schedule.time_of(self.next)));
        for number in self.next..self.next + count as u64 {
            self.flow.sent_bytes += self.schedule.size_of(number) as u64;
        }
        self.flow.sent += count as u64;
        self.next += count as u64;
    }

    fn note_refused(&mut self) {
        self.flow.refused += 1;
        self.next += 1;
    }
}
