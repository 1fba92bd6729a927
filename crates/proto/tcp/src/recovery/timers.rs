//! The three timers: reordering and tail loss probe (RFC 8985), retransmission (RFC 6298).

use super::scoreboard::Verdict;
use super::undo::{Episode, Forward};
use super::{Phase, Recovery, Stream, ToSend};
use std::time::Duration;
use units::Time;

/// Added to the probe timeout, so that the least hiccup of either host does not make a probe.
const PROBE_MARGIN: Duration = Duration::from_millis(2);
/// Probe timeout without a round-trip time (RFC 8985 §7.2).
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// Which timer [`Recovery::handle_timeout`] found expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// No timer was due.
    None,
    /// RACK's reordering timer: ranges may have become lost.
    Reordering,
    /// The tail loss probe's: poll gives the probe.
    TailProbe,
    /// The retransmission timer: poll gives the first lost range.
    Retransmission,
}

/// When each timer expires, if it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    pub reordering: Option<Time>,
    pub probe: Option<Time>,
    pub retransmission: Option<Time>,
}

/// The tail loss probe (RFC 8985 §7).
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    /// The timer expired; the probe waits for poll.
    pub due: bool,
    /// TLP.end_seq: the end of what was sent when the probe went.
    pub end: Option<u64>,
    /// TLP.is_retrans.
    pub retransmitted: bool,
}

impl Tail {
    pub(super) fn sent(&mut self, end: u64, retransmitted: bool) {
        self.due = false;
        self.end = Some(end);
        self.retransmitted = retransmitted;
    }
}

