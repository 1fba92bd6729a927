//! Segments in (RFC 9293 §3.10.7).

use std::ops::Range;

use wire::tcp::Flags;

use super::*;
use crate::Ignored;
use crate::destinations::Destinations;
use crate::info::Counters;
use crate::recovery::Ack;
use crate::segment::Segment;

/// What the endpoint lends a connection while it takes a segment.
pub(crate) struct Context<'a> {
    pub config: &'a Config,
    pub destinations: &'a mut Destinations,
    pub counters: &'a mut Counters,
    /// Bytes that are left of [`Config::receive_memory`] and [`Config::send_memory`].
    pub spare: Memory,
}

/// What the endpoint is to send in a connection's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    /// RST (RFC 9293 §3.10.7.1).
    Reset,
}

/// A tick of the peer's timestamp clock may be so old and still be its own (RFC 7323 §5.5).
const PAWS_IDLE: Duration = Duration::from_secs(24 * 24 * 3600);

pub(super) type Outcome = Result<Reply, Ignored>;

impl Connection {
    /// Takes a segment of this connection.
    pub(crate) fn handle(&mut self, now: Time, segment: &Segment<'_>, cx: Context<'_>) -> Outcome {
        self.clamp_window(cx.config, cx.spare.receive);
        self.clamp_send(cx.config, cx.spare.send);
        match self.state {
            State::Closed | State::TimeWait => Err(Ignored::NoConnection),
            State::SynSent => self.handle_syn_sent(now, segment, cx),
            _ => self.handle_synchronised(now, segment, cx),
        }
    }

    /// RFC 9293 §3.10.7.3
    fn handle_syn_sent(&mut self, now: Time, segment: &Segment<'_>, cx: Context<'_>) -> Outcome {
        let Some(handshake) = &self.handshake else { return Err(Ignored::Unacceptable) };
        // What no SYN has carried cannot be acknowledged.
        let most = handshake.syn_data.min(self.syn_bytes) as i32;
        let acked = segment.ack.map(|ack| ack.distance(self.iss + 1));
        if acked.is_some_and(|acked| acked < 0 || acked > most) {
            let reply = if segment.is(Flags::RST) { Reply::Nothing } else { Reply::Reset };
            return Ok(reply);
        }
        if segment.is(Flags::RST) {
            if acked.is_none() {
                return Err(Ignored::Unacceptable);
            }
            self.close(CloseReason::Refused);
            return Ok(Reply::Nothing);
        }
        if !segment.is(Flags::SYN) {
            return Err(Ignored::Unacceptable);
        }
        self.irs = segment.seq;
        self.last_received = now;
        self.syn_segment_len = segment.segment_len;
        self.negotiate_from(now, &segment.options, cx.config);
        match acked {
            Some(acked) => {
                self.connect(now, segment, acked as u64, cx);
                Ok(Reply::Nothing)
            }
            None => {
                self.open_simultaneously(segment);
                Ok(Reply::Nothing)
            }
        }
    }

    /// The SYN-ACK came.
    fn connect(&mut self, now: Time, segment: &Segment<'_>, acked: u64, cx: Context<'_>) {
        self.settle_syn_data(now, acked, cx.destinations, cx.counters);
        let Some(handshake) = self.handshake.take() else { return };
        let cookie = segment.options.fast_open.and_then(|option| Cookie::new(option.cookie));
        self.learn_fast_open(now, &handshake, cookie, cx.destinations);
        self.state = if self.fin { State::FinWait1 } else { State::Established };
        self.handshake_round_trip(now, &handshake);
        self.take_window(u32::from(segment.window), 0, 0);
        self.advertised = self.receive.window().min(usize::from(u16::MAX)) as u64;
        if acked > 0 {
            self.recovery.on_ack(
                now,
                &Ack { cumulative: acked, sack: &[], rtt_echo: None, window_changed: true },
            );
            self.send.acknowledge(acked);
        }
        self.pending.add(Pending::CONNECTED);
        self.pending.add(Pending::WRITABLE);
        self.reset_keep_alive(now, cx.config);
        let most = self.receive_room(cx.config, cx.spare.receive);
        let taken = self.receive.insert(0, segment.payload, most).accepted;
        self.syn_ack_bytes = taken;
        if taken > 0 {
            self.pending.add(Pending::READABLE);
            // The application's flight may ride on the ACK.
            self.ack.segments = 1;
            self.ack.held = true;
            self.ack.by = Some(now + handshake.hold_ack);
        } else {
            self.ack.now = true;
        }
        self.note_fin(segment, 0);
        self.take_fin(now, cx.config);
    }

