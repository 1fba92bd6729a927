//! A thread: its tracker, and what it does when it has no frames.

use std::hint::black_box;
use std::sync::TryLockError;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use tracker::{Packet, Tracker};

use super::{Done, Item, Job, LOOK, Shared};
use crate::reading::{GROUP, NOTHING};

/// Batches whose outputs are handed over together at most: to wake who takes them costs both threads time.
const TOGETHER: usize = 16;

/// A thread's own.
pub(super) struct Worker {
    number: usize,
    tracker: Tracker,
    jobs: Receiver<Job>,
    done: Sender<Vec<Done>>,
    /// What was done and not handed over.
    held: Vec<Done>,
}

/// What comes of a batch.
#[derive(Default)]
struct Made {
    begun: Vec<u32>,
    outputs: Vec<(u32, tracker::Output)>,
}

/// Frames that the tracker takes together, and their places in the batch.
struct Group<'a> {
    packets: [Packet<'a>; GROUP],
    indexes: [u32; GROUP],
    filled: usize,
}

impl Worker {
    pub(super) fn new(
        number: usize,
        tracker: Tracker,
        jobs: Receiver<Job>,
        done: Sender<Vec<Done>>,
    ) -> Worker {
        Worker { number, tracker, jobs, done, held: Vec::new() }
    }

    /// Takes batches until the last one; while there is none, reads some for all.
    pub(super) fn run(mut self, shared: &Shared<'_>) -> Tracker {
        while let Some(job) = self.next_job(shared) {
            let (last, waits) = (job.last, job.waits);
            self.held.push(take(self.number, &mut self.tracker, &job));
            shared.spare.give(job.items);
            let hands_over = waits || self.held.len() >= TOGETHER;
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
        self.held.is_empty() || self.done.send(std::mem::take(&mut self.held)).is_ok()
    }
}

/// Takes a batch.
fn take(worker: usize, tracker: &mut Tracker, job: &Job) -> Done {
    let mut made = Made::default();
    let mut group = Group { packets: [NOTHING; GROUP], indexes: [0; GROUP], filled: 0 };
    for item in &job.items {
        if let Item::Frame { at, buffer, start, captured, original_len, index, link } = *item {
            let start = start as usize;
            let buffer = job.buffers.get(buffer as usize);
            let bytes = buffer.and_then(|all| all.get(start..start + captured as usize));
            let bytes = bytes.unwrap_or_default();
            let original_len = original_len as usize;
            group.add(Packet { at, link_type: link, bytes, original_len }, index);
            if group.filled == GROUP {
                made.take_group(tracker, &mut group);
            }
            continue;
        }
        made.take_group(tracker, &mut group);
        match item {
            Item::Frame { .. } => {}
            Item::Now(now) => tracker.advance(*now),
            Item::Pass(now, index) => {
                tracker.pass(*now);
                made.poll(tracker, *index);
            }
            Item::Whole(datagram, at, index) => {
                tracker.handle_datagram(*at, datagram);
                made.begun.extend(tracker.take_begun().map(|_| *index));
                made.poll(tracker, *index);
            }
            Item::Keys(text) => tracker.add_keys(text),
        }
    }
    made.take_group(tracker, &mut group);
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

impl<'a> Group<'a> {
    fn add(&mut self, packet: Packet<'a>, index: u32) {
        // Another processor may have read it: what is looked at of it is asked for while others are
        // gathered.
        black_box((packet.bytes.get(12).copied(), packet.bytes.get(53).copied()));
        let places = self.packets.get_mut(self.filled).zip(self.indexes.get_mut(self.filled));
        if let Some((place, at)) = places {
            (*place, *at) = (packet, index);
            self.filled += 1;
        }
    }
}

impl Made {
    /// Gives the tracker the frames that were gathered.
    fn take_group(&mut self, tracker: &mut Tracker, group: &mut Group<'_>) {
        let packets = group.packets.get(..group.filled).unwrap_or_default();
        let indexes = group.indexes.get(..group.filled).unwrap_or_default();
        let Some(last) = indexes.last() else { return };
        let before = tracker.counters().frames + 1;
        tracker.handle_packets(packets);
        let place = |taken: u64| indexes.get(taken.saturating_sub(before) as usize);
        self.begun.extend(tracker.take_begun().map(|taken| *place(taken).unwrap_or(last)));
        self.poll(tracker, *last);
        group.filled = 0;
    }

    fn poll(&mut self, tracker: &mut Tracker, index: u32) {
        while let Some(output) = tracker.poll_output() {
            self.outputs.push((index, output));
        }
    }
}
