//! Loss recovery: what to send next, and when to send again.
//!
//! Losses are found by time (RACK-TLP, RFC 8985) with selective acknowledgments (RFC 2018), or by
//! counting duplicates (RFC 6582) with a peer that has none. Offsets are those of the stream; the
//! FIN counts as the byte behind the last.
//!
//! Order of calls: [`Recovery::poll`] says what may be sent; what was sent is told to
//! [`Recovery::on_sent`] before the next poll; each acknowledgment goes to [`Recovery::on_ack`];
//! at [`Recovery::next_timeout`] comes [`Recovery::handle_timeout`], and then poll again.

mod ack;
mod prr;
mod rack;
mod scoreboard;
mod timers;
mod undo;

use crate::congestion::{Congestion, Controller};
use crate::info::Hold;
use crate::rtt::RttEstimator;
use prr::Prr;
use rack::Rack;
use scoreboard::Scoreboard;
use std::ops::Range;
use std::time::Duration;
use undo::Episode;
use units::Time;

#[cfg(test)]
use timers::Fired;

/// What a connection's loss recovery is to know from the start.
#[derive(Debug, Clone)]
pub struct RecoveryConfig {
    /// Payload bytes of a full segment.
    pub mss: usize,
    /// Which congestion control.
    pub congestion: Congestion,
    /// Whether both sides agreed on selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// How coarse [`Ack::rtt_echo`] is: one tick of the timestamp clock.
    pub timestamp_tick: Duration,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Least margin of the timeout over the smoothed round-trip time.
    pub min_rto: Duration,
    /// Largest retransmission timeout.
    pub max_rto: Duration,
    /// How long the peer may delay an acknowledgment (RFC 8985 §7.2).
    pub max_ack_delay: Duration,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            mss: 1460,
            congestion: Congestion::Cubic,
            sack: true,
            timestamp_tick: Duration::from_millis(1),
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            max_ack_delay: Duration::from_millis(200),
        }
    }
}

/// The stream and the peer's window, as of now.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// Offset behind the last byte to be sent, the FIN included.
    pub end: u64,
    /// Offset behind the last byte that the peer's window takes.
    pub peer_window_end: u64,
    /// Most payload bytes of one (super-)segment.
    pub max_len: usize,
}

/// A range to be sent in one (super-)segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToSend {
    /// The bytes; may include the FIN's place.
    pub range: Range<u64>,
    /// Whether they were sent before.
    pub retransmission: bool,
    /// Whether this is a tail loss probe (RFC 8985 §7.3).
    pub probe: bool,
}

/// What a segment acknowledges.
#[derive(Debug, Clone, Copy)]
pub struct Ack<'a> {
    /// First byte that the peer misses.
    pub cumulative: u64,
    /// Its SACK blocks in their order; a D-SACK (RFC 2883) is recognised here.
    pub sack: &'a [Range<u64>],
    /// Round-trip time by the echoed timestamp (RFC 7323 §4).
    pub rtt_echo: Option<Duration>,
    /// Whether the segment changed the window or carried data, SYN or FIN: then it is no duplicate
    /// acknowledgment (RFC 5681 §2).
    pub window_changed: bool,
}

/// What an acknowledgment did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Bytes by which the cumulative acknowledgment advanced.
    pub newly_acked: u64,
    /// Whether it was a duplicate acknowledgment (RFC 5681 §2).
    pub is_duplicate: bool,
    /// Whether a recovery from loss goes on.
    pub in_recovery: bool,
}

/// The sending side of one connection: scoreboard, timers, congestion control.
#[derive(Debug, Clone)]
pub struct Recovery {
    mss: u64,
    sack: bool,
    timestamp_tick: Duration,
    max_ack_delay: Duration,
    board: Scoreboard,
    rtt: RttEstimator,
    rack: Rack,
    controller: Controller,
    phase: Phase,
    /// SND.NXT when the recovery began (RFC 6582: recover).
    recover: u64,
    prr: Prr,
    /// What is needed to take a recovery back; on the heap, since few connections have one.
    episode: Option<Box<Episode>>,
    /// Without SACK: bytes that duplicates say have left the network, and how many in a row.
    presumed: u64,
    duplicates: u32,
    /// Without SACK: duplicates for data before this say nothing, since a timeout sent them twice
    /// (RFC 6582 §3.2 step 4).
    careful: u64,
    timers: timers::Timers,
    tail: timers::Tail,
    last_sent: Time,
    /// The congestion window held data back until this offset.
    limited_until: Option<u64>,
    /// Largest window that the peer ever offered.
    widest: u64,
    /// Why the last poll gave nothing of what there is.
    hold: Option<Hold>,
    timeouts: u32,
    retransmissions: u64,
}