    fn handshake_round_trip(&mut self, now: Time, handshake: &Handshake) {
        if handshake.sent <= 1 {
            let rtt = now.saturating_since(handshake.sent_at);
            self.recovery.on_handshake_rtt(now, rtt);
        } else {
            self.recovery.on_handshake_retransmitted(handshake.sent.saturating_sub(1));
        }
    }

    /// RFC 9293 §3.10.7.4
    fn handle_synchronised(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        cx: Context<'_>,
    ) -> Outcome {
        if let Some(handshake) = &mut self.handshake {
            handshake.received = handshake.received.saturating_add(segment.packet_len);
        }
        let start = self.receive_offset(segment.seq);
        if self.state == State::SynReceived && segment.is(Flags::SYN) && start == -1 {
            return self.handle_syn_again(now, segment, cx);
        }
        if self.is_old_by_timestamp(now, segment) {
            return self.refuse(now, segment, cx);
        }
        if !self.is_acceptable(segment, start) {
            return self.refuse(now, segment, cx);
        }
        if segment.is(Flags::RST) {
            return self.handle_reset(now, start, cx);
        }
        if segment.is(Flags::SYN) {
            // RFC 5961 §4
            self.challenge(now, cx.counters);
            return Err(Ignored::Unacceptable);
        }
        if segment.ack.is_none() {
            return Err(Ignored::Unacceptable);
        }
        self.last_received = now;
        self.icmp_error = None;
        self.timers.keep_alive_probes = 0;
        self.timers.probes = 0;
        self.reset_keep_alive(now, cx.config);
        let (config, spare) = (cx.config, cx.spare.receive);
        let reply = self.handle_ack(now, segment, start, cx)?;
        if reply == Reply::Reset || self.closed.is_some() {
            return Ok(reply);
        }
        self.remember_timestamp(now, segment, start);
        self.handle_payload(now, segment, start, config, spare);
        self.take_fin(now, config);
        Ok(Reply::Nothing)
    }

