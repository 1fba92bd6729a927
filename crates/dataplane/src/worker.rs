//! The engine's thread: its loop.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use packet::clock::{self, RealtimeOffset};
use packet::{BATCH, Poller, Pool, SendBatch};
use units::Time;

use crate::board::Board;
use crate::segment::Segment;

/// How often the offset between the clocks is measured again, and the kernel asked what a ring has lost; also the
/// longest sleep.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// The longest that a spinning thread looks at its rings without a look at everything else. TAP devices have no
/// ring: they are looked at as often as this.
const GLANCE: Duration = Duration::from_micros(5);

/// Between two looks at the clock no more than this is spent: else the processor was taken away meanwhile.
const STOLEN: Duration = Duration::from_micros(20);

/// Looks at the rings for one at the clock.
const LOOKS: u32 = 16;

/// How the thread is told to end.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) stop: AtomicBool,
    /// An eventfd that ends a sleep.
    pub(crate) wake: OwnedFd,
}

pub(crate) struct Worker {
    pub(crate) segments: Vec<Segment>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) board: Arc<Board>,
    pub(crate) ending: Arc<Ending>,
    pub(crate) spins: bool,
    pub(crate) batch: SendBatch,
    pub(crate) poller: Poller,
    pub(crate) offset: RealtimeOffset,
    pub(crate) housekeeping: Time,
    pub(crate) spun: Duration,
    pub(crate) turns: u64,
}

impl Worker {
    pub(crate) fn new(
        segments: Vec<Segment>,
        pool: Rc<Pool>,
        board: Arc<Board>,
        ending: Arc<Ending>,
        spins: bool,
    ) -> Worker {
        let mut poller = Poller::new();
        // Places in the set: segments by their number, then what ends a sleep.
        for segment in &segments {
            poller.add(segment.input.as_fd());
        }
        poller.add(ending.wake.as_fd());
        Worker {
            segments,
            pool,
            board,
            ending,
            spins,
            batch: SendBatch::new(BATCH),
            poller,
            offset: RealtimeOffset::measure(),
            housekeeping: clock::monotonic(),
            spun: Duration::ZERO,
            turns: 0,
        }
    }

    /// Moves frames until told to stop. Frames that are held then are lost.
    pub(crate) fn run(mut self) {
        while !self.ending.stop.load(Ordering::Acquire) {
            let now = clock::monotonic();
            if now.saturating_since(self.housekeeping) >= HOUSEKEEPING {
                self.keep_house();
                self.housekeeping = now;
            }
            if self.turn(now) {
                continue;
            }
            if self.spins { self.spin(now) } else { self.sleep(now) }
        }
        self.keep_house();
    }

    /// One turn over all parts. Whether there was anything to do.
    fn turn(&mut self, now: Time) -> bool {
        self.turns += 1;
        let mut any = false;
        for (segment, board) in self.segments.iter_mut().zip(&self.board.parts) {
            if segment.turn(now, self.offset, &self.pool, &mut self.batch) {
                segment.publish(board);
                any = true;
            }
        }
        self.board.thread(self.spun.as_nanos() as u64, self.turns);
        any
    }

    fn keep_house(&mut self) {
        self.offset = RealtimeOffset::measure();
        for (segment, board) in self.segments.iter_mut().zip(&self.board.parts) {
            segment.publish(board);
            board.ring_full(segment.input.ring_drops());
        }
        self.board.thread(self.spun.as_nanos() as u64, self.turns);
    }

    fn next_due(&self) -> Option<Time> {
        self.segments.iter().filter_map(Segment::next_due).min()
    }

    /// Looks at rings and clock for a moment, until a frame comes or is due.
    fn spin(&mut self, from: Time) {
        let until = self.next_due().map_or(from + GLANCE, |due| due.min(from + GLANCE));
        let mut now = from;
        while now < until {
            let is_ready = (0..LOOKS).any(|_| {
                std::hint::spin_loop();
                self.segments.iter().any(Segment::is_ready)
            });
            let last = std::mem::replace(&mut now, clock::monotonic());
            let spent = now.saturating_since(last);
            self.spun += if spent < STOLEN { spent } else { Duration::ZERO };
            if is_ready {
                break;
            }
        }
    }

    fn sleep(&mut self, from: Time) {
        let longest = from + HOUSEKEEPING;
        let until = self.next_due().map_or(longest, |due| due.min(longest));
        match self.poller.wait(Some(until.saturating_since(from))) {
            Ok(true) => self.look_for_errors(),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!("the engine cannot wait ({error}); it sleeps a millisecond instead");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// A descriptor with an error would end every wait at once: takes the error, or gives the descriptor up.
    fn look_for_errors(&mut self) {
        for (place, segment) in self.segments.iter_mut().enumerate() {
            if segment.broken || (self.poller.readiness(place).error && !segment.input.recover()) {
                segment.broken = true;
                self.poller.disable(place);
                tracing::warn!("a port of the engine is gone; its frames are no longer taken");
            }
        }
    }
}