impl Recovery {
    /// When [`Recovery::handle_timeout`] is to be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        let Timers { reordering, probe, retransmission } = self.timers;
        // Held back by the peer's window alone, it is for the zero-window probe to ask.
        let retransmission = retransmission.filter(|_| !self.is_blocked_by_window());
        [reordering, probe, retransmission].into_iter().flatten().min()
    }

    /// Handles the timer that expired, if one did.
    pub fn handle_timeout(&mut self, now: Time) -> Fired {
        let expired = |at: Option<Time>| at.is_some_and(|at| at <= now);
        if expired(self.timers.reordering) {
            let (flight, sacked) = (self.board.outstanding(), self.board.sacked());
            let newly = self.detect_losses(now);
            if newly > 0 && self.phase == Phase::Open {
                self.enter_fast_recovery(flight, flight - sacked);
            }
            Fired::Reordering
        } else if expired(self.timers.probe) {
            self.timers.probe = None;
            self.tail.due = true;
            // RFC 8985 §7.3: the retransmission timer runs from the probe on
            self.timers.retransmission = Some(now + self.rtt.rto());
            Fired::TailProbe
        } else if expired(self.timers.retransmission) && !self.is_blocked_by_window() {
            self.on_retransmission_timeout(now);
            Fired::Retransmission
        } else {
            Fired::None
        }
    }

    /// Marks ranges lost as RACK says and arms the reordering timer for those that may become so
    /// (RFC 8985 §6.2 step 5). Returns the bytes newly lost.
    pub(super) fn detect_losses(&mut self, now: Time) -> u64 {
        let window = self.rack.window(
            self.phase != Phase::Open,
            self.board.sacked(),
            self.mss,
            self.rtt.smoothed(),
        );
        let rack = &self.rack;
        let mut latest: Option<Time> = None;
        let newly = self.board.condemn(|sent| match rack.deadline(sent, window) {
            Some(deadline) if deadline <= now => Verdict::Lost,
            Some(deadline) => {
                latest = Some(latest.map_or(deadline, |latest| latest.max(deadline)));
                Verdict::Keep
            }
            // All behind a range sent but once were sent later still.
            None if !sent.again => Verdict::Stop,
            None => Verdict::Keep,
        });
        self.timers.reordering = latest;
        newly
    }

    /// Starts timers after a transmission.
    /// `restart` is for a probe and for the first missing segment sent again: its acknowledgment
    /// takes a round trip from now.
    pub(super) fn arm_after_sending(&mut self, now: Time, restart: bool) {
        if restart || self.timers.retransmission.is_none() {
            self.timers.retransmission = Some(now + self.rtt.rto()); // RFC 6298 §5.1
        }
        self.arm_probe(now);
    }

    /// Restarts or stops timers after an acknowledgment.
    pub(super) fn arm_after_ack(&mut self, now: Time, advanced: bool) {
        if self.board.is_empty() {
            self.timers = Timers::default(); // RFC 6298 §5.2
            self.tail.due = false;
            return;
        }
        if advanced {
            self.timers.retransmission = Some(now + self.rtt.rto()); // RFC 6298 §5.3
        }
        self.arm_probe(now);
    }

    /// RFC 8985 §7.2.
    fn arm_probe(&mut self, now: Time) {
        let may = self.sack
            && self.phase == Phase::Open
            && self.board.sacked() == 0
            && self.board.lost() == 0
            && self.tail.end.is_none()
            && !self.tail.due
            && self.timeouts == 0;
        self.timers.probe = may.then(|| {
            let timeout = match self.rtt.smoothed() {
                None => FIRST_PROBE,
                Some(smoothed) if self.board.outstanding() <= self.mss => {
                    2 * smoothed + self.max_ack_delay
                }
                Some(smoothed) => 2 * smoothed + PROBE_MARGIN,
            };
            let at = now + timeout;
            self.timers.retransmission.map_or(at, |retransmission| retransmission.min(at))
        });
    }

    /// The probe: new data if there are any that the peer takes, else the last segment again
    /// (RFC 8985 §7.3).
    pub(super) fn probe(&mut self, stream: &Stream) -> Option<ToSend> {
        let next = self.board.next();
        let most = self.mss.min(stream.max_len as u64);
        let fresh = next..stream.end.min(stream.peer_window_end).min(next + most);
        if !fresh.is_empty() {
            return Some(ToSend { range: fresh, retransmission: false, probe: true });
        }
        let last = self.board.back().map_or(next, |sent| sent.start);
        let again = last.max(next.saturating_sub(most))..next.min(stream.peer_window_end);
        if again.is_empty() {
            self.tail.due = false;
            return None;
        }
        Some(ToSend { range: again, retransmission: true, probe: true })
    }

    fn on_retransmission_timeout(&mut self, now: Time) {
        // One reduction for one round of losses: none if a recovery already goes on, unless it
        // made progress after an earlier timeout.
        let first = match self.phase {
            Phase::Open => true,
            Phase::Fast => false,
            Phase::Timeout => self.timeouts == 0,
        };
        let flight = self.board.outstanding();
        if first {
            let forward = if self.sack { Forward::Retransmitted } else { Forward::Off };
            self.episode =
                Some(Episode::begin(&self.controller, self.board.acknowledged(), forward));
        }
        self.condemn_on_timeout(now);
        self.controller.on_timeout(flight, first, self.in_flight());
        self.phase = Phase::Timeout;
        self.recover = self.board.next();
        self.careful = self.recover;
        self.timeouts = self.timeouts.saturating_add(1);
        self.rtt.back_off();
        self.tail = Tail::default();
        self.timers = Timers { retransmission: Some(now + self.rtt.rto()), ..Timers::default() };
    }

    /// RFC 8985 §6.3, and reneging by RFC 2018 §8: a first range that the peer claimed to have
    /// would have been acknowledged; repeated timeouts trust no claim either.
    fn condemn_on_timeout(&mut self, now: Time) {
        let reneged =
            self.board.front().is_some_and(|front| front.state == super::scoreboard::State::Sacked);
        if reneged || self.timeouts > 0 {
            self.board.forget_sacks();
            if let Some(episode) = &mut self.episode {
                episode.distrust();
            }
        }
        let first = self.board.acknowledged();
        let (sack, rack) = (self.sack, &self.rack);
        let window = rack.window(true, self.board.sacked(), self.mss, self.rtt.smoothed());
        self.presumed = 0;
        self.duplicates = 0;
        self.board.condemn(|sent| {
            let late = rack.deadline_on_timeout(sent, window) <= now;
            if !sack || sent.start == first || late { Verdict::Lost } else { Verdict::Keep }
        });
    }
}
