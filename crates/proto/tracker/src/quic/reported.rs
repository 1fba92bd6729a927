//! When a QUIC connection's record can be given out before its end, what is kept after that, and when
//! another connection begins between the same ports.

use wire::quic::{Packet, PacketType, Packets};

use super::{QuicFlow, starts_connection};

/// Frames of a connection after which nothing more is expected of its handshake, where a direction
/// or the Finished was not captured.
const MANY_FRAMES: u64 = 256;

/// Marks of the Destination Connection IDs that a connection's Initial keys came from: the client's
/// first one, and that after a Retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origins([u32; 2]);

/// FNV-1a: two identifiers seldom have the same mark, and then are taken for one.
fn mark(identifier: &[u8]) -> u32 {
    identifier
        .iter()
        .fold(0x811c_9dc5, |mark, byte| (mark ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

impl Origins {
    pub(super) fn new(first: &[u8]) -> Self {
        Origins([mark(first); 2])
    }

    /// Those of no connection.
    pub(crate) const fn none() -> Self {
        Origins([0; 2])
    }

    /// After a Retry.
    pub(super) fn then(&mut self, second: &[u8]) {
        self.0[1] = mark(second);
    }

    /// Whether a datagram of the client begins another connection between the same ports, as clients
    /// do that draw their ports: a first Initial, under keys of an identifier that is new.
    pub(crate) fn are_superseded_by(self, datagram: &[u8], scratch: &mut Vec<u8>) -> bool {
        let first = Packets::of_known_flow(datagram).next();
        let Some(Packet::Long(packet)) = first else { return false };
        packet.kind() == PacketType::Initial
            && !self.0.contains(&mark(packet.destination()))
            && starts_connection(datagram, scratch).is_some()
    }
}

impl QuicFlow {
    /// Whether nothing more will be told of it: both sides have sent 1-RTT packets, the server's in
    /// answer to the client's. How a QUIC connection ends is encrypted.
    pub(crate) fn is_reported(&self, frames: u64) -> bool {
        let (client, server) = (self.facts.client_one_rtt, self.facts.server_one_rtt);
        let answered = match (client, self.response) {
            (Some(_), Some(response)) => {
                let finished = self.tls.client_finished.is_some();
                finished && self.request.is_some_and(|request| response.at >= request)
            }
            _ => false,
        };
        answered || (frames >= MANY_FRAMES && (client.is_some() || server.is_some()))
    }

    /// What is kept.
    pub(crate) const fn reported(&self) -> Origins {
        self.origins
    }

    /// Whether a datagram of the client begins another connection between the same ports. The Initial
    /// that answers a Retry has a new identifier, too.
    pub(crate) fn is_superseded_by(&self, datagram: &[u8], scratch: &mut Vec<u8>) -> bool {
        !self.retried && self.origins.are_superseded_by(datagram, scratch)
    }
}
