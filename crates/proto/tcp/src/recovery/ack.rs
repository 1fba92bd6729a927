//! What an acknowledgment does.

use super::prr::{self, Prr};
use super::rack::Rack;
use super::scoreboard::{Observer, Sent};
use super::undo::{Episode, Evidence, Forward};
use super::{Ack, Acked, Phase, Recovery};
use crate::congestion::Progress;
use std::ops::Range;
use std::time::Duration;
use units::Time;

/// Duplicate acknowledgments that mean a loss, without SACK (RFC 5681 §3.2).
const DUPLICATE_THRESHOLD: u32 = 3;
/// Longest round trip that an echoed timestamp is believed.
const OLDEST_ECHO: Duration = Duration::from_secs(120);
/// Blocks that fit a segment's options (RFC 2018 §3).
const MAX_BLOCKS: usize = 4;

/// What one acknowledgment delivered.
struct Summary<'a> {
    now: Time,
    /// When the segment that is answered was sent, by its echoed timestamp and rounded up.
    echoed: Option<Time>,
    rack: &'a mut Rack,
    bytes: u64,
    /// Sending times of the first and the last part that was sent but once.
    oldest: Option<Time>,
    newest: Option<Time>,
    /// Whether a part was among them that had been sent twice.
    again: bool,
    /// Whether a part sent but once lies before `recover`.
    original: bool,
    recover: u64,
}

impl Observer for Summary<'_> {
    fn delivered(&mut self, part: &Sent) {
        self.bytes += part.len();
        if part.again {
            self.again = true;
        } else if part.at < self.now {
            // Data of a SYN are told when they are acknowledged, at no distance: no sample.
            self.oldest = Some(self.oldest.map_or(part.at, |oldest| oldest.min(part.at)));
            self.newest = Some(self.newest.map_or(part.at, |newest| newest.max(part.at)));
        }
        self.original |= !part.again && part.end <= self.recover;
        let answers_last = self.echoed.map(|echoed| echoed >= part.at);
        self.rack.delivered(self.now, part, answers_last);
    }
}

/// The numbers before an acknowledgment that its handling needs.
#[derive(Clone, Copy)]
struct Before {
    acknowledged: u64,
    in_flight: u64,
    /// FlightSize (RFC 5681 §2).
    outstanding: u64,
    /// Bytes neither acknowledged nor selectively acknowledged.
    missing: u64,
}

impl Recovery {
    /// Handles an acknowledgment. Blocks outside of what was sent are passed over; the caller has
    /// checked that `cumulative` acknowledges nothing never sent (RFC 9293 §3.10.7.4).
    pub fn on_ack(&mut self, now: Time, ack: &Ack<'_>) -> Acked {
        let before = Before {
            acknowledged: self.board.acknowledged(),
            in_flight: self.in_flight(),
            outstanding: self.board.outstanding(),
            missing: self.board.outstanding() - self.board.sacked(),
        };
        let cumulative = ack.cumulative.clamp(before.acknowledged, self.board.next());
        let newly_acked = cumulative - before.acknowledged;
        let advanced = newly_acked > 0;
        let echoed = ack.rtt_echo.map(|echo| now - echo + self.timestamp_tick);
        let mut summary = Summary {
            now,
            echoed,
            rack: &mut self.rack,
            bytes: 0,
            oldest: None,
            newest: None,
            again: false,
            original: false,
            recover: self.recover,
        };
        self.board.acknowledge(cumulative, &mut summary);
        let blocks = if self.sack { ack.sack } else { &[] };
        for block in ascending(blocks) {
            if block.start >= cumulative && block.end <= self.board.next() && !block.is_empty() {
                self.board.sack(&block, &mut summary);
            }
        }
        let Summary { bytes, oldest, newest, again, original, .. } = summary;
        let repeats = !advanced && !ack.window_changed && ack.cumulative == cumulative;
        let is_duplicate = repeats && !self.board.is_empty();
        let delivered =
            if self.sack { bytes } else { self.count_duplicates(is_duplicate, newly_acked) };
        self.take_samples(now, ack, before.in_flight, Samples { oldest, newest, again, advanced });
        let duplicate = duplicate_block(cumulative, blocks)
            .filter(|block| block.1 <= self.board.next() && self.retransmissions > 0);
        if let Some(block) = duplicate {
            self.rack.widen(cumulative, self.board.next());
            self.forget_probe_if_duplicate(block);
        }
        if advanced {
            self.timeouts = 0;
            self.rtt.reset_back_off();
        }
        self.finish_probe(cumulative, repeats && blocks.is_empty(), before);
        if self.episode.is_some() {
            let rtt_echo = ack.rtt_echo;
            self.reconsider(&Evidence { now, advanced, rtt_echo, original, duplicate });
        }
        let left = self.leave_if_recovered(cumulative);
        let newly_lost = self.find_losses(now, advanced);
        if newly_lost > 0 && self.phase == Phase::Open {
            self.enter_fast_recovery(before.outstanding, before.missing);
        }
        let rtt = newest.filter(|_| !again).map(|at| now.saturating_since(at));
        self.adjust_window(
            &Progress {
                now,
                delivered,
                in_flight: before.in_flight,
                limited: self.limited_until.is_some_and(|until| before.acknowledged <= until),
                rtt,
                smoothed: self.rtt.smoothed(),
                acknowledged: cumulative,
                sent: self.board.next(),
            },
            advanced && !left,
            advanced && newly_lost == 0,
        );
        self.arm_after_ack(now, advanced);
        Acked { newly_acked, is_duplicate, in_recovery: self.phase != Phase::Open }
    }

