//! The machine: one direction of a link.

use std::collections::VecDeque;

use rand::Rng;
use rand_pcg::Pcg64Mcg;
use units::Time;

use crate::codel::{CodelState, Head};
use crate::config::{DELAY_LINE_BYTES, DELAY_LINE_FRAMES, LinkConfig, Queue};
use crate::counters::Counters;
use crate::delay_line::DelayLine;
use crate::error::ConfigError;
use crate::frame::{DropCause, Dropped, ETHERNET_HEADER, Frame, Output};
use crate::loss::{LossProcess, happens};
use crate::middlebox::{self, Middlebox, Verdict};
use crate::seed;
use crate::transmitter::{Start, Transmitter};

/// One direction of a link.
///
/// Call [`Link::handle_frame`] when a frame enters, [`Link::poll`] until it gives nothing, then
/// again at [`Link::next_event`] or after the next frame. Times must not go back; one that does
/// counts as the latest one. Everything that happens is computed for the time at which it happens,
/// however late the call: a late poll makes no due time late.
///
/// The same seed and the same frames at the same times give the same fates. Each stage has its own
/// random numbers, so that changing the jitter does not change which frames are lost.
#[derive(Debug)]
pub struct Link<F> {
    config: LinkConfig,
    /// The latest time heard of.
    clock: Time,
    seq: u64,
    loss: LossProcess,
    corrupt_rng: Pcg64Mcg,
    duplicate_rng: Pcg64Mcg,
    jitter_rng: Pcg64Mcg,
    reorder_rng: Pcg64Mcg,
    waiting: Waiting<F>,
    codel: CodelState,
    transmitter: Transmitter,
    /// When the first waiting frame begins to be sent; there is one exactly if a frame waits.
    head_start: Option<Start>,
    /// When the last frame that had to wait began to be sent.
    waited_until: Time,
    delay_line: DelayLine<F>,
    /// The latest time at which a frame is due that keeps the order.
    last_due: Time,
    counters: Counters,
}

/// Frames in the queue, and those dropped from it that [`Link::poll`] has yet to give back.
#[derive(Debug)]
struct Waiting<F> {
    queue: VecDeque<Queued<F>>,
    bytes: usize,
    dropped: VecDeque<Dropped<F>>,
}

#[derive(Debug)]
struct Queued<F> {
    frame: F,
    len: usize,
    since: Time,
    seq: u64,
}

impl<F> Waiting<F> {
    fn has_room_for(&self, queue: &Queue, len: usize) -> bool {
        let (frames, bytes) = (self.queue.len(), self.bytes.saturating_add(len));
        let limit = match queue {
            Queue::Packets(packets) => frames < *packets as usize,
            Queue::Codel(codel) => frames < codel.packets as usize,
            Queue::Bytes(limit) => bytes as u64 <= limit.count(),
            Queue::Unlimited => true,
        };
        limit && frames < DELAY_LINE_FRAMES && bytes <= DELAY_LINE_BYTES
    }

    fn push(&mut self, queued: Queued<F>) {
        self.bytes += queued.len;
        self.queue.push_back(queued);
    }

    fn pop(&mut self) -> Option<Queued<F>> {
        let queued = self.queue.pop_front()?;
        self.bytes -= queued.len;
        Some(queued)
    }

    /// Keeps a dropped frame for the caller, who may have stopped asking: then it is freed.
    fn give_back(&mut self, frame: F, cause: DropCause) {
        if self.dropped.len() < DELAY_LINE_FRAMES {
            self.dropped.push_back(Dropped { frame, cause });
        }
    }
}

/// The queue as CoDel sees it.
struct CodelQueue<'a, F> {
    waiting: &'a mut Waiting<F>,
    counters: &'a mut Counters,
}

impl<F> Head for CodelQueue<'_, F> {
    type Item = Queued<F>;

    fn take(&mut self) -> Option<(Queued<F>, Time, usize, usize)> {
        let queued = self.waiting.pop()?;
        let (since, len) = (queued.since, queued.len);
        Some((queued, since, len, self.waiting.bytes))
    }

    fn drop_taken(&mut self, queued: Queued<F>) {
        self.counters.dropped.add(DropCause::Codel, queued.len);
        self.waiting.give_back(queued.frame, DropCause::Codel);
    }
}

impl<F: Frame> Link<F> {
    /// A link that starts at the clock's origin: traces and outages count from there. Right for
    /// virtual time; on a clock with another origin use [`Link::starting_at`].
    ///
    /// # Errors
    /// If the configuration makes no sense.
    pub fn new(config: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        Self::starting_at(Time::ZERO, config, seed)
    }

