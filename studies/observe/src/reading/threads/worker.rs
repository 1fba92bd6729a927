//! A thread: its tracker, and what it does when it has no frames.

use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Mutex, TryLockError};

use tracker::{Packet, Tracker};

use super::front::Front;
use super::{Done, Item, Job, LOOK};
use crate::reading::{GROUP, NOTHING};

/// A thread's own.
pub(super) struct Worker {
    number: usize,
    tracker: Tracker,
    jobs: Receiver<Job>,
    done: Sender<Done>,
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
        done: Sender<Done>,
    ) -> Worker {
        Worker { number, tracker, jobs, done }
    }

    /// Takes batches until the last one; while there is none, reads some for all.
    pub(super) fn run(mut self, front: &Mutex<Front<'_>>) -> Tracker {
        loop {
            let job = match self.jobs.try_recv() {
                Ok(job) => job,
                Err(TryRecvError::Disconnected) => return self.tracker,
                Err(TryRecvError::Empty) => match front.try_lock() {
                    // Under the lock nobody else fills the queue: it has room for one's own part.
                    Ok(mut front) => match self.jobs.try_recv() {
                        Ok(job) => {
                            drop(front);
                            job
                        }
                        Err(_) if front.has_ended() => return self.tracker,
                        Err(_) => {
                            front.read();
                            continue;
                        }
                    },
                    // Who panicked says so.
                    Err(TryLockError::Poisoned(_)) => return self.tracker,
                    // Another one reads, and will have something for each.
                    Err(TryLockError::WouldBlock) => match self.jobs.recv_timeout(LOOK) {
                        Ok(job) => job,
                        Err(_) => continue,
                    },
                },
            };
            let last = job.last;
            // Nobody takes what is done only where the caller has panicked.
            if self.done.send(take(self.number, &mut self.tracker, &job)).is_err() || last {
                return self.tracker;
            }
        }
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
