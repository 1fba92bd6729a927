//! Reading: frames of files or interfaces in, records out to wherever they go.

mod beginning;
mod gauges;
mod late;
mod listen;
mod now;
mod sinks;
mod threads;
mod translated;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use capture::{Batch, Frame, Live, Merge, Progress};
use fault::Problem;
use study::Watcher;
use tracker::{Counters, HandOut, Limits, LinkType, Output, Packet, Tracker};
use units::Time;
use wire::quic::Version;

pub use beginning::beginning;
pub use gauges::Gauges;
pub use late::{Late, hand_over, may_continue_in};
pub use sinks::{Hidden, LISTED, SinkOptions, Sinks};

use now::Now;

/// Frames between two looks at signals and at the clock.
const BETWEEN_LOOKS: usize = 4096;
/// Frames that the tracker takes together.
const GROUP: usize = 16;
/// The longest wait for a frame of a live capture.
const WAIT: Duration = Duration::from_millis(200);
/// Time between two Parquet files of a live capture, unless another is asked for.
const BETWEEN_FILES: Duration = Duration::from_secs(300);
/// Time between two live views.
const BETWEEN_VIEWS: Duration = Duration::from_secs(1);
/// The longest wait for frames that the kernel keeps back at the end: many times its own 50 ms.
const REST: Duration = Duration::from_secs(2);
/// A frame of no bytes, at time 0.
const NOTHING: Packet<'static> =
    Packet { at: Time::ZERO, link_type: LinkType::Ethernet, bytes: &[], original_len: 0 };

/// How long a live capture lasts, and how often its rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Its duration; `None` lasts until it is stopped.
    pub duration: Option<Duration>,
    /// The longest that rows wait in memory to be written.
    pub flush: Duration,
}

impl Default for Times {
    /// Until it is stopped; 5 minutes.
    fn default() -> Self {
        Times { duration: None, flush: BETWEEN_FILES }
    }
}

/// Who follows a live capture.
pub trait View: Watcher {
    /// How things stand: takes the place of what was shown before.
    fn now(&mut self, text: String);
}

/// What turns frames into records, and where these go.
pub struct Reading {
    tracker: Tracker,
    /// Those of files that are read on several threads.
    trackers: Vec<Tracker>,
    /// What came of them.
    left: Option<threads::Left>,
    sinks: Sinks,
    /// Frames of link types that are not read, by number.
    unread_links: BTreeMap<u32, u64>,
    /// Frames that the kernel lost.
    lost: u64,
}

/// What is left when all is read.
pub struct Read {
    /// Where the records went.
    pub sinks: Sinks,
    /// What the tracker counted.
    pub counters: Counters,
    /// Frames of link types that are not read, by number.
    pub unread_links: BTreeMap<u32, u64>,
    /// Connections of QUIC versions that are not read: a version's name, and how many first datagrams.
    pub unread_quic: Vec<(String, u64)>,
}

impl Reading {
    /// A reading that follows at most so many connections at once, files on so many threads.
    ///
    /// # Errors
    /// The options make no sense, or a place for records cannot be written.
    pub fn open(
        options: SinkOptions,
        connections: usize,
        threads: usize,
    ) -> Result<Reading, Problem> {
        let seed = seed_of_run();
        let limits =
            Limits { connections, seed, hand_out: HandOut::AfterHandshake, ..Limits::default() };
        // Each has its share of the bounds.
        let part = Limits {
            connections: connections.div_ceil(threads.max(1)),
            held_bytes: limits.held_bytes / threads.max(1),
            ..limits.clone()
        };
        let several = if threads > 1 { threads } else { 0 };
        Ok(Reading {
            trackers: (0..several).map(|_| Tracker::new(part.clone())).collect(),
            left: None,
            tracker: Tracker::new(limits),
            sinks: Sinks::open(options, &format!("{:016x}", seed_of_run()))?,
            unread_links: BTreeMap::new(),
            lost: 0,
        })
    }

    /// Adds keys as programs write them to SSLKEYLOGFILE. Connections whose keys are known.
    pub fn add_keys(&mut self, text: &[u8]) -> usize {
        self.trackers.iter_mut().for_each(|tracker| tracker.add_keys(text));
        self.tracker.add_keys(text);
        self.tracker.key_log().connections()
    }

    /// Begins to count for Prometheus.
    pub fn count_for_metrics(&mut self) -> Arc<Gauges> {
        Arc::clone(self.sinks.gauges.get_or_insert_default())
    }

