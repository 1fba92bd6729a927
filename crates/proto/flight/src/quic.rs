//! Round trips over QUIC's limit before the client's address is validated.

use crate::Flight;

/// What RFC 9000 §14.1 has a client's first datagram padded to, at least.
const LEAST_INITIAL: usize = 1_200;
/// How often what came from a client may be sent to it before its address is validated (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;
/// What an Initial packet has beside the data of its CRYPTO frame: the long header with connection
/// identifiers of 8 bytes, the tag, an ACK frame, the CRYPTO frame's own header (RFC 9000 §17.2.2, §19.6).
const INITIAL_OVERHEAD: usize = 54;
/// The same of a Handshake packet, which acknowledges nothing yet (RFC 9000 §17.2.4).
const HANDSHAKE_OVERHEAD: usize = 50;

/// What of a path and of its ends decides QUIC's round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuicPath {
    /// Bytes of UDP payload in a full datagram from the server.
    pub datagram: usize,
    /// Bytes of UDP payload that come from the client at first.
    pub first_client: usize,
    /// Datagrams in the server's initial window (RFC 9002 §7.2).
    pub initial: usize,
}

impl Default for QuicPath {
    /// A client's one datagram of 1200 bytes, and as much from the server in each.
    fn default() -> QuicPath {
        QuicPath { datagram: LEAST_INITIAL, first_client: LEAST_INITIAL, initial: 10 }
    }
}

impl QuicPath {
    /// The same for a ClientHello of so many bytes, which may need more datagrams than one.
    #[must_use]
    pub fn with_client_hello(self, bytes: usize) -> QuicPath {
        let room = LEAST_INITIAL - INITIAL_OVERHEAD;
        QuicPath { first_client: bytes.div_ceil(room).max(1) * LEAST_INITIAL, ..self }
    }

    /// Bytes that the server may send before the client's address is validated.
    #[must_use]
    pub fn limit(self) -> usize {
        AMPLIFICATION * self.first_client
    }

    /// Bytes of UDP payload that a flight needs.
    #[must_use]
    pub fn bytes(self, flight: &Flight) -> usize {
        let packets = |bytes: usize, overhead: usize| {
            let room = self.datagram.saturating_sub(overhead).max(1);
            bytes + bytes.div_ceil(room) * overhead
        };
        packets(flight.server_hello, INITIAL_OVERHEAD)
            + packets(flight.handshake_level(), HANDSHAKE_OVERHEAD)
    }

    /// Round trips until a flight has come. The client's answer to the first part validates its address;
    /// from then on the congestion window alone holds the server back. What the limit held back was not the
    /// window's doing, so that the window has not grown by it (RFC 9002 §7.8). A server that lets it grow all the same,
    /// as quinn does on some runs, takes one round trip less for flights just above what the windows hold.
    #[must_use]
    pub fn round_trips(self, flight: &Flight) -> usize {
        let window = self.initial.max(1) * self.datagram;
        let bytes = self.bytes(flight);
        let first = self.limit().min(window);
        if bytes <= first {
            return 1;
        }
        let (mut left, mut window) = (bytes - first, window);
        let mut round_trips = 2;
        while left > window {
            left -= window;
            window = window.saturating_mul(2);
            round_trips += 1;
        }
        round_trips
    }
}
