//! Files read on several threads, with the records that one thread would make.
//!
//! Each thread has a tracker and the frames of its own connections, by a hash of their two ends. One that
//! has nothing to do reads on in the captures and shares the frames out, some batches to each thread at a
//! time, without a copy; where another one does that, it copies the next blocks of the file out of the
//! kernel ([`capture::ReadAhead`]). So no thread only reads, and none waits for one that does: several
//! batches at a time, or all would run out of frames at the same moment, and wait for the one that reads.
//! There is a lock for reading and a queue for each thread, which cost something per batch and nothing per
//! frame; lists of frames are used again.
//!
//! Who shares frames out has their headers at hand: what a plain TCP segment's say goes along
//! ([`tracker::Plain`]), so that the owner of a connection whose record is out need not fetch the frame from
//! another processor's cache, nor decode it.
//!
//! What trackers give out carries the place of its frame in its batch: the thread that called puts it into
//! that order again, gives connections the numbers that they would have had in one tracker, and is the only
//! one that writes records.

mod front;
mod order;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use capture::{Merge, Progress, ReadAhead};
use fault::{Fault, Problem};
use tracker::{Counters, Datagram, LinkType, Output, Plain, Tracker};
use units::Time;

use front::Front;
use order::Order;
use worker::Worker;

/// Batches that wait for a thread at most: no fewer than are read in one go, and few, so that their buffers
/// stay in the cache that the processors share.
const QUEUE: usize = 6;
/// Lists of frames that are kept to be used again.
const SPARE: usize = 64;
/// Time between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(200);

/// A frame, in one of the batch's buffers. An index is the place of a frame in its batch.
#[derive(Clone, Copy)]
struct Placed {
    at: Time,
    buffer: u32,
    start: u32,
    captured: u32,
    original_len: u32,
    index: u32,
    link: LinkType,
    /// What was read of it where it was at hand.
    plain: Option<Plain>,
}

/// What else a thread's tracker is given.
enum Special {
    /// The next frame is late: so late it is already.
    Now(Time),
    /// So late it is for all trackers.
    Pass(Time, u32),
    /// A datagram that was in fragments.
    Whole(Box<Datagram>, Time, u32),
    /// TLS secrets, in the format of SSLKEYLOGFILE.
    Keys(Arc<[u8]>),
}

/// What a thread's tracker is given of a batch.
#[derive(Default)]
struct Items {
    frames: Vec<Placed>,
    /// And behind how many of the frames.
    specials: Vec<(usize, Special)>,
}

impl Items {
    fn push(&mut self, special: Special) {
        self.specials.push((self.frames.len(), special));
    }
}

/// A batch of frames, as one thread gets it.
struct Job {
    batch: u64,
    buffers: Arc<[Arc<[u8]>]>,
    items: Items,
    /// Nothing comes after it.
    last: bool,
    /// What follows may be long in coming.
    waits: bool,
    progress: Progress,
}

/// Lists of frames to be used again: memory that is given back and asked for per batch would cost more
/// than the frames in it.
#[derive(Default)]
struct Spare(Mutex<Vec<Items>>);

impl Spare {
    /// Empty lists: used ones if there are any, else new ones for `room` frames.
    fn take(&self, room: usize) -> Items {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        lists.unwrap_or_else(|| Items { frames: Vec::with_capacity(room), specials: Vec::new() })
    }

    fn give(&self, mut items: Items) {
        items.frames.clear();
        items.specials.clear();
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.len() < SPARE {
            lists.push(items);
        }
    }
}

/// What the threads share.
struct Shared<'a> {
    front: Mutex<Front<'a>>,
    ahead: &'a ReadAhead,
    spare: &'a Spare,
}

/// What a thread made of a batch.
struct Done {
    worker: usize,
    batch: u64,
    /// Where connections began.
    begun: Vec<u32>,
    /// What was given out, and where.
    outputs: Vec<(u32, Output)>,
    counters: Counters,
    active: usize,
    progress: Progress,
}

/// How things stand.
pub(super) struct Standing {
    pub(super) counters: Counters,
    /// Connections followed at present.
    pub(super) active: usize,
    pub(super) progress: Progress,
}

/// What is left when all is read.
#[derive(Default)]
pub(super) struct Left {
    pub(super) counters: Counters,
    pub(super) unread_links: BTreeMap<u32, u64>,
    pub(super) unread_quic: BTreeMap<u32, u64>,
}

