//! When a frame leaves the queue and when its last bit is sent.

use units::{CountedBytes, Time};

use crate::config::{LinkConfig, Outage, OutageFrames, RateSource};
use crate::trace::Trace;

/// The sending end: what it has committed to so far.
#[derive(Debug, Clone)]
pub(crate) struct Transmitter {
    /// From when traces and outages count.
    origin: Time,
    /// When the last bit of the latest frame was or will be sent.
    free_at: Time,
    /// The first opportunity of the trace that no frame has used.
    next_opportunity: u64,
    /// Bytes that the latest frame left of the opportunity before that one.
    credit: u64,
}

/// When a frame begins to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) at: Time,
    /// With a trace: which opportunity, and the bytes that are left of it.
    opportunity: u64,
    credit: u64,
}

/// Outages in a row that a frame waits through at most. Outages that repeat in step with a trace cover
/// all of its opportunities: the frame then waits for longer than any run.
const MOST_OUTAGES: u32 = 20_000;
/// A hundred years.
const BEYOND_ANY_RUN: std::time::Duration = std::time::Duration::from_secs(100 * 365 * 86_400);

impl Transmitter {
    pub(crate) fn new(origin: Time) -> Self {
        Transmitter { origin, free_at: Time::ZERO, next_opportunity: 0, credit: 0 }
    }

    /// Begins traces and outages anew at `origin`. What is being sent is still sent; what waits is
    /// not sent before `origin`.
    pub(crate) fn restart(&mut self, origin: Time) {
        let free_at = self.free_at.max(origin);
        *self = Transmitter { free_at, ..Transmitter::new(origin) };
    }

    /// Whether all bits have been sent by `now`.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// When a frame that waits since `since` begins to be sent.
    pub(crate) fn start(&self, config: &LinkConfig, since: Time) -> Start {
        match &config.rate {
            Some(RateSource::Trace(trace)) => self.start_by_trace(config, trace, since),
            _ => {
                let at = self.up_from(config, since.max(self.free_at));
                Start { at, opportunity: 0, credit: 0 }
            }
        }
    }

    fn start_by_trace(&self, config: &LinkConfig, trace: &Trace, since: Time) -> Start {
        // Bytes left of an opportunity are for a frame that was already waiting then.
        if self.credit > 0 {
            let opportunity = self.next_opportunity.saturating_sub(1);
            let at = trace.time_of(self.origin, opportunity);
            if since < at && self.up_from(config, at) == at {
                return Start { at, opportunity, credit: self.credit };
            }
        }
        let mut opportunity = trace
            .first_after(self.origin, since)
            .max(trace.first_at(self.origin, self.free_at))
            .max(self.next_opportunity);
        for _ in 0..MOST_OUTAGES {
            let at = trace.time_of(self.origin, opportunity);
            let up = self.up_from(config, at);
            if up == at {
                return Start { at, opportunity, credit: Trace::OPPORTUNITY };
            }
            opportunity = trace.first_at(self.origin, up).max(opportunity.saturating_add(1));
        }
        let beyond = trace.time_of(self.origin, opportunity) + BEYOND_ANY_RUN;
        let opportunity = trace.first_at(self.origin, beyond);
        let at = trace.time_of(self.origin, opportunity);
        Start { at, opportunity, credit: Trace::OPPORTUNITY }
    }

    /// Sends a frame of `len` bytes and says when its last bit leaves.
    pub(crate) fn send(&mut self, config: &LinkConfig, start: Start, len: usize) -> Time {
        self.free_at = match &config.rate {
            None => start.at,
            Some(RateSource::Fixed(rate)) => start.at + rate.time_to_send(len),
            Some(RateSource::Trace(trace)) => {
                let bytes = CountedBytes::Ip.of_frame(len).max(1);
                let missing = bytes.saturating_sub(start.credit);
                let more = missing.div_ceil(Trace::OPPORTUNITY);
                let last = start.opportunity.saturating_add(more);
                self.credit = start.credit + more * Trace::OPPORTUNITY - bytes;
                self.next_opportunity = last.saturating_add(1);
                trace.time_of(self.origin, last)
            }
        };
        self.free_at
    }

    /// Whether a frame whose last bit leaves at `at` is lost to an outage.
    pub(crate) fn is_lost(&self, config: &LinkConfig, at: Time) -> bool {
        let lossy = |outage: &&Outage| outage.frames == OutageFrames::Drop;
        config.outages.iter().filter(lossy).any(|outage| outage.until(self.origin, at).is_some())
    }

    /// The first time from `at` on in which no outage makes frames wait.
    fn up_from(&self, config: &LinkConfig, mut at: Time) -> Time {
        let until = |at| {
            let waits = |outage: &&Outage| outage.frames == OutageFrames::Wait;
            config.outages.iter().filter(waits).find_map(|outage| outage.until(self.origin, at))
        };
        // Ends: each turn leaves a single outage for good, or one repetition of the only outage
        // that repeats, which is followed by a time that only single outages cover.
        while let Some(up) = until(at) {
            at = up;
        }
        at
    }
}

impl Outage {
    /// The end of the outage, if it includes `at`. The beginning is in, the end is not.
    fn until(&self, origin: Time, at: Time) -> Option<Time> {
        let first = origin + self.start.duration();
        let elapsed = at.checked_since(first)?;
        let begun = match self.every.map(|every| every.duration().as_nanos()) {
            None | Some(0) => first,
            Some(every) => {
                at - std::time::Duration::from_nanos((elapsed.as_nanos() % every) as u64)
            }
        };
        let end = begun + self.duration.duration();
        (at < end).then_some(end)
    }
}
