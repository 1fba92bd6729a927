//! Segments out.

use wire::tcp::{Flags, OptionList, SackBlocks};

use super::*;
use crate::info::Transmit;
use crate::recovery::{Stream, ToSend};
use crate::segment::Outgoing;

/// Bytes of the largest IP packet that only acknowledges.
const MAX_ACK_LEN: usize = 40 + 60;

impl Connection {
    /// Writes the next packet, if there is one.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Time,
        config: &Config,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        match self.state {
            State::Closed => None,
            State::TimeWait => self.transmit_last_ack(now, buffer),
            State::SynSent => self.transmit_handshake(now, config, buffer),
            State::SynReceived => self
                .transmit_handshake(now, config, buffer)
                .or_else(|| self.transmit_early(now, config, buffer))
                .or_else(|| self.transmit_challenge(now, buffer)),
            // What is missing is told before anything else.
            _ if self.ack.now && self.receive.has_sack_blocks() => self.transmit_ack(now, buffer),
            _ => self
                .transmit_data(now, config, buffer, usize::MAX)
                .or_else(|| self.transmit_probe(now, buffer))
                .or_else(|| self.transmit_ack(now, buffer)),
        }
    }

    /// Server: data behind the SYN-ACK, before the client's address is validated.
    fn transmit_early(
        &mut self,
        now: Time,
        config: &Config,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let handshake = self.handshake.as_ref()?;
        let may = self.syn_data == SynData::Accepted
            && !handshake.simultaneous
            && handshake.answer_by.is_none()
            // Sent again, the SYN-ACK goes alone: it must not run out of budget before it arrives.
            && handshake.sent == 1;
        if !may {
            return None;
        }
        let budget = self.budget().saturating_sub(SYN_ACK_RESERVE);
        let transmit = self.transmit_data(now, config, buffer, budget)?;
        self.spend(transmit.len);
        Some(transmit)
    }

    /// Server: the ACK for a SYN that contradicts the first, before the address is validated.
    fn transmit_challenge(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if self.budget() < MAX_ACK_LEN {
            self.ack.now = false;
        }
        let transmit = self.transmit_ack(now, buffer)?;
        self.spend(transmit.len);
        Some(transmit)
    }

    /// Payload bytes of one (super-)segment.
    fn most_in_one(&self, config: &Config, headers: usize) -> usize {
        let room = config.max_super_segment.min(usize::from(u16::MAX)).saturating_sub(headers);
        if self.state == State::SynReceived {
            return self.segment;
        }
        (room / self.segment * self.segment).max(self.segment)
    }

    fn headers(&self, options: &OptionList<'_>) -> usize {
        ip_header_len(self.local.ip()) + 20 + options.padded_len()
    }

    /// Data, and FIN, as loss recovery, congestion control and the peer's window allow, in a packet
    /// of at most `budget` bytes.
    fn transmit_data(
        &mut self,
        now: Time,
        config: &Config,
        buffer: &mut [u8],
        budget: usize,
    ) -> Option<Transmit> {
        let end = self.send_end();
        if end == self.una() {
            return None;
        }
        let options = self.options(now, false);
        let headers = self.headers(&options);
        let max_len = self.most_in_one(config, headers).min(budget.saturating_sub(headers));
        if max_len == 0 {
            return None;
        }
        let end = if config.nagle { self.nagle_end(end) } else { end };
        let stream = Stream { end, peer_window_end: self.window_end, max_len };
        let Some(to_send) = self.recovery.poll(now, stream) else {
            self.watch_window(now);
            return None;
        };
        let transmit = self.emit_range(now, &to_send, options, buffer)?;
        self.recovery.on_sent(now, to_send.range, to_send.retransmission);
        if self.send_ahead.is_some() {
            self.wake_writer();
        }
        Some(transmit)
    }

    /// RFC 9293 §3.7.4: the last short segment waits while any bytes are unacknowledged.
    fn nagle_end(&self, end: u64) -> u64 {
        let next = self.recovery.next();
        let short = end.saturating_sub(next) % self.segment as u64;
        if self.recovery.is_idle() || self.fin { end } else { end - short }
    }

    fn emit_range(
        &mut self,
        now: Time,
        to_send: &ToSend,
        options: OptionList<'_>,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let (start, end) = (to_send.range.start, to_send.range.end);
        let data_end = end.min(self.send.end());
        let len = usize::try_from(data_end.saturating_sub(start)).ok()?;
        let mut flags = Flags(0);
        if self.fin && end > self.send.end() {
            flags = flags.with(Flags::FIN);
        }
        if len > 0 && data_end == self.send.end() {
            flags = flags.with(Flags::PSH);
        }
        let outgoing = self.outgoing(start, flags, options);
        let send = &self.send;
        let transmit = outgoing.emit(buffer, len, self.segment, |into| {
            let _ = send.copy(start, into);
        })?;
        self.identification =
            self.identification.wrapping_add((len / self.segment.max(1)) as u16).wrapping_add(1);
        self.acknowledged(now);
        Some(transmit)
    }

    fn outgoing<'a>(&self, offset: u64, flags: Flags, options: OptionList<'a>) -> Outgoing<'a> {
        Outgoing {
            local: self.local,
            remote: self.remote,
            seq: self.send_sequence(offset),
            ack: Some(self.receive_sequence(self.receive_next())),
            flags,
            window: self.window_field(),
            options,
            identification: self.identification,
        }
    }

    /// The window field of a segment that is sent now.
    pub(super) fn window_field(&self) -> u16 {
        (self.window_to_tell() >> self.receive_shift).min(u64::from(u16::MAX)) as u16
    }

    /// RFC 9293 §3.8.6.2.2: the right edge never goes back, and forward in steps worth telling.
    fn window_to_tell(&self) -> u64 {
        let next = self.receive.next();
        let most = (u64::from(u16::MAX)) << self.receive_shift;
        let free = self.free_window().min(most);
        let reported = self.advertised.saturating_sub(next);
        let step = (self.mss as u64).min(self.receive.limit() as u64 / 2);
        // Rounded down to what the shifted field can say.
        let sayable = free >> self.receive_shift << self.receive_shift;
        if sayable >= reported.saturating_add(step)
            || sayable >= reported && reported == 0 && free >= step
        {
            sayable
        } else {
            reported
        }
    }

    /// Notes that an acknowledgment goes out with this packet.
    fn acknowledged(&mut self, _now: Time) {
        let reported = u64::from(self.window_field());
        let edge = self.receive.next().saturating_add(reported << self.receive_shift);
        self.advertised = self.advertised.max(edge);
        self.last_ack_sent = self.receive_next();
        self.ack.now = false;
        self.ack.segments = 0;
        self.ack.held = false;
        self.ack.by = None;
    }

    fn options<'a>(&mut self, now: Time, with_sack: bool) -> OptionList<'a> {
        let mut options = OptionList::default();
        if self.timestamps {
            options.timestamps = Some((self.timestamp(now), self.ts_recent));
        }
        if with_sack && self.sack && self.receive.has_sack_blocks() {
            // With timestamps three blocks fit (RFC 2018 §3).
            let most = if self.timestamps { 3 } else { 4 };
            let blocks = self.receive.sack_blocks();
            let mut list = [(0, 0); 4];
            let mut count = 0;
            for ((left, right), to) in blocks.as_slice().iter().take(most).zip(&mut list) {
                *to = (self.receive_sequence(*left).0, self.receive_sequence(*right).0);
                count += 1;
            }
            options.sack = SackBlocks::new(list.get(..count).unwrap_or(&[]));
        }
        options
    }

    fn transmit_ack(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if !self.ack.now {
            return None;
        }
        let options = self.options(now, true);
        let outgoing = self.outgoing(self.recovery.next(), Flags(0), options);
        let transmit = outgoing.emit(buffer, 0, usize::MAX, |_| ())?;
        self.identification = self.identification.wrapping_add(1);
        self.acknowledged(now);
        Some(transmit)
    }

    /// The ACK of the FIN that ended the connection.
    fn transmit_last_ack(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if !self.last_ack_due {
            return None;
        }
        self.last_ack_due = false;
        self.ack.now = true;
        self.transmit_ack(now, buffer)
    }

    /// A window probe or keep-alive: a byte that the peer has already, so that it must answer
    /// (RFC 9293 §3.8.4; Linux probes windows so too).
    fn transmit_probe(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        if !self.timers.probe_due && !self.timers.keep_alive_due {
            return None;
        }
        self.timers.probe_due = false;
        self.timers.keep_alive_due = false;
        let options = self.options(now, false);
        let outgoing = Outgoing {
            seq: self.send_sequence(self.una()) - 1,
            ..self.outgoing(0, Flags(0), options)
        };
        let transmit = outgoing.emit(buffer, 0, usize::MAX, |_| ())?;
        self.acknowledged(now);
        Some(transmit)
    }

    /// RST that ends the connection at the peer (RFC 9293 §3.10.5).
    pub(crate) fn reset_segment(&self) -> Option<Outgoing<'static>> {
        if !matches!(
            self.state,
            State::SynReceived
                | State::Established
                | State::FinWait1
                | State::FinWait2
                | State::CloseWait
                | State::Closing
                | State::LastAck
        ) {
            return None;
        }
        let next = self.recovery.next();
        Some(Outgoing { window: 0, ..self.outgoing(next, Flags::RST, OptionList::default()) })
    }
}
