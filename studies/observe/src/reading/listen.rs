//! Interfaces on several threads: each has a ring of its own, into which the kernel puts the frames of its
//! flows, and a tracker. The thread that called writes the records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use capture::Live;
use fault::{Fault, Problem};
use tracker::{Counters, Output, Tracker};

use super::threads::Left;
use super::{BETWEEN_LOOKS, BETWEEN_VIEWS, REST, Reading, Times, View, WAIT, take_frames};

/// What a thread has heard.
struct Heard {
    listener: usize,
    outputs: Vec<Output>,
    counters: Counters,
    active: usize,
    /// Frames that its rings lost.
    lost: u64,
}

/// How a thread stands.
#[derive(Clone, Copy, Default)]
struct Standing {
    counters: Counters,
    active: usize,
    lost: u64,
}

/// A thread's own.
struct Listener<'a> {
    number: usize,
    tracker: Tracker,
    source: &'a mut Live,
    stop: &'a AtomicBool,
    heard: Sender<Heard>,
}

impl Reading {
    pub(super) fn listen(
        &mut self,
        sources: &mut [Live],
        times: Times,
        view: &mut dyn View,
    ) -> Result<(), Problem> {
        let trackers = std::mem::take(&mut self.trackers);
        let mut standing = vec![Standing::default(); trackers.len()];
        let stop = AtomicBool::new(false);
        let (mut left, mut result) = (Left::default(), Ok(()));
        thread::scope(|scope| {
            let (heard, hears) = mpsc::channel();
            let mut threads = Vec::new();
            for (number, (tracker, source)) in trackers.into_iter().zip(sources).enumerate() {
                let heard = heard.clone();
                let listener = Listener { number, tracker, source, stop: &stop, heard };
                let thread = thread::Builder::new().name(format!("listen {number}"));
                match thread.spawn_scoped(scope, move || listener.run()) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        let what = "a thread cannot be started";
                        result = Err(Problem::of(Fault::Machine, error).while_doing(what));
                    }
                }
            }
            drop(heard);
            let collected = self.collect(&hears, &mut standing, &stop, times, view);
            for thread in threads {
                match thread.join() {
                    Ok((own, failed)) => {
                        left.merge(own);
                        if let (Ok(()), Err(problem)) = (&result, failed) {
                            result = Err(problem);
                        }
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            if result.is_ok() {
                result = collected;
            }
        });
        self.lost = standing.iter().map(|own| own.lost).sum();
        for (link, frames) in &left.unread_links {
            *self.unread_links.entry(*link).or_default() += frames;
        }
        self.left = Some(left);
        result
    }

    /// Takes what the threads have heard until they have ended.
    fn collect(
        &mut self,
        hears: &mpsc::Receiver<Heard>,
        standing: &mut [Standing],
        stop: &AtomicBool,
        times: Times,
        view: &mut dyn View,
    ) -> Result<(), Problem> {
        let (began, count) = (Instant::now(), standing.len() as u64);
        let end = times.duration.map(|duration| began + duration);
        let (mut viewed, mut saved) = (began, began);
        let mut result = Ok(());
        loop {
            match hears.recv_timeout(WAIT) {
                Ok(heard) => {
                    if let Some(own) = standing.get_mut(heard.listener) {
                        let Heard { counters, active, lost, .. } = heard;
                        *own = Standing { counters, active, lost };
                    }
                    for mut output in heard.outputs {
                        renumber(&mut output, heard.listener as u64, count);
                        if result.is_ok() {
                            result = self.sinks.take(output);
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return result,
            }
            let now = Instant::now();
            if now - viewed >= BETWEEN_VIEWS && result.is_ok() {
                result = self.show_all(standing, now - began, now - viewed, view);
                viewed = now;
            }
            if now - saved >= times.flush && result.is_ok() {
                result = self.sinks.save();
                saved = now;
            }
            let over = end.is_some_and(|end| now >= end);
            if over || view.interrupted() || self.sinks.unread || result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
    }

    fn show_all(
        &mut self,
        standing: &[Standing],
        elapsed: Duration,
        since: Duration,
        view: &mut dyn View,
    ) -> Result<(), Problem> {
        let mut counters = Counters::default();
        standing.iter().for_each(|own| counters.add(&own.counters));
        let active = standing.iter().map(|own| own.active).sum();
        let lost = standing.iter().map(|own| own.lost).sum();
        if let Some(gauges) = &self.sinks.gauges {
            gauges.set(counters, active, lost);
        }
        self.sinks.flush()?;
        if let Some(now) = &mut self.sinks.now {
            view.now(now.text(elapsed, since, &counters, active, lost));
        }
        Ok(())
    }
}

impl Listener<'_> {
    /// Listens until it is to stop, then gives out what is open.
    fn run(mut self) -> (Left, Result<(), Problem>) {
        let mut left = Left::default();
        let mut lost = 0;
        let result = self.frames(&mut left, &mut lost);
        self.tracker.close();
        let mut outputs = Vec::new();
        while let Some(output) = self.tracker.poll_output() {
            outputs.push(output);
        }
        if let Ok(all) = super::lost(self.source) {
            lost = all;
        }
        self.say(outputs, lost);
        left.add(&self.tracker);
        (left, result)
    }

    fn frames(&mut self, left: &mut Left, lost: &mut u64) -> Result<(), Problem> {
        let mut said = Instant::now();
        let mut outputs = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let mut taken = 0;
            while taken < BETWEEN_LOOKS
                && let Some(frames) = self.source.next_batch()
            {
                let frames = frames.take(BETWEEN_LOOKS);
                taken +=
                    take_frames(&mut self.tracker, &mut left.unread_links, frames, &mut |o| {
                        outputs.push(o);
                        Ok(())
                    })?;
            }
            if said.elapsed() >= BETWEEN_VIEWS / 2 {
                *lost = self.source.statistics()?.drops;
                said = Instant::now();
                self.say(std::mem::take(&mut outputs), *lost);
            } else if !outputs.is_empty() {
                self.say(std::mem::take(&mut outputs), *lost);
            }
            if taken < BETWEEN_LOOKS {
                self.source.wait(WAIT)?;
            }
        }
        self.rest(left, &mut outputs)?;
        self.say(outputs, *lost);
        Ok(())
    }

    /// Takes the frames that passed before the stop and that the kernel kept back.
    fn rest(&mut self, left: &mut Left, outputs: &mut Vec<Output>) -> Result<(), Problem> {
        self.source.close()?;
        let end = Instant::now() + REST;
        while self.source.wait_for_rest(end)? {
            while let Some(frames) = self.source.next_batch() {
                take_frames(&mut self.tracker, &mut left.unread_links, frames, &mut |output| {
                    outputs.push(output);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn say(&self, outputs: Vec<Output>, lost: u64) {
        let (counters, active) = (*self.tracker.counters(), self.tracker.active());
        let heard = Heard { listener: self.number, outputs, counters, active, lost };
        // Nobody hears only where the caller has panicked.
        let _ = self.heard.send(heard);
    }
}

/// A number of its own for each connection: trackers count by themselves.
fn renumber(output: &mut Output, listener: u64, count: u64) {
    let number = match output {
        Output::Connection(connection) => &mut connection.number,
        Output::Ending(ending) => &mut ending.number,
    };
    *number = number.saturating_mul(count).saturating_add(listener);
}