/// Where a connection is between losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Fast recovery (RFC 6675, RFC 9937).
    Fast,
    /// After a retransmission timeout (RFC 5681 §3.1).
    Timeout,
}

impl Recovery {
    /// A recovery for a stream that begins at offset 0.
    #[must_use]
    pub fn new(config: &RecoveryConfig) -> Self {
        let mss = (config.mss as u64).max(1);
        Self {
            mss,
            sack: config.sack,
            timestamp_tick: config.timestamp_tick,
            max_ack_delay: config.max_ack_delay,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            rack: Rack::new(),
            controller: Controller::new(config.congestion, mss),
            phase: Phase::Open,
            recover: 0,
            prr: Prr::default(),
            episode: None,
            presumed: 0,
            duplicates: 0,
            careful: 0,
            timers: timers::Timers::default(),
            tail: timers::Tail::default(),
            last_sent: Time::ZERO,
            limited_until: None,
            widest: 0,
            hold: None,
            timeouts: 0,
            retransmissions: 0,
        }
    }

    /// The round trip of SYN and SYN-ACK, if neither was sent twice.
    pub fn on_handshake_rtt(&mut self, now: Time, rtt: Duration) {
        self.rtt.sample(rtt);
        self.rack.sample(now, rtt);
    }

    /// The SYN or SYN-ACK was sent again `times` times (RFC 6298 §5.7, RFC 6928 §2).
    pub fn on_handshake_retransmitted(&mut self, times: u32) {
        self.rtt.handshake_timed_out();
        if times > 1 {
            self.controller.handshake_was_lossy();
        }
    }

    /// The SYN-ACK goes again: what went with and behind it does too. Of congestion it says nothing
    /// that [`Recovery::on_handshake_retransmitted`] does not.
    pub fn on_handshake_timeout(&mut self) {
        self.board.condemn(|_| scoreboard::Verdict::Lost);
    }

    /// What to send now, if anything: a probe, lost ranges, new data. Costs little when there is
    /// nothing.
    pub fn poll(&mut self, now: Time, stream: Stream) -> Option<ToSend> {
        self.hold = None;
        if self.tail.due {
            return self.probe(&stream);
        }
        if self.board.lost() > 0 && !self.prefers_new_data(&stream) {
            return self.lost_range(&stream);
        }
        self.new_range(now, &stream)
    }

    /// Tells that `range` went out. A range at the end of what was sent is new; one before it is a
    /// retransmission, whatever `retransmission` says.
    pub fn on_sent(&mut self, now: Time, range: Range<u64>, retransmission: bool) {
        let next = self.board.next();
        let old = range.start..range.end.min(next);
        if !old.is_empty() {
            debug_assert!(retransmission, "new data begin at the end of what was sent");
            self.board.resend(now, old.clone());
            let bytes = old.end - old.start;
            self.retransmissions += bytes.div_ceil(self.mss);
            if let Some(episode) = &mut self.episode {
                episode.on_retransmitted(now, &old);
            }
        }
        self.board.push(now, range.end);
        if self.phase == Phase::Fast {
            self.prr.on_sent(range.end.saturating_sub(range.start));
        }
        self.last_sent = now;
        let probe = self.tail.due;
        if probe {
            self.tail.sent(self.board.next(), !old.is_empty());
        }
        let first_again = !old.is_empty() && old.start == self.board.acknowledged();
        self.arm_after_sending(now, probe || first_again);
    }

    /// The largest segment changed.
    pub fn set_mss(&mut self, mss: usize) {
        self.mss = (mss as u64).max(1);
        self.controller.set_mss(self.mss);
    }

    /// The path takes no segments as large as those in flight (RFC 1191 §6.4): they are sent
    /// again in smaller ones, and the window stays, since this is no congestion.
    pub fn on_path_mtu_reduced(&mut self, mss: usize) {
        self.set_mss(mss);
        self.board.condemn(|_| scoreboard::Verdict::Lost);
    }

