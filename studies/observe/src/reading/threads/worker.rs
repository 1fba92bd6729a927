//! A thread: its tracker, and what it does when it has no frames.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use tracker::{Packet, Tracker};

use super::{Done, Job, LOOK, Placed, Shared, Special};
use crate::reading::GROUP;

/// How long what was done is held: to wake who takes it costs both threads time.
const HELD_FOR: Duration = Duration::from_millis(20);
/// Outputs that are held at most, and those of a batch: what bounds their memory.
const HELD_OUTPUTS: usize = 1024;

/// A thread's own.
pub(super) struct Worker {
    number: usize,
    tracker: Tracker,
    jobs: Receiver<Job>,
    done: Sender<Vec<Done>>,
    held: Held,
}

/// What was done and not handed over.
struct Held {
    done: Vec<Done>,
    /// Outputs in it.
    outputs: usize,
    /// When it was handed over before.
    since: Instant,
}

/// What comes of a batch.
#[derive(Default)]
struct Made {
    begun: Vec<u32>,
    outputs: Vec<(u32, tracker::Output)>,
}

impl Worker {
    pub(super) fn new(
        number: usize,
        tracker: Tracker,
        jobs: Receiver<Job>,
        done: Sender<Vec<Done>>,
    ) -> Worker {
        let held = Held { done: Vec::new(), outputs: 0, since: Instant::now() };
        Worker { number, tracker, jobs, done, held }
    }

    /// Takes batches until the last one; while there is none, reads some for all.
    pub(super) fn run(mut self, shared: &Shared<'_>) -> Tracker {
        while let Some(job) = self.next_job(shared) {
            let (last, waits) = (job.last, job.waits);
            self.held.add(take(self.number, &mut self.tracker, &job));
            shared.spare.give(job.items);
            let hands_over = waits || self.held.is_due();
            // Nobody takes what is done only where the caller has panicked.
            if last || (hands_over && !self.hand_over()) {
                break;
            }
        }
        self.hand_over();
        self.tracker
    }

    /// The next batch; `None` if none comes any more.
    fn next_job(&mut self, shared: &Shared<'_>) -> Option<Job> {
        loop {
            match self.jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            match shared.front.try_lock() {
                // Under the lock nobody else fills the queue: it has room for one's own part.
                Ok(mut front) => match self.jobs.try_recv() {
                    Ok(job) => return Some(job),
                    Err(_) if front.has_ended() => return None,
                    Err(_) => front.read(),
                },
                // Who panicked says so.
                Err(TryLockError::Poisoned(_)) => return None,
                // Another one reads, and will have something for each.
                Err(TryLockError::WouldBlock) => {
                    if shared.ahead.help() {
                        continue;
                    }
                    self.hand_over();
                    if let Ok(job) = self.jobs.recv_timeout(LOOK) {
                        return Some(job);
                    }
                }
            }
        }
    }

    /// Hands over what was done; false if nobody takes it.
    fn hand_over(&mut self) -> bool {
        let held = self.held.take();
        held.is_empty() || self.done.send(held).is_ok()
    }
}

impl Held {
    fn add(&mut self, done: Done) {
        self.outputs += done.outputs.len();
        self.done.push(done);
    }

    fn is_due(&self) -> bool {
        self.outputs >= HELD_OUTPUTS || self.since.elapsed() >= HELD_FOR
    }

    fn take(&mut self) -> Vec<Done> {
        (self.outputs, self.since) = (0, Instant::now());
        std::mem::take(&mut self.done)
    }
}

/// Takes a batch.
fn take(worker: usize, tracker: &mut Tracker, job: &Job) -> Done {
    let mut made = Made::default();
    let mut frames = job.items.frames.as_slice();
    let mut taken = 0;
    for (before, special) in &job.items.specials {
        if let Some((some, rest)) = frames.split_at_checked(before.saturating_sub(taken)) {
            made.take_frames(tracker, &job.buffers, some);
            (frames, taken) = (rest, *before);
        }
        match special {
            Special::Now(now) => tracker.advance(*now),
            Special::Pass(now, index) => {
                tracker.pass(*now);
                made.poll(tracker, *index);
            }
            Special::Whole(datagram, at, index) => {
                tracker.handle_datagram(*at, datagram);
                made.begun.extend(tracker.take_begun().map(|_| *index));
                made.poll(tracker, *index);
            }
            Special::Keys(text) => tracker.add_keys(text),
        }
    }
    made.take_frames(tracker, &job.buffers, frames);
    if job.last {
        tracker.close();
        made.poll(tracker, u32::MAX);
    }
    Done {
        worker,
        batch: job.batch,
        begun: made.begun,
        outputs: made.outputs,
        counters: *tracker.counters(),
        active: tracker.active(),
        progress: job.progress,
    }
}

impl Made {
    /// Gives the tracker frames, several at once.
    fn take_frames(&mut self, tracker: &mut Tracker, buffers: &[Arc<[u8]>], frames: &[Placed]) {
        for group in frames.chunks(GROUP) {
            let Some(last) = group.last() else { continue };
            for placed in group.iter().filter(|placed| placed.plain.is_none()) {
                // Another processor may have read it: what is looked at of it is asked for together.
                let bytes = packet_of(buffers, placed).bytes;
                black_box((bytes.get(12).copied(), bytes.get(53).copied()));
            }
            let before = tracker.counters().frames + 1;
            tracker.handle_sharded(group, |placed| (packet_of(buffers, placed), placed.plain));
            let place = |taken: u64| group.get(taken.saturating_sub(before) as usize);
            let begun = tracker.take_begun().map(|taken| place(taken).unwrap_or(last).index);
            self.begun.extend(begun);
            self.poll(tracker, last.index);
        }
    }

    fn poll(&mut self, tracker: &mut Tracker, index: u32) {
        while let Some(output) = tracker.poll_output() {
            self.outputs.push((index, output));
        }
    }
}

/// A frame as the tracker takes it.
#[inline]
fn packet_of<'a>(buffers: &'a [Arc<[u8]>], placed: &Placed) -> Packet<'a> {
    let Placed { at, buffer, start, captured, original_len, link, .. } = *placed;
    let start = start as usize;
    let bytes =
        buffers.get(buffer as usize).and_then(|all| all.get(start..start + captured as usize));
    let bytes = bytes.unwrap_or_default();
    Packet { at, link_type: link, bytes, original_len: original_len as usize }
}