    /// PAWS (RFC 7323 §5.3, R1).
    fn is_old_by_timestamp(&self, now: Time, segment: &Segment<'_>) -> bool {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.timestamps) else {
            return false;
        };
        let is_older = (value.wrapping_sub(self.ts_recent) as i32) < 0;
        let is_valid = now.saturating_since(self.ts_recent_at) < PAWS_IDLE;
        is_older && is_valid && !segment.is(Flags::RST)
    }

    /// RFC 9293 §3.10.7.4, first check, by the window that was told.
    fn is_acceptable(&self, segment: &Segment<'_>, start: i64) -> bool {
        let next = self.receive_next() as i64;
        let edge = (self.advertised as i64).max(next);
        let len = i64::from(segment.sequence_len());
        if len == 0 {
            return start == next || (next <= start && start < edge);
        }
        start < edge && start + len > next
    }

    /// An unacceptable segment is answered by an ACK, unless it is a RST.
    fn refuse(&mut self, now: Time, segment: &Segment<'_>, cx: Context<'_>) -> Outcome {
        if segment.is(Flags::RST) {
            return Err(Ignored::Unacceptable);
        }
        if self.state == State::SynReceived {
            // RFC 9293 §3.10.7.4: a client that began anew, with another sequence number, finds out.
            if segment.is(Flags::SYN) {
                self.challenge(now, cx.counters);
            }
            return Err(Ignored::Unacceptable);
        }
        if segment.payload.is_empty() && !segment.is(Flags::FIN) {
            self.challenge(now, cx.counters);
        } else {
            // Data twice: the ACK tells of it (RFC 2883), and is no answer to a bare ACK.
            // What only PAWS finds old may be new data: it is dropped (RFC 7323 §5.3).
            let start = self.receive_offset(segment.seq);
            if let Ok(start) = u64::try_from(start)
                && start.saturating_add(segment.payload.len() as u64) <= self.receive.next()
            {
                self.receive.insert(start, segment.payload, self.receive.held());
            }
            self.ack.now = true;
        }
        Err(Ignored::Unacceptable)
    }

    /// RFC 5961 §7: not more often than that.
    fn challenge(&mut self, now: Time, counters: &mut Counters) {
        let last = self.ack.last_challenge;
        if last.is_none_or(|last| now.saturating_since(last) >= CHALLENGE_INTERVAL) {
            self.ack.last_challenge = Some(now);
            self.ack.now = true;
            counters.challenge_acks += 1;
        }
    }

    /// RFC 5961 §3.2
    fn handle_reset(&mut self, now: Time, start: i64, cx: Context<'_>) -> Outcome {
        if start != self.receive_next() as i64 {
            self.challenge(now, cx.counters);
            return Err(Ignored::Unacceptable);
        }
        let passive = self.state == State::SynReceived && self.listener.is_some();
        let reason = match self.state {
            State::SynReceived if !passive => CloseReason::Refused,
            State::Closing | State::LastAck => CloseReason::Finished,
            _ => CloseReason::Reset,
        };
        self.close(reason);
        Ok(Reply::Nothing)
    }

    /// Our SYN is acknowledged.
    pub(super) fn establish(&mut self, now: Time, config: &Config) {
        let Some(handshake) = self.handshake.take() else { return };
        self.handshake_round_trip(now, &handshake);
        self.state = if self.fin { State::FinWait1 } else { State::Established };
        let reported_before = self.syn_data == SynData::Accepted && self.listener.is_some();
        if self.listener.is_some() {
            self.pending.add(Pending::ESTABLISHED);
            if !reported_before {
                self.pending.add(Pending::INCOMING);
            }
        } else {
            self.pending.add(Pending::CONNECTED);
        }
        self.pending.add(Pending::WRITABLE);
        self.reset_keep_alive(now, config);
    }

    fn handle_ack(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        start: i64,
        cx: Context<'_>,
    ) -> Outcome {
        let Some(ack) = segment.ack else { return Err(Ignored::Unacceptable) };
        let offset = self.ack_offset(ack);
        let (una, next) = (self.una() as i64, self.recovery.next() as i64);
        if self.state == State::SynReceived {
            // RFC 9293 §3.10.7.4, fifth check
            if offset < 0 || offset > next.max(self.syn_data_in_doubt()) {
                return Ok(Reply::Reset);
            }
            self.settle_syn_data(now, offset as u64, cx.destinations, cx.counters);
            self.establish(now, cx.config);
        } else if offset > next || offset < una.saturating_sub(i64::from(self.max_window)) {
            // RFC 5961 §5.2
            self.challenge(now, cx.counters);
            return Err(Ignored::Unacceptable);
        }
        let offset = offset.max(0) as u64;
        let window_changed = self.update_send_window(segment, start, offset);
        let carries = segment.sequence_len() > 0;
        self.acknowledge(now, segment, offset, window_changed || carries, cx);
        Ok(Reply::Nothing)
    }

    /// RFC 9293 §3.10.7.4: SND.WL1 and SND.WL2.
    fn update_send_window(&mut self, segment: &Segment<'_>, start: i64, ack: u64) -> bool {
        let start = start.max(0) as u64;
        if ack < self.una() || (start, ack) < (self.wl1, self.wl2) {
            return false;
        }
        let window = u32::from(segment.window) << self.send_shift;
        let changed = window != self.window;
        self.wl1 = start;
        self.take_window(window, start, ack);
        changed
    }

    pub(super) fn take_window(&mut self, window: u32, start: u64, ack: u64) {
        self.wl1 = start;
        self.wl2 = ack;
        self.window = window;
        if window > self.max_window {
            self.max_window = window;
            self.update_segment();
        }
        self.window_end = ack.saturating_add(u64::from(window));
        if window > 0 {
            self.timers.persist = None;
            self.timers.backoff = 0;
        }
    }

    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        offset: u64,
        no_duplicate: bool,
        cx: Context<'_>,
    ) {
        let mut ranges = [const { 0..0 }; 4];
        let sack = self.sack_ranges(segment, &mut ranges);
        let before = self.una();
        self.recovery.on_ack(
            now,
            &Ack {
                cumulative: offset,
                sack: ranges.get(..sack).unwrap_or(&[]),
                rtt_echo: self.echo(now, segment),
                window_changed: no_duplicate,
            },
        );
        if offset > before {
            self.send.acknowledge(offset.min(self.send.end()));
            self.wake_writer();
        }
        if self.fin && !self.fin_acked && offset > self.send.end() {
            self.fin_acked = true;
            self.advance_after_fin_acked(now, cx.config);
        }
    }

    fn sack_ranges(&self, segment: &Segment<'_>, ranges: &mut [Range<u64>; 4]) -> usize {
        if !self.sack {
            return 0;
        }
        let mut count = 0;
        for ((left, right), range) in segment.options.sack.as_slice().iter().zip(ranges) {
            let left = self.ack_offset(SeqNumber(*left)).max(0) as u64;
            let right = self.ack_offset(SeqNumber(*right)).max(0) as u64;
            *range = left..right;
            count += 1;
        }
        count
    }

    /// RTTM by the echoed timestamp (RFC 7323 §4).
    fn echo(&self, now: Time, segment: &Segment<'_>) -> Option<Duration> {
        let (_, echo) = segment.options.timestamps.filter(|_| self.timestamps)?;
        let ticks = self.timestamp(now).wrapping_sub(echo);
        // More than a day is no echo of ours.
        (ticks < 1 << 26).then(|| Duration::from_millis(u64::from(ticks)))
    }

    fn advance_after_fin_acked(&mut self, now: Time, config: &Config) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.released {
                    self.timers.fin_wait = Some(now + config.fin_wait);
                }
            }
            State::Closing => self.enter_time_wait(),
            State::LastAck => self.close(CloseReason::Finished),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        // The ACK of the peer's FIN is sent from TIME-WAIT, unless it was from CLOSING.
        self.last_ack_due = self.ack.now;
        self.close(CloseReason::Finished);
    }

    /// RFC 7323 §4.3
    pub(super) fn remember_timestamp(&mut self, now: Time, segment: &Segment<'_>, start: i64) {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.timestamps) else {
            return;
        };
        let is_newer = (value.wrapping_sub(self.ts_recent) as i32) >= 0;
        if is_newer && start <= self.last_ack_sent as i64 {
            self.ts_recent = value;
            self.ts_recent_at = now;
        }
    }

    /// Where the peer's FIN stands, if the segment has one inside the window.
    pub(super) fn note_fin(&mut self, segment: &Segment<'_>, start: i64) {
        if !segment.is(Flags::FIN) || self.peer_fin.is_some() {
            return;
        }
        let at = start.saturating_add(segment.payload.len() as i64);
        let Ok(at) = u64::try_from(at) else { return };
        let edge = self.advertised.max(self.receive.next());
        if at >= self.receive.next() && at <= edge {
            self.peer_fin = Some(at);
        }
        self.ack.now = true;
    }

    /// RFC 9293 §3.10.7.4, eighth: the FIN, once all before it is here.
    pub(super) fn take_fin(&mut self, now: Time, config: &Config) {
        if self.peer_fin_seen || self.peer_fin != Some(self.receive.next()) {
            return;
        }
        self.peer_fin_seen = true;
        self.ack.now = true;
        self.pending.add(Pending::FINISHED);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 if self.fin_acked => self.enter_time_wait(),
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(),
            _ => {}
        }
        let _ = (now, config);
    }
}