    /// Fast recovery begins (RFC 6675 §5, RFC 9937 §6.1). `flight` is FlightSize, `missing` is
    /// RecoverFS: the part of it that was not delivered before.
    pub(super) fn enter_fast_recovery(&mut self, flight: u64, missing: u64) {
        let start = self.board.acknowledged();
        self.episode = Some(Episode::begin(&self.controller, start, Forward::Off));
        self.controller.on_congestion(flight);
        self.phase = Phase::Fast;
        self.recover = self.board.next();
        self.prr = Prr::begin(missing, self.in_flight() + self.mss);
        self.tail = super::timers::Tail::default();
        self.timers.probe = None;
    }

    fn take_samples(&mut self, now: Time, ack: &Ack<'_>, in_flight: u64, samples: Samples) {
        // Karn: a segment sent twice gives no sample, unless by its timestamp.
        let rtt = match samples.oldest {
            Some(at) if !samples.again => Some(now.saturating_since(at)),
            // An echo older than that is the peer's invention or a wrapped clock.
            _ if samples.advanced => ack
                .rtt_echo
                .filter(|echo| *echo <= OLDEST_ECHO)
                .map(|echo| echo.max(self.timestamp_tick)),
            _ => None,
        };
        if let Some(rtt) = rtt {
            let per_round = in_flight.div_ceil(2 * self.mss);
            self.rtt.sample_of(rtt, u32::try_from(per_round).unwrap_or(u32::MAX));
        }
        if let Some(at) = samples.newest {
            self.rack.sample(now, now.saturating_since(at));
        }
    }

