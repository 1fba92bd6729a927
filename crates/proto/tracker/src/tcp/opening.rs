//! How a TCP connection begins: SYN and SYN+ACK, data on them, and data of the server before its SYN+ACK.

use units::SeqNumber;
use wire::tcp::{Segment, TcpOption};

use super::{Held, Input, TcpFlow};
use crate::envelope::{self, Unwrapper};
use crate::keylog::KeyLog;
use crate::side::{Pair, Sender};
use crate::syn_data::SynData;
use crate::tls::Mark;

/// Data of the server that are held while no SYN+ACK was captured: an initial window and more.
const HELD_SEGMENTS: usize = 64;

impl TcpFlow {
    /// Whether only the SYN+ACK can say where the server's stream begins.
    pub(super) fn awaits_syn_ack(&self, side: Sender) -> bool {
        side == Sender::Server
            && self.facts.syn.is_some()
            && !self.client_goes_on
            && self.held.len() < HELD_SEGMENTS
    }

    pub(super) fn hold(&mut self, input: &Input<'_>, sequence: SeqNumber, mark: Mark) {
        let limit = usize::try_from(self.stream_bytes).unwrap_or(usize::MAX);
        let payload = input.payload.get(..limit).unwrap_or(input.payload).into();
        self.held.push(Held { sequence, payload, len: input.payload_len, mark });
    }

    /// Puts what was held into the server's stream, which begins with the SYN+ACK's data, or with
    /// the first of these where there was none.
    pub(super) fn take_held(&mut self, keys: &KeyLog) {
        if self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let mut first = held.iter().map(|held| held.sequence);
        let begin = first.next();
        let begin =
            begin.map(|begin| first.fold(begin, |a, b| if b.distance(a) < 0 { b } else { a }));
        if self.sides.server.base.is_none() {
            self.sides.server.base = begin;
        }
        for held in held {
            let Held { sequence, payload, len, mark } = held;
            self.segment_payload(Sender::Server, sequence, (&payload, len), mark, keys);
        }
    }

    pub(super) fn synchronise(&mut self, input: &Input<'_>, sequence: SeqNumber) {
        let (side, at) = (input.side, input.mark.at);
        if side == Sender::Server && self.differing_syn_ack(input, sequence + 1) {
            return;
        }
        let copied = self.is_copied_syn(input, sequence);
        if copied {
            self.facts.copies = self.facts.copies.saturating_add(1);
        } else if self.sides[side].base.is_some() {
            self.sides[side].sent_again = self.sides[side].highest == 0;
            let again = if side == Sender::Client {
                &mut self.facts.client_retransmitted
            } else {
                &mut self.facts.server_retransmitted
            };
            self.facts.handshake_retransmitted |= self.facts.handshake_ack.is_none();
            // The server's payload is counted where it is put in order; the client's may never be.
            if side == Sender::Client || input.payload_len == 0 {
                *again += 1;
            }
        } else {
            self.sides[side].base = Some(sequence + 1);
            self.sides[side].advanced_at.get_or_insert(at);
        }
        if side == Sender::Client {
            // The SYN+ACK was captured before.
            self.mid_stream = false;
            self.facts.syn.get_or_insert(at);
            self.fast_open_syn(input);
        } else if input.segment.acknowledgment().is_some() {
            if self.facts.syn_ack.is_none() {
                let granted = cookie_len(&input.segment).filter(|len| *len > 0);
                self.facts.fast_open.cookie_granted_len = granted;
            }
            self.facts.syn_ack.get_or_insert(at);
            if self.facts.syn_ack_data == 0 {
                self.facts.syn_ack_data = input.payload_len as u32;
            }
        }
    }

    /// RFC 7413 §4.1: an empty option asks for a cookie, another carries it.
    pub(super) fn fast_open_syn(&mut self, input: &Input<'_>) {
        let fast_open = &mut self.facts.fast_open;
        match cookie_len(&input.segment) {
            Some(0) => fast_open.cookie_requested = true,
            Some(len) => fast_open.cookie_len = Some(len),
            None => {}
        }
        if fast_open.syn_data == 0 && input.payload_len > 0 {
            fast_open.syn_data = input.payload_len as u32;
            fast_open.without_cookie = fast_open.cookie_len.is_none();
            self.facts.syn_data = input.payload_len as u32;
        }
    }

    /// Data on a SYN wait for the server's word.
    pub(super) fn syn_payload(&mut self, input: &Input<'_>, mark: Mark) {
        self.facts.client_payload.get_or_insert(mark.at);
        let limit = usize::try_from(self.stream_bytes).unwrap_or(usize::MAX);
        let bytes = input.payload.get(..limit).unwrap_or(input.payload).into();
        let segment_len = input.segment.header_len().saturating_add(input.payload_len);
        self.syn.keep(SynData { bytes, len: input.payload_len, segment_len, mark });
    }

    /// The server's word on the data of the SYN: its SYN+ACK, or where that was not captured the
    /// first segment that acknowledges what a SYN+ACK could.
    pub(super) fn server_acknowledged(&mut self, acked: u64, syn_ack: bool, keys: &KeyLog) {
        let waiting = self.syn.waiting();
        if !syn_ack && waiting.is_some_and(|(_, longest)| acked > longest) {
            return;
        }
        let taken = self.settle_syn_data(acked, keys);
        if waiting.is_some() {
            self.facts.syn_data_taken = Some(taken > 0);
            self.facts.fast_open.syn_data_acked = taken as u32;
        }
    }

    /// Puts the data of the SYN into the stream, as far as they were taken. Gives their number.
    pub(super) fn settle_syn_data(&mut self, acked: u64, keys: &KeyLog) -> u64 {
        let Some(data) = self.syn.settle(acked) else { return 0 };
        if envelope::begins(data.segment_len, &data.bytes) {
            let (client, server) = (Unwrapper::new(2), Unwrapper::new(1));
            self.envelopes = Some(Box::new(Pair { client, server }));
        }
        self.payload(Sender::Client, 0, (&data.bytes, data.len), data.mark, keys);
        data.len as u64
    }
}

/// Bytes of the Fast Open cookie in a segment's options; 0 is the request for one.
pub(super) fn cookie_len(segment: &Segment<'_>) -> Option<u8> {
    segment.options().map_while(Result::ok).find_map(|option| match option {
        TcpOption::FastOpen(fast_open) => Some(fast_open.cookie.len() as u8),
        _ => None,
    })
}
