//! Which sequence numbers belong to a connection: SYN+ACKs that differ, resets that are of another
//! connection, bytes that were acknowledged.

use units::{SeqNumber, Time};
use wire::tcp::{Flags, Segment};

use super::opening::cookie_len;
use super::{Input, Side, TcpFlow};
use crate::side::Sender;

/// How far beyond what was captured a sequence number may lie: more than a window that is in use, far
/// less than the space of numbers.
pub(super) const FAR: u64 = 1 << 24;

/// A SYN+ACK, of a server that sent another with a different initial sequence number.
#[derive(Debug, Clone, Copy)]
pub(super) struct SynAck {
    /// The sequence number of its stream's first byte.
    base: SeqNumber,
    at: Time,
    cookie_granted_len: Option<u8>,
    data: u32,
}

impl Side {
    /// Whether bytes were acknowledged that were wanted and never captured. A lost FIN takes one
    /// number, too, and is no byte.
    pub(super) fn lacks_acknowledged(&self, wanted: u64) -> bool {
        let next = self.stream.next();
        next < wanted && self.acked > next.saturating_add(1)
    }
}

impl TcpFlow {
    /// Whether an RST is of this connection (RFC 9293 §3.10.7): its sequence number lies in the
    /// sender's stream or just behind it, or it answers the SYN. A host that lost a connection, or
    /// began another between the same ports, resets it with that one's numbers (§3.5.1).
    pub(super) fn is_own_reset(&self, segment: &Segment<'_>, side: Sender) -> bool {
        let sender = &self.sides[side];
        if sender.base.is_some() {
            let offset = sender.offset(SeqNumber(segment.sequence()));
            // The SYN's own number is the last before the stream.
            let first = (sender.highest as i64).saturating_sub(FAR as i64).max(-1);
            return (first..=(sender.highest + FAR) as i64).contains(&offset);
        }
        let receiver = &self.sides[side.peer()];
        if self.facts.syn.is_none() || receiver.base.is_none() {
            return true;
        }
        // RFC 9293 §3.10.7.3: in SYN-SENT only an RST that acknowledges the SYN counts.
        let acked = segment.acknowledgment().map(|ack| receiver.offset(SeqNumber(ack)));
        let sent = receiver.highest.max(self.facts.syn_data.into());
        acked.is_some_and(|acked| (0..=sent as i64).contains(&acked))
    }

    /// Notes what a segment acknowledged of the peer's stream.
    pub(super) fn note_acknowledged(&mut self, of: Sender, acked: u64) {
        let side = &mut self.sides[of];
        if acked <= side.highest + FAR {
            side.acked = side.acked.max(acked);
        }
    }

    /// Takes a SYN+ACK with another initial sequence number than one before, as an old one that was
    /// still on its way has, or one of a host that answers for several: which of them counts, the
    /// client says. True if it is that.
    pub(super) fn differing_syn_ack(&mut self, input: &Input<'_>, first: SeqNumber) -> bool {
        let server = &mut self.sides.server;
        if self.client_goes_on || server.highest > 0 {
            return false;
        }
        let one = SynAck {
            base: first,
            at: input.mark.at,
            cookie_granted_len: cookie_len(&input.segment).filter(|len| *len > 0),
            data: input.payload_len as u32,
        };
        match (&mut self.syn_acks, server.base, self.facts.syn_ack) {
            (Some(both), ..) => {
                let known = both.iter().any(|other| other.base == first);
                self.facts.handshake_retransmitted |= known;
                if !known {
                    let [_, second] = both.as_mut();
                    *second = one;
                }
                true
            }
            (None, Some(base), Some(at)) if base != first => {
                let cookie_granted_len = self.facts.fast_open.cookie_granted_len;
                let data = self.facts.syn_ack_data;
                let earlier = SynAck { base, at, cookie_granted_len, data };
                self.syn_acks = Some(Box::new([earlier, one]));
                // What the server sends waits until the client has said which.
                server.base = None;
                true
            }
            _ => false,
        }
    }

    /// Follows the SYN+ACK that the client acknowledges; the first, if none of them or no word of the
    /// client was captured.
    pub(super) fn choose_syn_ack(&mut self, acknowledged: Option<SeqNumber>) {
        let Some(both) = self.syn_acks.take() else { return };
        let near = |one: &&SynAck| {
            let bytes = acknowledged.map(|ack| ack.distance(one.base));
            bytes.is_some_and(|bytes| (0..=FAR as i32).contains(&bytes))
        };
        let [first, _] = *both;
        let chosen = both.iter().find(near).copied().unwrap_or(first);
        self.sides.server.base = Some(chosen.base);
        self.facts.syn_ack = Some(chosen.at);
        self.facts.syn_ack_data = chosen.data;
        self.facts.fast_open.cookie_granted_len = chosen.cookie_granted_len;
        let of_it =
            |sequence: SeqNumber| (0..=FAR as i32).contains(&sequence.distance(chosen.base));
        self.held.retain(|held| of_it(held.sequence));
    }
}

/// Whether an RST is of a stream whose next byte has this number.
pub(super) fn is_near(next: SeqNumber, segment: &Segment<'_>) -> bool {
    u64::from(SeqNumber(segment.sequence()).distance(next).unsigned_abs()) <= FAR
}

/// Where a segment ends in its stream: SYN and FIN take a number each (RFC 9293 §3.4).
pub(super) fn end_of(segment: &Segment<'_>, payload_len: usize) -> SeqNumber {
    let flags = segment.flags();
    let numbers = u32::from(flags.has(Flags::SYN)) + u32::from(flags.has(Flags::FIN));
    SeqNumber(segment.sequence()) + (payload_len as u32).wrapping_add(numbers)
}