    /// Whether nobody reads the records any more.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.sinks.unread
    }

    /// Reads captures to their end, until nobody reads the records any more, or until the watcher wants
    /// to stop.
    ///
    /// # Errors
    /// A capture cannot be read on, or records cannot be written; what was read is kept.
    pub fn files(&mut self, source: &mut Merge, watcher: &mut dyn Watcher) -> Result<(), Problem> {
        let began = Instant::now();
        if !self.trackers.is_empty() {
            return self.on_threads(source, watcher, began);
        }
        let mut since_look = 0;
        loop {
            since_look += match source.next_batch()? {
                Some(Batch::Frames(frames)) => self.frames(frames)?,
                Some(Batch::KeyLog(text)) => self.add_keys(text).min(1),
                Some(_) => 0,
                None => return Ok(()),
            };
            if self.sinks.unread {
                return Ok(());
            }
            if since_look >= BETWEEN_LOOKS {
                since_look = 0;
                if watcher.interrupted() {
                    return Ok(());
                }
                self.sinks.flush()?;
                self.show_metrics();
                let connections = self.tracker.counters().connections;
                show_progress(source.progress(), connections, began.elapsed(), watcher);
            }
        }
    }

    fn on_threads(
        &mut self,
        source: &mut Merge,
        watcher: &mut dyn Watcher,
        began: Instant,
    ) -> Result<(), Problem> {
        let trackers = std::mem::take(&mut self.trackers);
        let mut taker = OnThreads { sinks: &mut self.sinks, watcher, began };
        let (left, result) = threads::read(source, trackers, seed_of_run(), &mut taker);
        for (link, frames) in &left.unread_links {
            *self.unread_links.entry(*link).or_default() += frames;
        }
        self.left = Some(left);
        result
    }

    /// Reads what passes interfaces: for the duration asked for, until nobody reads the records any more,
    /// or until the view wants to stop. Frames that passed until then are read too.
    ///
    /// # Errors
    /// An interface fails, or records cannot be written; what was read is kept.
    pub fn live(
        &mut self,
        sources: &mut [Live],
        times: Times,
        view: &mut dyn View,
    ) -> Result<(), Problem> {
        self.sinks.now = Some(Now::default());
        let began = Instant::now();
        let source = match sources {
            [source] => source,
            several => return self.listen(several, times, view),
        };
        let end = times.duration.map(|duration| began + duration);
        let (mut viewed, mut saved) = (began, began);
        while !view.interrupted()
            && !self.sinks.unread
            && end.is_none_or(|end| Instant::now() < end)
        {
            let mut taken = 0;
            while taken < BETWEEN_LOOKS
                && let Some(frames) = source.next_batch()
            {
                taken += self.frames(frames.take(BETWEEN_LOOKS))?;
            }
            let now = Instant::now();
            if now - viewed >= BETWEEN_VIEWS {
                self.lost = source.statistics()?.drops;
                self.show_metrics();
                self.sinks.flush()?;
                self.show(now - began, now - viewed, view);
                viewed = now;
            }
            if now - saved >= times.flush {
                self.sinks.save()?;
                saved = now;
            }
            if taken < BETWEEN_LOOKS {
                let left = end.map_or(WAIT, |end| end.saturating_duration_since(now).min(WAIT));
                source.wait(left)?;
            }
        }
        source.close()?;
        let end = Instant::now() + REST;
        while !self.sinks.unread && source.wait_for_rest(end)? {
            while let Some(frames) = source.next_batch() {
                self.frames(frames)?;
            }
        }
        self.lost = lost(source)?;
        Ok(())
    }

    fn show(&mut self, elapsed: Duration, since: Duration, view: &mut dyn View) {
        let (counters, active) = (*self.tracker.counters(), self.tracker.active());
        if let Some(now) = &mut self.sinks.now {
            view.now(now.text(elapsed, since, &counters, active, self.lost));
        }
    }

    /// Takes frames, several at once. How many there were.
    fn frames<'a>(&mut self, frames: impl Iterator<Item = Frame<'a>>) -> Result<usize, Problem> {
        let Reading { tracker, sinks, unread_links, .. } = self;
        take_frames(tracker, unread_links, frames, &mut |output| sinks.take(output))
    }

    fn hand_out(&mut self) -> Result<(), Problem> {
        while let Some(output) = self.tracker.poll_output() {
            self.sinks.take(output)?;
        }
        Ok(())
    }

    fn show_metrics(&self) {
        if let Some(gauges) = &self.sinks.gauges {
            gauges.set(*self.tracker.counters(), self.tracker.active(), self.lost);
        }
    }

    /// Gives out what is still open, and ends what is written.
    ///
    /// # Errors
    /// Records cannot be written.
    pub fn finish(mut self) -> Result<Read, Problem> {
        self.tracker.close();
        let handed_out = self.hand_out();
        let (counters, unread_quic) = match &self.left {
            Some(left) => (left.counters, unread_quic(&left.unread_quic)),
            None => (*self.tracker.counters(), unread_quic(self.tracker.unread_quic())),
        };
        self.sinks.digest.count_frames(&counters);
        self.sinks.digest.name_unread_quic(&unread_quic);
        self.sinks.digest.count_lost(self.lost);
        self.sinks.finish();
        if let Err(problem) = handed_out {
            self.sinks.unsaved = Some(problem);
        }
        Ok(Read { sinks: self.sinks, counters, unread_links: self.unread_links, unread_quic })
    }
}

