//! What is received and read, and how the window grows with it.

use super::*;
use crate::segment::Segment;

/// Growth is judged by what is read in a round trip, but no less than this long: on a fast link what
/// the scheduler does to the application is longer.
const LEAST_ROUND: Duration = Duration::from_millis(10);
/// The round trip if none was measured.
const UNKNOWN_ROUND: Duration = Duration::from_millis(100);
/// Segments in flight at the start (RFC 6928 §2): what is read in the first round trip.
const FIRST_FLIGHT: u64 = 10;

/// How the window grows (Linux: tcp_rcv_space_adjust).
#[derive(Debug, Clone, Copy)]
pub(super) struct Tuning {
    /// When this round trip's reading began, and with which byte.
    since: Time,
    from: u64,
    /// Most bytes that were read in a round trip.
    most: u64,
    /// Largest window that the endpoint's memory permits.
    clamp: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { since: Time::ZERO, from: 0, most: 0, clamp: usize::MAX }
    }
}

impl Connection {
    /// Takes received bytes. `spare` is what is left of [`Config::receive_memory`].
    pub(crate) fn read(
        &mut self,
        now: Time,
        into: &mut [u8],
        config: &Config,
        spare: usize,
    ) -> Result<usize, StreamError> {
        let count = self.receive.read(into);
        if count > 0 {
            self.clamp_window(config, spare);
            self.widen_window(now, config);
            self.update_window_after_read();
            return Ok(count);
        }
        if into.is_empty() || self.peer_fin_seen {
            return Ok(0);
        }
        match self.closed {
            Some(CloseReason::Finished) => Ok(0),
            Some(reason) => Err(StreamError::Closed(reason)),
            None => Err(StreamError::WouldBlock),
        }
    }

    pub(crate) fn readable(&self) -> usize {
        self.receive.readable()
    }

    /// Takes the data of an acceptable segment whose first byte is at `start`.
    pub(super) fn handle_payload(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        start: i64,
        config: &Config,
        spare: usize,
    ) {
        self.note_fin(segment, start);
        if segment.payload.is_empty() {
            return;
        }
        if self.peer_fin_seen {
            self.ack.now = true;
            return;
        }
        let (offset, payload) = self.clip(segment.payload, start);
        let had_gap = self.receive.has_gap();
        let inserted = self.receive.insert(offset, payload, self.receive_room(config, spare));
        if self.released && inserted.accepted > 0 {
            self.receive.discard();
            // Nobody will read it: RFC 1122 §4.2.2.13
            self.refuse_late_data();
            return;
        }
        if inserted.in_order && inserted.accepted > 0 {
            self.pending.add(Pending::READABLE);
        }
        // RFC 2883 §4: repeated bytes are told at once.
        let disorder = had_gap || !inserted.in_order || inserted.repeated;
        self.schedule_ack(now, payload.len(), disorder, config);
    }

    /// Cuts off what lies before RCV.NXT's stream and behind the window that was told.
    fn clip<'a>(&self, payload: &'a [u8], start: i64) -> (u64, &'a [u8]) {
        let skip = usize::try_from(start.saturating_neg().max(0)).unwrap_or(usize::MAX);
        let payload = payload.get(skip..).unwrap_or(&[]);
        let offset = start.max(0) as u64;
        let edge = self.advertised.max(self.receive.next());
        let room = usize::try_from(edge.saturating_sub(offset)).unwrap_or(usize::MAX);
        let room = match self.peer_fin {
            Some(fin) => room.min(usize::try_from(fin.saturating_sub(offset)).unwrap_or(room)),
            None => room,
        };
        (offset, payload.get(..room).unwrap_or(payload))
    }

    fn refuse_late_data(&mut self) {
        if matches!(self.state, State::FinWait1 | State::FinWait2 | State::Closing) {
            self.abort_pending = true;
        }
    }

    /// RFC 5681 §4.2: every second full segment, within the delay, at once where there is a gap.
    fn schedule_ack(&mut self, now: Time, len: usize, disorder: bool, config: &Config) {
        let mss = self.mss.max(1);
        let counted = if self.ack.held { len / mss } else { len.div_ceil(mss) };
        self.ack.segments = self.ack.segments.saturating_add(counted as u32);
        let quick = self.ack.quick > 0 && !self.ack.held;
        if disorder || self.ack.segments >= 2 || quick {
            self.ack.quick = self.ack.quick.saturating_sub(1);
            self.ack.now = true;
        } else if self.ack.by.is_none() {
            self.ack.by = Some(now + config.delayed_ack);
        }
    }

    /// Most bytes that may be held of what is received.
    pub(super) fn receive_room(&self, config: &Config, spare: usize) -> usize {
        self.receive.held().max(config.own_receive_memory()).saturating_add(spare)
    }

    /// No window is told that is larger than half of the memory that is left, so that it does not
    /// run out at once; the first window always is.
    pub(super) fn clamp_window(&mut self, config: &Config, spare: usize) {
        self.tuning.clamp = config.first_window().max(spare / 2);
    }

    /// Twice what was read in the last round trip keeps the peer from waiting; as the amount grows,
    /// so does the window ahead of it.
    fn widen_window(&mut self, now: Time, config: &Config) {
        let round = self.recovery.smoothed_rtt().unwrap_or(UNKNOWN_ROUND).max(LEAST_ROUND);
        if now.saturating_since(self.tuning.since) < round {
            return;
        }
        let start = self.receive.start();
        let read = start.saturating_sub(self.tuning.from);
        let mss = self.mss as u64;
        let before = self.tuning.most.max(FIRST_FLIGHT * mss);
        if read > before {
            let steady = (2 * read).saturating_add(16 * mss);
            // In slow start the next round brings as much more again, and so does the one after.
            let growth = steady.saturating_mul(read - before) / before * 2;
            let limit = usize::try_from(steady.saturating_add(growth)).unwrap_or(usize::MAX);
            self.receive.widen(limit.min(config.receive_buffer).min(self.tuning.clamp));
        }
        self.tuning.most = before.max(read);
        self.tuning.since = now;
        self.tuning.from = start;
    }

    /// The window that the buffer and the endpoint's memory permit.
    pub(super) fn free_window(&self) -> u64 {
        let limit = self.receive.limit().min(self.tuning.clamp);
        limit.saturating_sub(self.receive.readable()) as u64
    }

    /// RFC 9293 §3.8.6.2.2: the window's right edge moves by a full segment or half the buffer.
    fn update_window_after_read(&mut self) {
        if !self.is_synchronised() || self.peer_fin_seen {
            return;
        }
        // What the window field can say.
        let most = u64::from(u16::MAX) << self.receive_shift;
        let edge = self.receive.next().saturating_add(self.free_window().min(most));
        let gain = edge.saturating_sub(self.advertised);
        let offered = self.advertised.saturating_sub(self.receive.next());
        let step = (2 * self.mss as u64).min(self.receive.limit() as u64 / 2).max(1);
        // Told at once only when the peer may be waiting for it; a delayed ACK tells it soon enough
        // while the peer has room for more.
        let soon = self.ack.by.is_some() && offered >= step;
        if gain >= step && gain >= offered && !soon {
            self.ack.now = true;
        }
    }
}
