//! Where frames come from: read by whoever has nothing else to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use capture::{Batch, Frames, Merge};
use fault::Problem;
use tracker::{Counters, LinkType, Packet, Place, Sharder};

use super::{Items, Job, Placed, Spare, Special};

/// Frames of a batch at most, and some.
const FRAMES: u32 = 8192;
/// Bytes of a batch's frames at most, and some: what a core's own cache holds beside the rest.
const BYTES: u64 = 512 << 10;
/// Buffers of a batch at most: more than two only where frames of several captures take turns.
const BUFFERS: usize = 64;
/// Batches that are read in one go: while a thread reads the second, the others have the first.
const BATCHES: usize = 2;

/// Captures and what shares their frames out.
pub(super) struct Front<'a> {
    source: &'a mut Merge,
    sharder: Sharder,
    queues: Vec<SyncSender<Job>>,
    spare: &'a Spare,
    stop: &'a AtomicBool,
    batch: u64,
    ended: bool,
    unread_links: BTreeMap<u32, u64>,
    failed: Result<(), Problem>,
}

/// What it has counted itself.
pub(super) struct OfFront {
    pub(super) counters: Counters,
    pub(super) unread_links: BTreeMap<u32, u64>,
}

/// A batch being made.
struct Making {
    items: Vec<Items>,
    buffers: Vec<Arc<[u8]>>,
    index: u32,
    bytes: u64,
}

impl<'a> Front<'a> {
    pub(super) fn new(
        source: &'a mut Merge,
        queues: Vec<SyncSender<Job>>,
        seed: u64,
        spare: &'a Spare,
        stop: &'a AtomicBool,
    ) -> Front<'a> {
        Front {
            source,
            sharder: Sharder::new(queues.len(), seed),
            queues,
            spare,
            stop,
            batch: 0,
            ended: false,
            unread_links: BTreeMap::new(),
            failed: Ok(()),
        }
    }

    /// Whether all was read.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether a batch may be long in coming: a pipe holds it back.
    pub(super) fn waits(&self) -> bool {
        self.source.progress().of.is_none()
    }

    /// Reads some batches and puts each thread's part into its queue; waits where that is full. Nothing
    /// after the end.
    pub(super) fn read(&mut self) {
        // What a pipe holds back must not hold up what it has given.
        let batches = if self.waits() { 1 } else { BATCHES };
        for _ in 0..batches {
            self.read_batch();
        }
    }

    fn read_batch(&mut self) {
        if self.ended {
            return;
        }
        let count = self.queues.len();
        let items = (0..count).map(|_| self.spare.take(FRAMES as usize / count.max(1))).collect();
        let mut making = Making { items, buffers: Vec::new(), index: 0, bytes: 0 };
        let goes_on = match self.fill(&mut making) {
            Ok(goes_on) => goes_on && !self.stop.load(Ordering::Relaxed),
            Err(problem) => {
                self.failed = Err(problem);
                false
            }
        };
        self.ended = !goes_on;
        let (batch, last, progress) = (self.batch, self.ended, self.source.progress());
        let waits = progress.of.is_none();
        self.batch += 1;
        let buffers: Arc<[Arc<[u8]>]> = making.buffers.into();
        for (queue, items) in self.queues.iter().zip(making.items) {
            let job = Job { batch, buffers: Arc::clone(&buffers), items, last, waits, progress };
            // A thread that is gone has panicked, which its end says.
            if queue.send(job).is_err() {
                self.ended = true;
            }
        }
    }

    /// Fills a batch; false at the end of all.
    fn fill(&mut self, making: &mut Making) -> Result<bool, Problem> {
        let waits = self.waits();
        while making.index < FRAMES && making.bytes < BYTES && making.buffers.len() < BUFFERS {
            match self.source.next_batch()? {
                None => return Ok(false),
                Some(Batch::KeyLog(text)) => {
                    let keys: Arc<[u8]> = text.into();
                    for items in &mut making.items {
                        items.push(Special::Keys(Arc::clone(&keys)));
                    }
                }
                Some(Batch::Frames(frames)) => {
                    share_out(frames, &mut self.sharder, &mut self.unread_links, making);
                }
                Some(_) => {}
            }
            if waits {
                break;
            }
        }
        Ok(true)
    }

    /// What is left of it.
    pub(super) fn finish(mut self) -> (OfFront, Result<(), Problem>) {
        self.sharder.finish();
        let counters = self.sharder.counters();
        (OfFront { counters, unread_links: self.unread_links }, self.failed)
    }
}

/// Puts frames into the lists of those who take them.
fn share_out(
    mut frames: Frames<'_>,
    sharder: &mut Sharder,
    unread_links: &mut BTreeMap<u32, u64>,
    making: &mut Making,
) {
    let buffer = frames.buffer();
    let known = making.buffers.iter().rposition(|known| Arc::ptr_eq(known, buffer));
    let number = known.unwrap_or_else(|| {
        making.buffers.push(Arc::clone(buffer));
        making.buffers.len() - 1
    }) as u32;
    while let Some((frame, start)) = frames.next_placed() {
        let Some(link) = LinkType::from_number(frame.link) else {
            *unread_links.entry(frame.link).or_default() += 1;
            continue;
        };
        let (at, bytes, original_len) = (frame.at, frame.bytes, frame.original_len);
        let routed = sharder.route(&Packet { at, link_type: link, bytes, original_len });
        let index = making.index;
        making.index += 1;
        making.bytes += bytes.len() as u64;
        match routed.place {
            Place::Nobody => {}
            Place::Tracker(tracker) => {
                let Some(items) = making.items.get_mut(tracker) else { continue };
                if let Some(now) = routed.now {
                    items.push(Special::Now(now));
                }
                items.frames.push(Placed {
                    at,
                    buffer: number,
                    start: start as u32,
                    captured: bytes.len() as u32,
                    original_len: original_len as u32,
                    index,
                    link,
                    plain: routed.plain,
                });
            }
            Place::Whole(tracker, datagram) => {
                let Some(items) = making.items.get_mut(tracker) else { continue };
                if let Some(now) = routed.now {
                    items.push(Special::Now(now));
                }
                items.push(Special::Whole(datagram, at, index));
            }
        }
        if let Some(now) = routed.pass {
            for items in &mut making.items {
                items.push(Special::Pass(now, index));
            }
        }
    }
}