    /// Without SACK: each duplicate says that a segment left the network (RFC 6675 has no need of
    /// it; as RFC 9937 §6.2 for peers without SACK). Returns the bytes delivered.
    fn count_duplicates(&mut self, is_duplicate: bool, newly_acked: u64) -> u64 {
        if newly_acked > 0 {
            // The first segment acknowledged was the missing one; duplicates told of the others.
            let reported = self.presumed.min(newly_acked.saturating_sub(self.mss));
            self.presumed -= reported;
            self.duplicates = 0;
            if self.board.is_empty() {
                self.presumed = 0;
            }
            return newly_acked - reported;
        }
        if !is_duplicate {
            return 0;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        // RFC 3042: until there is a loss to recover from, two segments at most
        if self.phase == Phase::Open && self.presumed >= 2 * self.mss && !self.trusts_duplicates() {
            return 0;
        }
        // The missing segment itself is never among those that left.
        let missing = self.mss.max(self.board.lost());
        let most = self.board.outstanding().saturating_sub(missing);
        let presumed = (self.presumed + self.mss).min(most.max(self.presumed));
        let delivered = presumed - self.presumed;
        self.presumed = presumed;
        delivered
    }

    /// RFC 6582 §3.2 step 2 and 4: duplicates may answer what a timeout sent twice.
    fn trusts_duplicates(&self) -> bool {
        self.board.acknowledged() > self.careful || self.careful == 0
    }

    /// Returns the bytes newly taken for lost.
    fn find_losses(&mut self, now: Time, advanced: bool) -> u64 {
        if self.board.is_empty() {
            return 0;
        }
        if self.sack {
            return self.detect_losses(now);
        }
        let first = self.board.acknowledged();
        let due = match self.phase {
            Phase::Open => self.duplicates >= DUPLICATE_THRESHOLD && self.trusts_duplicates(),
            // RFC 6582 §3.2 step 3: a partial acknowledgment shows the next loss
            Phase::Fast => advanced,
            Phase::Timeout => false,
        };
        if due { self.board.condemn_front(first + self.mss) } else { 0 }
    }

    /// Says whether a recovery ended: that acknowledgment does not widen the window too.
    fn leave_if_recovered(&mut self, cumulative: u64) -> bool {
        if self.phase == Phase::Open || cumulative < self.recover {
            return false;
        }
        if self.phase == Phase::Fast {
            self.controller.leave_recovery();
        }
        self.phase = Phase::Open;
        self.rack.recovery_ended();
        if let Some(episode) = &mut self.episode {
            episode.expire_at(self.board.next());
        }
        true
    }

    fn adjust_window(&mut self, progress: &Progress, may_grow: bool, safe: bool) {
        match self.phase {
            Phase::Fast => {
                let step = prr::Step {
                    delivered: progress.delivered,
                    in_flight: self.in_flight(),
                    threshold: self.controller.threshold(),
                    mss: self.mss,
                    safe,
                };
                self.prr.on_ack(&step);
            }
            Phase::Open | Phase::Timeout if may_grow => self.controller.on_ack(progress),
            Phase::Open | Phase::Timeout => {}
        }
    }

    /// RFC 8985 §7.4.2: what the acknowledgment says of the probe.
    fn finish_probe(&mut self, cumulative: u64, bare_duplicate: bool, before: Before) {
        let Some(end) = self.tail.end else { return };
        if cumulative < end {
            return;
        }
        if !self.tail.retransmitted || bare_duplicate {
            self.tail.end = None;
        } else if cumulative > end {
            self.tail.end = None;
            // The probe repaired a loss that nothing else saw.
            if self.phase == Phase::Open {
                self.controller.on_congestion(before.outstanding);
                self.controller.leave_recovery();
            }
        }
    }

    /// The peer had the probe's data already: nothing was lost.
    fn forget_probe_if_duplicate(&mut self, block: (u64, u64)) {
        if self.tail.retransmitted
            && self.tail.end.is_some_and(|end| block.0 < end && end <= block.1)
        {
            self.tail.end = None;
        }
    }
}

struct Samples {
    oldest: Option<Time>,
    newest: Option<Time>,
    again: bool,
    advanced: bool,
}

/// The blocks by offset, so that one acknowledgment's news is not taken for reordering.
fn ascending(blocks: &[Range<u64>]) -> impl Iterator<Item = Range<u64>> {
    let mut sorted = [const { u64::MAX..u64::MAX }; MAX_BLOCKS];
    for (place, block) in sorted.iter_mut().zip(blocks) {
        *place = block.clone();
    }
    sorted.sort_unstable_by_key(|block| block.start);
    sorted.into_iter().take(blocks.len())
}

/// The D-SACK among the blocks, if the first is one (RFC 2883 §4): it lies below the cumulative
/// acknowledgment or within the second.
fn duplicate_block(cumulative: u64, blocks: &[Range<u64>]) -> Option<(u64, u64)> {
    let first = blocks.first().filter(|block| !block.is_empty())?;
    let within =
        blocks.get(1).is_some_and(|second| second.start <= first.start && first.end <= second.end);
    (first.end <= cumulative || within).then_some((first.start, first.end))
}