    /// Bytes sent that are neither acknowledged nor taken for lost (RFC 6675: pipe).
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let left = self.board.sacked() + self.board.lost() + self.presumed;
        self.board.outstanding().saturating_sub(left)
    }

    /// Offset of the first byte never sent (SND.NXT).
    #[must_use]
    pub fn next(&self) -> u64 {
        self.board.next()
    }

    /// Offset of the first byte not acknowledged (SND.UNA).
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.board.acknowledged()
    }

    /// Whether all that was sent is acknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.board.is_empty()
    }

    /// Whether the last poll gave nothing only because of the peer's window, with nothing in
    /// flight whose acknowledgment would open it: time for a zero-window probe (RFC 9293
    /// §3.8.6.1). While it is so, the retransmission timer rests. A probe that repeats an
    /// acknowledged byte need not be told to [`Recovery::on_sent`]; one with new data must.
    #[must_use]
    pub fn is_blocked_by_window(&self) -> bool {
        self.hold == Some(Hold::PeerWindow) && self.in_flight() == 0
    }

    /// What the last poll found to hold back all that is to be sent; `None` if it gave something, or there was
    /// nothing.
    #[must_use]
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// The congestion window in bytes.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        match self.phase {
            Phase::Fast => self.prr.window().max(self.mss),
            Phase::Open | Phase::Timeout => self.controller.window(),
        }
    }

    /// The slow-start threshold in bytes; `None` before the first loss.
    #[cfg(test)]
    pub fn slow_start_threshold(&self) -> Option<u64> {
        Some(self.controller.threshold()).filter(|threshold| *threshold != u64::MAX)
    }

    /// SRTT (RFC 6298), once there is a sample.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The least round-trip time of the last minutes.
    #[cfg(test)]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.rack.min_rtt()
    }

    /// The retransmission timeout, backed off.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Segments sent again.
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// Retransmission timeouts since new data were acknowledged last.
    #[must_use]
    pub fn timeouts_in_row(&self) -> u32 {
        self.timeouts
    }

    fn lost_range(&mut self, stream: &Stream) -> Option<ToSend> {
        let lost = self.board.first_lost()?;
        let end = lost.end.min(stream.peer_window_end);
        if end <= lost.start {
            // RFC 9293 §3.8.6: the peer took its window back
            self.hold = Some(Hold::PeerWindow);
            return None;
        }
        let len = (end - lost.start).min(stream.max_len as u64);
        let Some(len) = self.fit(len) else {
            self.hold = Some(Hold::CongestionWindow);
            return None;
        };
        Some(ToSend { range: lost.start..lost.start + len, retransmission: true, probe: false })
    }

    fn new_range(&mut self, now: Time, stream: &Stream) -> Option<ToSend> {
        let start = self.board.next();
        let waiting = self.may_begin(stream.end).saturating_sub(start);
        if waiting == 0 {
            // Without SACK a recovery holds back new data.
            self.hold = (stream.end > start).then_some(Hold::CongestionWindow);
            return None;
        }
        let open = stream.peer_window_end.saturating_sub(start);
        self.widest =
            self.widest.max(stream.peer_window_end.saturating_sub(self.board.acknowledged()));
        let len = self.worth_sending(waiting, open).min(stream.max_len as u64);
        if len == 0 {
            self.hold = Some(Hold::PeerWindow);
            return None;
        }
        if self.board.is_empty() {
            self.begin_again(now);
        }
        let Some(len) = self.fit(len) else {
            self.limited_until = Some(start);
            self.hold = Some(Hold::CongestionWindow);
            return None;
        };
        Some(ToSend { range: start..start + len, retransmission: false, probe: false })
    }

    /// The end of the new data that may be sent at all. Without SACK one loss is repaired in a
    /// round trip, so that new data without end would bring losses faster than they are repaired:
    /// one window of them goes with a recovery.
    fn may_begin(&self, end: u64) -> u64 {
        if self.sack || self.phase != Phase::Fast {
            return end;
        }
        end.min(self.recover.saturating_add(self.controller.threshold()))
    }

    /// Bytes that the peer's window takes, without silly small segments (RFC 9293 §3.8.6.2.1).
    pub(super) fn worth_sending(&self, waiting: u64, open: u64) -> u64 {
        if waiting <= open {
            waiting
        } else if open >= self.mss {
            open - open % self.mss
        } else if self.board.is_empty() || open.saturating_mul(2) >= self.widest {
            open
        } else {
            0
        }
    }

    /// As much of `len` bytes as the congestion window takes: whole segments, or all.
    fn fit(&self, len: u64) -> Option<u64> {
        let space = self.congestion_window().saturating_sub(self.in_flight());
        let len = if len <= space { len } else { space - space % self.mss };
        (len > 0).then_some(len)
    }

    /// The first data after all were acknowledged.
    fn begin_again(&mut self, now: Time) {
        let idle = now.saturating_since(self.last_sent);
        if self.last_sent != Time::ZERO && !idle.is_zero() {
            // RFC 5681 §4.1
            if idle > self.rtt.rto() {
                self.controller.restart_after_idle();
            }
            self.controller.resume(idle);
            self.last_sent = now;
        }
    }
}

#[cfg(test)]
mod pipe_tests;
#[cfg(test)]
mod tests;
