//! SYNs that cross (RFC 9293 §3.5, figure 7), and Fast Open's answers.

use super::input::{Context, Outcome, Reply};
use super::*;
use crate::Ignored;
use crate::destinations::Destinations;
use crate::segment::Segment;
use wire::tcp::Flags;

impl Connection {
    /// The peer's SYN came before its SYN-ACK. Data on it are not taken; whether it takes those of ours its
    /// acknowledgment will tell.
    pub(super) fn open_simultaneously(&mut self, segment: &Segment<'_>) {
        self.state = State::SynReceived;
        self.take_window(u32::from(segment.window), 0, 0);
        let Some(handshake) = &mut self.handshake else { return };
        handshake.simultaneous = true;
        handshake.bare = true;
        handshake.due = true;
        // RFC 7323 §3.2: both SYNs offered them, and each segment from now on has timestamps.
        handshake.offered = open::Offered::of(&segment.options);
    }

    /// Bytes that our SYN carried and that an acknowledgment in SYN-RECEIVED may be of.
    pub(super) fn syn_data_in_doubt(&self) -> i64 {
        match &self.handshake {
            Some(handshake) if handshake.simultaneous && self.syn_data == SynData::Pending => {
                handshake.syn_data.min(self.syn_bytes) as i64
            }
            _ => 0,
        }
    }

    /// The peer's SYN once more, while ours is not acknowledged.
    pub(super) fn handle_syn_again(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        cx: Context<'_>,
    ) -> Outcome {
        let Some(handshake) = &mut self.handshake else { return Err(Ignored::Unacceptable) };
        if segment.is(Flags::RST) {
            return Err(Ignored::Unacceptable);
        }
        let simultaneous = handshake.simultaneous;
        // One answer is under way or was lost: a pending one is not hurried.
        let due = handshake.answer_by.is_none();
        let acked = segment.ack.filter(|_| simultaneous).map(|ack| self.ack_offset(ack));
        if let Some(acked) = acked
            && (0..=self.syn_data_in_doubt()).contains(&acked)
        {
            self.take_crossed_answer(now, segment, acked as u64, cx);
            return Ok(Reply::Nothing);
        }
        if let Some(handshake) = &mut self.handshake {
            handshake.due |= due;
        }
        Ok(Reply::Nothing)
    }

    /// The peer's SYN-ACK after SYNs that crossed: ours is acknowledged, and perhaps data of it. It is not
    /// acknowledged again, since our SYN-ACK has done that.
    fn take_crossed_answer(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        acked: u64,
        cx: Context<'_>,
    ) {
        self.last_received = now;
        self.icmp_error = None;
        self.settle_syn_data(now, acked, cx.destinations, cx.counters);
        self.establish(now, cx.config);
        // The window in a SYN is never scaled (RFC 7323 §2.2).
        self.take_window(u32::from(segment.window), 0, acked);
        self.remember_timestamp(now, segment, -1);
        let (config, spare) = (cx.config, cx.spare.receive);
        self.acknowledge(now, segment, acked, true, cx);
        self.handle_payload(now, segment, 0, config, spare);
        self.take_fin(now, config);
    }

    /// Client: the SYN-ACK's word on Fast Open (RFC 7413 §4.1.3). A cookie that nobody asked for is not kept. A
    /// server that gives none and has not taken the data, or was asked for one, is not tried again for a while
    /// (§4.1.3.1).
    pub(super) fn learn_fast_open(
        &self,
        now: Time,
        handshake: &Handshake,
        cookie: Option<Cookie>,
        destinations: &mut Destinations,
    ) {
        if !handshake.ask_cookie {
            return;
        }
        if let Some(cookie) = cookie {
            destinations.cookies.insert(self.remote.ip(), cookie);
            destinations.forget_refusal(self.remote);
            return;
        }
        let refused = match self.syn_data {
            SynData::Refused => true,
            SynData::None => handshake.cookie.is_none(),
            _ => false,
        };
        // The SYN that was sent again did not have the option.
        if refused && handshake.sent <= 1 {
            destinations.remember_refusal(now, self.remote);
        }
    }
}