/// Frames that passed and were not read: the ring was full, or the kernel kept them back to the end.
fn lost(source: &mut Live) -> Result<u64, Problem> {
    Ok(source.statistics()?.drops + source.waiting()?)
}

/// Gives frames to a tracker, several at once, and hands on what it gives out. How many there were.
fn take_frames<'a>(
    tracker: &mut Tracker,
    unread_links: &mut BTreeMap<u32, u64>,
    frames: impl Iterator<Item = Frame<'a>>,
    take: &mut dyn FnMut(Output) -> Result<(), Problem>,
) -> Result<usize, Problem> {
    let mut group = [NOTHING; GROUP];
    let (mut filled, mut taken) = (0, 0);
    for Frame { at, link, bytes, original_len, .. } in frames {
        taken += 1;
        let Some(link_type) = LinkType::from_number(link) else {
            *unread_links.entry(link).or_default() += 1;
            continue;
        };
        if let Some(place) = group.get_mut(filled) {
            *place = Packet { at, link_type, bytes, original_len };
            filled += 1;
        }
        if filled == GROUP {
            tracker.handle_packets(&group);
            while let Some(output) = tracker.poll_output() {
                take(output)?;
            }
            filled = 0;
        }
    }
    tracker.handle_packets(group.get(..filled).unwrap_or_default());
    while let Some(output) = tracker.poll_output() {
        take(output)?;
    }
    Ok(taken)
}

/// Takes what threads give out, and shows how far they are.
struct OnThreads<'a> {
    sinks: &'a mut Sinks,
    watcher: &'a mut dyn Watcher,
    began: Instant,
}

impl threads::Taker for OnThreads<'_> {
    fn take(&mut self, output: Output) -> Result<(), Problem> {
        self.sinks.take(output)
    }

    fn goes_on(&mut self, standing: &threads::Standing) -> Result<bool, Problem> {
        self.sinks.flush()?;
        if let Some(gauges) = &self.sinks.gauges {
            gauges.set(standing.counters, standing.active, 0);
        }
        let connections = standing.counters.connections;
        show_progress(standing.progress, connections, self.began.elapsed(), self.watcher);
        Ok(!self.sinks.unread && !self.watcher.interrupted())
    }

    fn interrupted(&mut self) -> bool {
        self.watcher.interrupted()
    }
}

fn show_progress(at: Progress, connections: u64, took: Duration, watcher: &mut dyn Watcher) {
    let text = format!("reading: {connections} connections");
    // Of a pipe nobody knows how much is to come.
    let Some(of) = at.of else { return watcher.progress_without_end(&text) };
    let share = (at.read as f64 / of.max(1) as f64).clamp(1e-6, 1.0);
    watcher.progress(&text, took, took.div_f64(share).min(Duration::from_secs(1 << 30)));
}

/// The QUIC versions that were not read by name, and how many first datagrams each had.
fn unread_quic(versions: &BTreeMap<u32, u64>) -> Vec<(String, u64)> {
    let name = |version: u32| match version {
        0 => "other versions".to_owned(),
        version => Version(version).to_string(),
    };
    versions.iter().map(|(version, count)| (name(*version), *count)).collect()
}

/// Differs from run to run: keys hash tables, names the run in rows.
fn seed_of_run() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was shown: a share of the time, or none.
    #[derive(Default)]
    struct Shown(Vec<Option<f64>>);

    impl Watcher for Shown {
        fn progress(&mut self, _: &str, done: Duration, total: Duration) {
            self.0.push(Some(done.div_duration_f64(total)));
        }

        fn progress_without_end(&mut self, _: &str) {
            self.0.push(None);
        }

        fn interrupted(&self) -> bool {
            false
        }

        fn warning(&mut self, _: &str, _: Option<&str>) {}

        fn note(&mut self, _: &str) {}
    }

    #[test]
    fn of_a_pipe_no_time_left_is_shown() {
        let mut shown = Shown::default();
        for of in [Some(200), None] {
            show_progress(Progress { read: 50, of }, 1, Duration::from_secs(2), &mut shown);
        }
        assert_eq!(shown.0, [Some(0.25), None]);
    }
}
