//! Payload in order: from segments to the streams of both sides.

use units::SeqNumber;

use super::TcpFlow;
use crate::content::Content;
use crate::envelope::Unwrapper;
use crate::keylog::KeyLog;
use crate::reassembly::Kind;
use crate::side::{Pair, Sender};
use crate::tls::Mark;

impl TcpFlow {
    pub(super) fn segment_payload(
        &mut self,
        side: Sender,
        sequence: SeqNumber,
        payload: (&[u8], usize),
        mark: Mark,
        keys: &KeyLog,
    ) {
        let start = self.sides[side].offset(sequence);
        if side == Sender::Server
            && self.facts.syn_ack.is_some()
            && self.facts.handshake_ack.is_none()
        {
            self.facts.server_data_before_ack = true;
        }
        if side == Sender::Client
            && let Some((_, longest)) = self.syn.waiting()
        {
            // No word of the server was captured: the client knew it.
            self.settle_syn_data(longest.min(start.max(0) as u64), keys);
        }
        self.payload(side, start, payload, mark, keys);
    }

    /// Takes a payload, of which `len` bytes were sent, at an offset of the stream.
    pub(super) fn payload(
        &mut self,
        side: Sender,
        start: i64,
        (payload, len): (&[u8], usize),
        mark: Mark,
        keys: &KeyLog,
    ) {
        let end = start.saturating_add(len as i64).max(0) as u64;
        self.first[side].get_or_insert(mark);
        if payload.len() < len && !self.done {
            self.facts.bytes_missing = true;
        }
        // Bytes before the stream's first: an old segment, or a capture that began later.
        let skipped = usize::try_from(start.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let payload = payload.get(skipped..).unwrap_or(&[]);
        let start = start.max(0) as u64;
        let sent_again = side == Sender::Client && self.syn.sent_again(start, payload);
        let behind = start < self.sides[side].highest;
        let duplicate = if self.done {
            end <= self.sides[side].highest
        } else {
            self.deliver(side, start, payload, mark, keys) == Kind::Duplicate
        };
        let copied = duplicate && self.is_copied(side, mark.at);
        let f = &mut self.facts;
        let (again, late, bytes) = if side == Sender::Client {
            (&mut f.client_retransmitted, &mut f.client_out_of_order, &mut f.client_payload_bytes)
        } else {
            (&mut f.server_retransmitted, &mut f.server_out_of_order, &mut f.server_payload_bytes)
        };
        if copied {
            f.copies = f.copies.saturating_add(1);
        } else if duplicate || sent_again {
            *again += 1;
        } else if behind {
            *late += 1;
        }
        let side = &mut self.sides[side];
        if end > side.highest {
            side.highest = end;
            side.advanced_at = Some(mark.at);
            side.sent_again = false;
        } else {
            side.sent_again |= end == side.highest && !copied;
        }
        *bytes = side.highest;
    }

    pub(super) fn deliver(
        &mut self,
        side: Sender,
        start: u64,
        payload: &[u8],
        mark: Mark,
        keys: &KeyLog,
    ) -> Kind {
        let (content, envelopes) = (&mut self.content, &mut self.envelopes);
        let kind = self.sides[side].stream.insert(start, payload, |bytes| match envelopes {
            None => content.deliver(side, bytes, mark, keys),
            Some(envelopes) => {
                content.begin_tls();
                unwrap(envelopes, content, side, (bytes, mark), keys);
            }
        });
        if self.content.is_done() {
            self.finish_streams();
        }
        kind
    }

    /// Nothing more of the streams is wanted.
    pub(super) fn finish_streams(&mut self) {
        self.done = true;
        self.sides.client.stream.release();
        self.sides.server.stream.release();
        self.syn.release();
        self.content.release();
    }
}

/// Hands on the payload of envelopes. What acknowledges the peer's stream is counted in payload, too.
fn unwrap(
    envelopes: &mut Pair<Unwrapper>,
    content: &mut Content,
    side: Sender,
    (mut bytes, mut mark): (&[u8], Mark),
    keys: &KeyLog,
) {
    mark.acked = mark.acked.saturating_sub(envelopes[side.peer()].overhead());
    while let Some(payload) = envelopes[side].next(&mut bytes) {
        content.deliver(side, payload, mark, keys);
    }
}
