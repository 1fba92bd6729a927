//! When a TCP connection's record can be given out before its end, and what is kept after that.

use units::SeqNumber;
use wire::tcp::{Flags, Segment};

use super::TcpFlow;
use super::sequence::{end_of, is_near};
use crate::plain::Plain;
use crate::record::End;
use crate::side::Sender;

/// Payload of one side, in bytes, after which the other's silence is taken for good where there is
/// no TLS: a client that speaks TLS has long sent its ClientHello.
const SILENT_PEER: u64 = 16 * 1024;

/// What is kept of a TCP connection once its record is out: how it ends.
///
/// Twelve bytes, so that a connection fits in two cache lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reported {
    /// The next bytes of the client's stream and of the server's.
    next: [SeqNumber; 2],
    /// The low 24 bits of the number with which the client's stream begins; above them the flags.
    base_and_flags: u32,
}

/// Which bits of [`Reported::base_and_flags`] are of the number.
const BASE: u32 = 0x00ff_ffff;
/// The number is known.
const BASE_KNOWN: u32 = 1 << 24;
const CLIENT_FIN: u32 = 1 << 25;
const SERVER_FIN: u32 = 1 << 26;
const RESET: u32 = 1 << 27;
/// The connection ended by a FIN, or by an RST before any.
const ENDED_BY_FIN: u32 = 1 << 28;
const ENDED_BY_RESET: u32 = 1 << 29;

impl Reported {
    const fn has(&self, flag: u32) -> bool {
        self.base_and_flags & flag != 0
    }

    /// How it ended, as far as seen.
    pub(crate) const fn end(&self) -> End {
        if self.has(ENDED_BY_FIN) {
            End::Fin
        } else if self.has(ENDED_BY_RESET) {
            End::Reset
        } else {
            End::Open
        }
    }

    /// Whether both sides are through.
    pub(crate) const fn is_closed(&self) -> bool {
        self.has(RESET) || (self.has(CLIENT_FIN) && self.has(SERVER_FIN))
    }

    /// Takes a segment with so many bytes of payload.
    pub(crate) fn handle(&mut self, segment: &Segment<'_>, payload_len: usize, side: Sender) {
        let flags = segment.flags();
        if flags.has(Flags::RST) {
            // RFC 9293 §3.10.7.4: one whose number is not of the stream changes nothing.
            if is_near(*self.next(side), segment) {
                let ended = self.has(ENDED_BY_FIN | ENDED_BY_RESET);
                self.base_and_flags |= if ended { RESET } else { RESET | ENDED_BY_RESET };
            }
            return;
        }
        self.go_on(end_of(segment, payload_len), flags.has(Flags::FIN), side);
    }

    /// Takes a segment that is neither SYN nor RST, of which only the headers are known.
    pub(crate) fn handle_plain(&mut self, plain: &Plain, side: Sender) {
        let fin = plain.flags.has(Flags::FIN);
        let numbers = u32::from(plain.payload_len) + u32::from(fin);
        self.go_on(SeqNumber(plain.sequence) + numbers, fin, side);
    }

    fn go_on(&mut self, end: SeqNumber, fin: bool, side: Sender) {
        let next = self.next(side);
        if end.distance(*next) > 0 {
            *next = end;
        }
        if fin && !self.has(RESET) {
            let of_side = if side == Sender::Client { CLIENT_FIN } else { SERVER_FIN };
            self.base_and_flags |= of_side | ENDED_BY_FIN;
        }
    }

    fn next(&mut self, side: Sender) -> &mut SeqNumber {
        let [client, server] = &mut self.next;
        if side == Sender::Client { client } else { server }
    }

    /// Whether a segment begins another connection between the same ports. One whose first number has
    /// the same 24 bits is taken for the same.
    pub(crate) fn is_superseded_by(&self, segment: &Segment<'_>, side: Sender) -> bool {
        let base = self.base_and_flags & BASE;
        begins(segment).is_some_and(|first| {
            side == Sender::Server || (self.has(BASE_KNOWN) && first.0 & BASE != base)
        })
    }
}

/// The first number of the stream that a segment begins, if it is a SYN.
fn begins(segment: &Segment<'_>) -> Option<SeqNumber> {
    let flags = segment.flags();
    let starts = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
    starts.then(|| SeqNumber(segment.sequence()) + 1)
}

impl TcpFlow {
    /// Whether nothing more will be told of it than how it ends: its TLS handshake is over and both
    /// sides have sent application data, or it is none.
    pub(crate) fn is_reported(&self) -> bool {
        let both = self.first.client.is_some() && self.first.server.is_some();
        let sent = self.sides.client.highest.max(self.sides.server.highest);
        if self.content.is_unknown() {
            sent >= self.stream_bytes.max(SILENT_PEER)
        } else if self.content.may_be_tls() {
            // Beyond what is put in order of both streams nothing can be found.
            let least = self.sides.client.highest.min(self.sides.server.highest);
            self.done || least > self.stream_bytes
        } else {
            self.done && (both || sent >= SILENT_PEER)
        }
    }

    /// What is kept.
    pub(crate) fn reported(&self) -> Reported {
        let mut base_and_flags = match self.sides.client.base {
            Some(base) => base.0 & BASE | BASE_KNOWN,
            None => 0,
        };
        let ended = match self.end {
            End::Open => 0,
            End::Fin => ENDED_BY_FIN,
            End::Reset => ENDED_BY_RESET,
        };
        let flags = [
            (self.reset, RESET),
            (self.sides.client.fin, CLIENT_FIN),
            (self.sides.server.fin, SERVER_FIN),
        ];
        for (is_set, flag) in flags {
            base_and_flags |= if is_set { flag } else { 0 };
        }
        let next = [Sender::Client, Sender::Server].map(|side| {
            let side = &self.sides[side];
            side.base.unwrap_or(SeqNumber(0)) + side.highest as u32
        });
        Reported { next, base_and_flags: base_and_flags | ended }
    }

    /// Whether a segment begins another connection between the same ports.
    pub(crate) fn is_superseded_by(&self, segment: &Segment<'_>, side: Sender) -> bool {
        begins(segment).is_some_and(|first| match (side, self.sides.client.base) {
            (Sender::Server, _) => true,
            (Sender::Client, Some(base)) => base != first,
            (Sender::Client, None) => self.is_of_other_syn(first),
        })
    }
}