    /// A link whose traces and outages count from `start`.
    ///
    /// # Errors
    /// If the configuration makes no sense.
    pub fn starting_at(start: Time, config: LinkConfig, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Link {
            config,
            clock: start,
            seq: 0,
            loss: LossProcess::new(seed::rng(seed, 1)),
            corrupt_rng: seed::rng(seed, 2),
            duplicate_rng: seed::rng(seed, 3),
            jitter_rng: seed::rng(seed, 4),
            reorder_rng: seed::rng(seed, 5),
            waiting: Waiting { queue: VecDeque::new(), bytes: 0, dropped: VecDeque::new() },
            codel: CodelState::default(),
            transmitter: Transmitter::new(start),
            head_start: None,
            waited_until: Time::ZERO,
            delay_line: DelayLine::new(),
            last_due: Time::ZERO,
            counters: Counters::default(),
        })
    }

    /// Changes the link at `now`. No frame is lost by it: those sent keep their due times, those
    /// waiting wait on, even if the new queue is shorter. If the trace or the outages are others
    /// than before, they begin at `now`.
    ///
    /// # Errors
    /// If the configuration makes no sense; then nothing is changed.
    pub fn set_config(&mut self, now: Time, config: LinkConfig) -> Result<(), ConfigError> {
        config.validate()?;
        let now = self.advance(now);
        if config.rate != self.config.rate || config.outages != self.config.outages {
            self.transmitter.restart(now);
        }
        if config.queue != self.config.queue {
            self.codel = CodelState::default();
        }
        self.config = config;
        self.plan_head();
        self.advance(now);
        Ok(())
    }

    /// Begins the trace and the outages anew at `now`. No frame is lost by it: what is being sent is still
    /// sent, what waits waits on.
    pub fn restart(&mut self, now: Time) {
        let now = self.advance(now);
        self.transmitter.restart(now);
        self.plan_head();
        self.advance(now);
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// A frame enters the link at `now`.
    ///
    /// # Errors
    /// Gives the frame back if it is dropped at once, by a middlebox, loss or a full queue.
    pub fn handle_frame(&mut self, now: Time, mut frame: F) -> Result<(), Dropped<F>> {
        let now = self.advance(now);
        let mut len = frame.len();
        self.counters.received.add(len);
        if self.config.middlebox != Middlebox::None {
            match middlebox::apply(self.config.middlebox, &mut frame) {
                Verdict::Pass => {}
                Verdict::Drop => return Err(self.refuse(frame, len, DropCause::Middlebox)),
                Verdict::Stripped(bytes) => {
                    self.counters.stripped.add(bytes);
                    len = frame.len();
                }
            }
        }
        if self.loss.next_is_lost(&self.config.loss) {
            return Err(self.refuse(frame, len, DropCause::Loss));
        }
        if happens(self.config.corrupt, &mut self.corrupt_rng) {
            self.corrupt(&mut frame, len);
        }
        let twice = happens(self.config.duplicate, &mut self.duplicate_rng);
        if !self.waiting.has_room_for(&self.config.queue, len) {
            return Err(self.refuse(frame, len, DropCause::QueueFull));
        }
        let copy = if twice { frame.try_clone() } else { None };
        self.enqueue(now, frame, len);
        if let Some(copy) = copy {
            self.counters.duplicated.add(len);
            if self.waiting.has_room_for(&self.config.queue, len) {
                self.enqueue(now, copy, len);
            } else {
                self.counters.dropped.add(DropCause::QueueFull, len);
                self.waiting.give_back(copy, DropCause::QueueFull);
            }
        }
        Ok(())
    }

    /// The next output that is ready by `now`: frames in the order in which they are due, dropped
    /// ones as they come.
    pub fn poll(&mut self, now: Time) -> Option<Output<F>> {
        self.clock = self.clock.max(now);
        // Only frames that may be due before all others are sent first, so that a poll after a long
        // time does not fill the delay line.
        while self.waiting.dropped.is_empty() {
            let Some(start) = self.head_start.filter(|start| start.at <= self.clock) else { break };
            let earliest = start.at + self.least_delay();
            if self.delay_line.next_due().is_some_and(|due| due < earliest) {
                break;
            }
            self.send_head(start);
        }
        if let Some(dropped) = self.waiting.dropped.pop_front() {
            return Some(Output::Drop(dropped));
        }
        let (frame, len, due) = self.delay_line.pop_due(self.clock)?;
        self.counters.delivered.add(len);
        Some(Output::Deliver { frame, due })
    }

    /// When [`Link::poll`] is to be called again: never later than the next frame is due, at times
    /// earlier. `None` while nothing is under way.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        let dropped = (!self.waiting.dropped.is_empty()).then_some(self.clock);
        // What is sent from `at` on cannot arrive before this.
        let sent = self.head_start.map(|start| start.at + self.least_delay());
        [dropped, self.delay_line.next_due(), sent].into_iter().flatten().min()
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames that wait or are on their way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.waiting.queue.len() + self.delay_line.len()
    }

    /// Bytes of the frames that wait or are on their way.
    #[must_use]
    pub fn bytes_in_flight(&self) -> usize {
        self.waiting.bytes + self.delay_line.bytes()
    }

    /// Up to when frames have waited in the queue by `now`, or will where some wait now and none comes after them: when
    /// the last of them begins to be sent. [`Time::ZERO`] if none ever has. All frames that entered before `now` are to
    /// have been pushed. It is late or early by the headers of the frames that wait, where other bytes than Ethernet's are
    /// counted; by an outage that begins before they are sent; and by frames that CoDel will drop.
    pub fn waits_until(&mut self, now: Time) -> Time {
        self.advance(now);
        let Some((start, last)) = self.head_start.zip(self.waiting.queue.back()) else {
            return self.waited_until;
        };
        let ahead = self.waiting.bytes.saturating_sub(last.len);
        if ahead == 0 {
            return start.at;
        }
        // What waits before the last, as if it were one frame.
        let mut transmitter = self.transmitter.clone();
        transmitter.send(&self.config, start, ahead);
        transmitter.start(&self.config, last.since).at
    }

    fn refuse(&mut self, frame: F, len: usize, cause: DropCause) -> Dropped<F> {
        self.counters.dropped.add(cause, len);
        Dropped { frame, cause }
    }

    fn corrupt(&mut self, frame: &mut F, len: usize) {
        // In an Ethernet header no bit is inverted: a frame with a wrong address would be lost
        // rather than corrupted.
        let first = if len > ETHERNET_HEADER { ETHERNET_HEADER * 8 } else { 0 };
        if len > 0 {
            frame.flip_bit(self.corrupt_rng.random_range(first..len * 8));
            self.counters.corrupted += 1;
        }
    }

    fn enqueue(&mut self, now: Time, frame: F, len: usize) {
        if self.waiting.queue.is_empty() && self.transmitter.is_idle(now) {
            self.codel.found_empty();
        }
        let seq = self.seq;
        self.seq += 1;
        self.waiting.push(Queued { frame, len, since: now, seq });
        if self.head_start.is_none() {
            self.plan_head();
        }
        self.advance(now);
    }

    /// Sends every frame whose sending begins by `now`. Returns the time to go on with.
    fn advance(&mut self, now: Time) -> Time {
        self.clock = self.clock.max(now);
        while let Some(start) = self.head_start.filter(|start| start.at <= self.clock) {
            self.send_head(start);
        }
        self.clock
    }

    /// Sends the first waiting frame, or if CoDel drops that, the first that it does not.
    fn send_head(&mut self, start: Start) {
        if let Some(queued) = self.dequeue(start.at) {
            if start.at > queued.since {
                self.waited_until = start.at;
            }
            self.send(start, queued);
        }
        self.plan_head();
    }

    fn plan_head(&mut self) {
        let head = self.waiting.queue.front();
        self.head_start = head.map(|head| self.transmitter.start(&self.config, head.since));
    }

    fn dequeue(&mut self, now: Time) -> Option<Queued<F>> {
        match &self.config.queue {
            Queue::Codel(codel) => {
                let (waiting, counters) = (&mut self.waiting, &mut self.counters);
                self.codel.dequeue(codel, now, &mut CodelQueue { waiting, counters })
            }
            _ => self.waiting.pop(),
        }
    }

    fn send(&mut self, start: Start, queued: Queued<F>) {
        let Queued { frame, len, seq, .. } = queued;
        let sent = self.transmitter.send(&self.config, start, len);
        if self.transmitter.is_lost(&self.config, sent) {
            self.counters.dropped.add(DropCause::Outage, len);
            self.waiting.give_back(frame, DropCause::Outage);
        } else if !self.delay_line.has_room_for(len) {
            self.counters.dropped.add(DropCause::DelayLineFull, len);
            self.waiting.give_back(frame, DropCause::DelayLineFull);
        } else {
            let due = self.due(sent);
            if due < self.last_due {
                self.counters.reordered += 1;
            }
            self.delay_line.push(due, seq, len, frame);
        }
    }

    /// When a frame whose last bit is sent at `sent` is due.
    fn due(&mut self, sent: Time) -> Time {
        let LinkConfig { delay, jitter, reorder, jitter_may_reorder, .. } = &self.config;
        if happens(reorder.probability, &mut self.reorder_rng) {
            return sent + (*delay).min(reorder.delay).duration();
        }
        let mut due = sent + delay.duration() + jitter.sample(&mut self.jitter_rng);
        if !jitter_may_reorder {
            due = due.max(self.last_due);
        }
        self.last_due = self.last_due.max(due);
        due
    }

    fn least_delay(&self) -> std::time::Duration {
        let LinkConfig { delay, reorder, .. } = &self.config;
        if reorder.probability.is_zero() {
            delay.duration()
        } else {
            (*delay).min(reorder.delay).duration()
        }
    }
}