/// What the calling thread does meanwhile.
pub(super) trait Taker {
    /// Takes what the trackers gave out, in order.
    ///
    /// # Errors
    /// It cannot be written: reading ends.
    fn take(&mut self, output: Output) -> Result<(), Problem>;

    /// Looks how things stand; false to end here.
    ///
    /// # Errors
    /// As [`Taker::take`].
    fn goes_on(&mut self, standing: &Standing) -> Result<bool, Problem>;

    /// Whether to end here, while nothing comes.
    fn interrupted(&mut self) -> bool;
}

/// Reads captures to their end with as many threads as there are trackers, or until the taker wants to
/// stop. What was read is in what is left, after an error too.
pub(super) fn read(
    source: &mut Merge,
    trackers: Vec<Tracker>,
    seed: u64,
    taker: &mut dyn Taker,
) -> (Left, Result<(), Problem>) {
    let count = trackers.len();
    let (queues, jobs): (Vec<_>, Vec<_>) =
        (0..count).map(|_| mpsc::sync_channel::<Job>(QUEUE)).unzip();
    let (stop, spare, ahead) = (AtomicBool::new(false), Spare::default(), source.read_ahead());
    let front = Mutex::new(Front::new(source, queues, seed, &spare, &stop));
    let all = Shared { front, ahead: &ahead, spare: &spare };
    let mut left = Left::default();
    let shared = &all;
    let result = thread::scope(|scope| {
        let (done, results) = mpsc::channel();
        let mut threads: Vec<ScopedJoinHandle<'_, Tracker>> = Vec::with_capacity(count);
        let mut result = Ok(());
        for (number, (tracker, jobs)) in trackers.into_iter().zip(jobs).enumerate() {
            let worker = Worker::new(number, tracker.with_outer_clock(), jobs, done.clone());
            let thread = thread::Builder::new().name(format!("track {number}"));
            match thread.spawn_scoped(scope, move || worker.run(shared)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    result = Err(Problem::of(Fault::Machine, error)
                        .while_doing("a thread cannot be started")
                        .with_remedy("give fewer --threads"));
                    break;
                }
            }
        }
        drop(done);
        let collected = collect(&results, count, &stop, taker);
        for thread in threads {
            match thread.join() {
                Ok(tracker) => left.add(&tracker),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result.and(collected)
    });
    let front = all.front.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (of_front, failed) = front.finish();
    left.counters.add(&of_front.counters);
    left.unread_links = of_front.unread_links;
    (left, result.and(failed))
}

/// Takes what the threads give out until they have ended.
fn collect(
    results: &mpsc::Receiver<Vec<Done>>,
    count: usize,
    stop: &AtomicBool,
    taker: &mut dyn Taker,
) -> Result<(), Problem> {
    let mut order = Order::new(count);
    let mut result = Ok(());
    loop {
        match results.recv_timeout(LOOK) {
            Ok(several) => several.into_iter().for_each(|done| order.add(done)),
            Err(RecvTimeoutError::Timeout) => {
                if taker.interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return result,
        }
        while let Some(outputs) = order.next_batch() {
            if result.is_ok() {
                result = hand_on(outputs, &order.standing(), stop, taker);
            }
        }
    }
}

fn hand_on(
    outputs: Vec<Output>,
    standing: &Standing,
    stop: &AtomicBool,
    taker: &mut dyn Taker,
) -> Result<(), Problem> {
    let taken = outputs.into_iter().try_for_each(|output| taker.take(output));
    let goes_on = taken.and_then(|()| taker.goes_on(standing));
    if !matches!(goes_on, Ok(true)) {
        stop.store(true, Ordering::Relaxed);
    }
    goes_on.map(|_| ())
}

impl Left {
    /// Adds what another thread left.
    pub(super) fn merge(&mut self, other: Left) {
        self.counters.add(&other.counters);
        for (link, frames) in other.unread_links {
            *self.unread_links.entry(link).or_default() += frames;
        }
        for (version, count) in other.unread_quic {
            *self.unread_quic.entry(version).or_default() += count;
        }
    }

    /// Adds what a tracker has seen.
    pub(super) fn add(&mut self, tracker: &Tracker) {
        self.counters.add(tracker.counters());
        for (version, count) in tracker.unread_quic() {
            *self.unread_quic.entry(*version).or_default() += count;
        }
    }
}
