//! Round trips over QUIC's limit before the client's address is validated, and over its initial window.

use crate::Flight;

/// What RFC 9000 §14.1 has a client's first datagram padded to, at least.
const LEAST_INITIAL: usize = 1_200;
/// How often what came from a client may be sent to it before its address is validated (RFC 9000 §8.1).
const AMPLIFICATION: usize = 3;
/// A Handshake packet's header with connection identifiers of 8 bytes, a length of two and a number of one
/// (RFC 9000 §17.2.4).
const HANDSHAKE_HEADER: usize = 1 + 4 + 2 * (1 + 8) + 2 + 1;
/// An Initial packet's header: the same, and that there is no token (RFC 9000 §17.2.2).
const INITIAL_HEADER: usize = HANDSHAKE_HEADER + 1;
/// The tag at a packet's end (RFC 9001 §5.3).
const TAG: usize = 16;
/// The first Initial packet's ACK frame, with the counts of ECN (RFC 9000 §19.3). It is a byte longer where the server
/// took long to answer.
const ACK: usize = 5 + 3;
/// Bytes that a datagram has left where another packet is begun in it, at least: as quinn has it.
const LEAST_PACKET: usize = 103;

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

/// Round trips until a flight has come: more than one number where they depend on how the client acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrips {
    /// Where the client acknowledges each datagram of the first part by itself.
    pub least: usize,
    /// Where it acknowledges them together.
    pub most: usize,
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
        let mut datagrams = Datagrams::of(LEAST_INITIAL);
        datagrams.put(bytes, INITIAL_HEADER, 0);
        QuicPath { first_client: datagrams.count.max(1) * LEAST_INITIAL, ..self }
    }

    /// Datagrams that come from the client at first.
    #[must_use]
    pub fn client_datagrams(self) -> usize {
        self.first_client.div_ceil(LEAST_INITIAL)
    }

    /// Bytes that the server may send before the client's address is validated.
    #[must_use]
    pub fn limit(self) -> usize {
        AMPLIFICATION * self.first_client
    }

    /// Bytes of UDP payload that a flight needs.
    #[must_use]
    pub fn bytes(self, flight: &Flight) -> usize {
        let all = self.filled(flight);
        all.count * all.size - all.left
    }

    /// Datagrams that a flight needs.
    #[must_use]
    pub fn datagrams(self, flight: &Flight) -> usize {
        self.filled(flight).count
    }

    fn filled(self, flight: &Flight) -> Datagrams {
        let mut datagrams = Datagrams::of(self.datagram);
        datagrams.put(flight.server_hello, INITIAL_HEADER, ACK);
        datagrams.put(flight.handshake_level(), HANDSHAKE_HEADER, 0);
        datagrams
    }

    /// Round trips until a flight has come. The client's answer to the first part validates its address; from then on
    /// the congestion window alone holds the server back. What the limit held back was not the window's doing, so that
    /// its acknowledgement does not widen the window (RFC 9002 §7.8); where the client acknowledges the first datagram
    /// by itself, the window holds the server back from then on, and the rest does widen it.
    ///
    /// A datagram that would just fill the window waits, as quinn has it: of a window of ten, nine are used. RFC 9002
    /// §7 lets a server send all ten.
    #[must_use]
    pub fn round_trips(self, flight: &Flight) -> RoundTrips {
        let datagrams = self.datagrams(flight);
        RoundTrips { least: self.trips(datagrams, true), most: self.trips(datagrams, false) }
    }

    fn trips(self, datagrams: usize, one_by_one: bool) -> usize {
        // A server that may send a byte more sends a whole datagram.
        let limit = self.limit().div_ceil(self.datagram.max(1));
        let mut window = self.initial.max(1);
        let first = limit.min(used(window));
        if datagrams <= first {
            return 1;
        }
        let widens = match (first < limit, one_by_one) {
            (true, _) => first,
            (false, true) => first.saturating_sub(1),
            (false, false) => 0,
        };
        window = window.saturating_add(widens);
        let (mut left, mut round_trips) = (datagrams - first, 2);
        while left > used(window) {
            left -= used(window);
            window = window.saturating_add(used(window));
            round_trips += 1;
        }
        round_trips
    }
}

/// Datagrams that are sent into a window of so many.
fn used(window: usize) -> usize {
    window.saturating_sub(1).max(1)
}

/// Datagrams as they are filled with packets.
#[derive(Debug, Clone, Copy)]
struct Datagrams {
    size: usize,
    count: usize,
    /// Bytes that the last one has left.
    left: usize,
}

impl Datagrams {
    fn of(size: usize) -> Datagrams {
        Datagrams { size, count: 0, left: 0 }
    }

    /// Puts the data of one encryption level in: packets with so many bytes of header and a CRYPTO frame each
    /// (RFC 9000 §19.6), the first with so many bytes beside it.
    fn put(&mut self, bytes: usize, header: usize, beside_first: usize) {
        let (mut offset, mut beside) = (0, beside_first);
        while offset < bytes {
            if self.left < LEAST_PACKET {
                self.count += 1;
                self.left = self.size;
            }
            let overhead = header + beside + 1 + varint(offset) + 2 + TAG;
            let taken = self.left.saturating_sub(overhead).clamp(1, bytes - offset);
            self.left = self.left.saturating_sub(overhead + taken);
            offset += taken;
            beside = 0;
        }
    }
}

/// Bytes of a number of variable length (RFC 9000 §16).
const fn varint(value: usize) -> usize {
    match value {
        0..64 => 1,
        64..16_384 => 2,
        _ => 4,
    }
}
