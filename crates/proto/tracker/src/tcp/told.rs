//! When a TCP connection's record can be given out before its end, and what is kept after that.

use units::SeqNumber;
use wire::tcp::{Flags, Segment};

use super::TcpFlow;
use crate::record::End;
use crate::side::Sender;

/// Payload of one side, in bytes, after which the other's silence is taken for good where there is
/// no TLS: a client that speaks TLS has long sent its ClientHello.
const SILENT_PEER: u64 = 16 * 1024;

/// What is kept of a TCP connection once its record is out: how it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    client_base: Option<SeqNumber>,
    end: End,
    reset: bool,
    client_fin: bool,
    server_fin: bool,
}

impl Told {
    /// How it ended, as far as seen.
    pub(crate) const fn end(&self) -> End {
        self.end
    }

    /// Whether both sides are through.
    pub(crate) const fn is_closed(&self) -> bool {
        self.reset || (self.client_fin && self.server_fin)
    }

    /// Takes a segment.
    pub(crate) fn handle(&mut self, segment: &Segment<'_>, side: Sender) {
        let flags = segment.flags();
        if flags.has(Flags::FIN) && !self.reset {
            match side {
                Sender::Client => self.client_fin = true,
                Sender::Server => self.server_fin = true,
            }
            self.end = End::Fin;
        }
        if flags.has(Flags::RST) {
            self.reset = true;
            if self.end == End::Open {
                self.end = End::Reset;
            }
        }
    }

    /// Whether a segment begins another connection between the same ports.
    pub(crate) fn is_superseded_by(&self, segment: &Segment<'_>, side: Sender) -> bool {
        begins_another(self.client_base, segment, side)
    }
}

/// Whether a segment is the SYN of another connection than the one whose client's stream begins at
/// `client_base`.
fn begins_another(client_base: Option<SeqNumber>, segment: &Segment<'_>, side: Sender) -> bool {
    let flags = segment.flags();
    let starts = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
    let first = SeqNumber(segment.sequence()) + 1;
    starts && (side == Sender::Server || client_base.is_some_and(|base| base != first))
}

impl TcpFlow {
    /// Whether nothing more will be told of it than how it ends: its TLS handshake is over and both
    /// sides have sent application data, or it is none.
    pub(crate) fn is_told(&self) -> bool {
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
    pub(crate) fn told(&self) -> Told {
        Told {
            client_base: self.sides.client.base,
            end: self.end,
            reset: self.reset,
            client_fin: self.sides.client.fin,
            server_fin: self.sides.server.fin,
        }
    }

    /// Whether a segment begins another connection between the same ports.
    pub(crate) fn is_superseded_by(&self, segment: &Segment<'_>, side: Sender) -> bool {
        begins_another(self.sides.client.base, segment, side)
    }
}
