//! Recoveries that were none: detection and undoing of spurious retransmissions by timestamps
//! (Eifel, RFC 3522), by forward progress (F-RTO, RFC 5682) and by D-SACK (RFC 3708).

use super::{Phase, Recovery, Stream};
use crate::congestion::Controller;
use std::ops::Range;
use std::time::Duration;
use units::Time;

/// A recovery in progress, or one that may yet prove needless.
#[derive(Debug, Clone)]
pub(super) struct Episode {
    /// Congestion control before it.
    before: Controller,
    /// First byte not acknowledged when it began.
    start: u64,
    /// Bytes sent again and not reported as duplicates.
    unneeded: u64,
    /// When the first retransmission went out, and its end.
    first: Option<(Time, u64)>,
    forward: Forward,
    /// The recovery is over; the episode is forgotten when this offset is acknowledged.
    expires: Option<u64>,
}

/// Where F-RTO is (RFC 5682 §2.1 and §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forward {
    Off,
    /// Step 1: the timer expired, the first segment goes out again.
    Retransmitted,
    /// Step 2b: new data instead of further retransmissions.
    NewData,
}

impl Episode {
    pub(super) fn begin(before: &Controller, start: u64, forward: Forward) -> Box<Self> {
        Box::new(Self {
            before: before.clone(),
            start,
            unneeded: 0,
            first: None,
            forward,
            expires: None,
        })
    }

    pub(super) fn on_retransmitted(&mut self, now: Time, range: &Range<u64>) {
        self.first.get_or_insert((now, range.end));
        self.unneeded = self.unneeded.saturating_add(range.end - range.start);
    }

    /// The peer threw away what it had: that it asks for old data proves nothing.
    pub(super) fn distrust(&mut self) {
        self.forward = Forward::Off;
    }

    /// The recovery ended with `next` as SND.NXT: a late D-SACK has one round trip to come.
    pub(super) fn expire_at(&mut self, next: u64) {
        self.expires = Some(next);
    }
}

/// What an acknowledgment says on whether the recovery was needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    pub now: Time,
    pub advanced: bool,
    pub rtt_echo: Option<Duration>,
    /// Data sent before the timeout, and never again, were delivered.
    pub original: bool,
    /// Bytes that the peer had twice.
    pub duplicate: Option<(u64, u64)>,
}

impl Recovery {
    /// Weighs the evidence and takes the recovery back if it was needless.
    pub(super) fn reconsider(&mut self, evidence: &Evidence) {
        if self.is_spurious(evidence) {
            self.undo();
        } else {
            self.step_forward(evidence);
        }
        let acknowledged = self.board.acknowledged();
        let over = |episode: &Episode| episode.expires.is_some_and(|end| acknowledged >= end);
        if self.episode.as_deref().is_some_and(over) {
            self.episode = None;
        }
    }

    fn is_spurious(&mut self, evidence: &Evidence) -> bool {
        let acknowledged = self.board.acknowledged();
        let Some(episode) = &mut self.episode else { return false };
        // RFC 3708 §2: all that was sent again was there already
        if let Some((start, end)) = evidence.duplicate
            && start >= episode.start
            && episode.unneeded > 0
        {
            episode.unneeded = episode.unneeded.saturating_sub(end - start);
            if episode.unneeded == 0 {
                return true;
            }
        }
        if self.phase == Phase::Open {
            return false;
        }
        // RFC 5682 §3.1 step 3b
        if self.phase == Phase::Timeout && episode.forward != Forward::Off && evidence.original {
            return true;
        }
        // RFC 3522 §3.2: the echoed timestamp is older than the retransmission
        if let (Some((at, end)), Some(echo)) = (episode.first, evidence.rtt_echo)
            && evidence.advanced
            && acknowledged >= end
        {
            // Asked once: later acknowledgments answer other segments.
            episode.first = Some((Time::ZERO, end));
            return evidence.now - echo + self.timestamp_tick < at;
        }
        false
    }

    fn undo(&mut self) {
        let Some(episode) = self.episode.take() else { return };
        self.controller.undo(&episode.before);
        self.board.absolve();
        self.phase = Phase::Open;
        self.presumed = 0;
        self.rtt.reset_back_off();
        self.timeouts = 0;
        self.rack.recovery_ended();
    }

    /// F-RTO's next step, when the timeout is not known to be spurious.
    fn step_forward(&mut self, evidence: &Evidence) {
        let acknowledged = self.board.acknowledged();
        let (phase, recover, next) = (self.phase, self.recover, self.board.next());
        let Some(episode) = &mut self.episode else { return };
        episode.forward = match episode.forward {
            Forward::Retransmitted
                if phase == Phase::Timeout && evidence.advanced && acknowledged < recover =>
            {
                self.recover = next;
                Forward::NewData
            }
            _ => Forward::Off,
        };
    }

    /// Whether new data go before lost ranges (RFC 5682 §3.1 step 2b).
    pub(super) fn prefers_new_data(&mut self, stream: &Stream) -> bool {
        let new_data_first = |episode: &Episode| episode.forward == Forward::NewData;
        if self.phase != Phase::Timeout || !self.episode.as_deref().is_some_and(new_data_first) {
            return false;
        }
        let next = self.board.next();
        let waiting = stream.end.saturating_sub(next);
        if self.worth_sending(waiting, stream.peer_window_end.saturating_sub(next)) > 0 {
            return true;
        }
        if let Some(episode) = &mut self.episode {
            episode.forward = Forward::Off;
        }
        false
    }
}
