//! Round trips over TCP's initial window.

/// How many segments a server may send before it hears of any, and how much each holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpWindow {
    /// Segments in the initial window (RFC 6928 §2: 10; Linux: the route's `initcwnd`).
    pub initial: usize,
    /// Bytes of payload in a full segment: 1460 at an MTU of 1500, 1448 with timestamps (RFC 7323 §3.2).
    pub segment: usize,
}

impl Default for TcpWindow {
    /// Linux at an MTU of 1500.
    fn default() -> TcpWindow {
        TcpWindow { initial: 10, segment: 1_448 }
    }
}

impl TcpWindow {
    /// Full segments and the rest, that so many bytes need.
    #[must_use]
    pub fn segments(self, bytes: usize) -> usize {
        bytes.div_ceil(self.segment.max(1))
    }

    /// Round trips until so many bytes have come: the first window, then, in slow start without loss, twice
    /// as much in each round trip (RFC 5681 §3.1, with RFC 3465's counting of bytes).
    #[must_use]
    pub fn round_trips(self, bytes: usize) -> usize {
        let mut left = self.segments(bytes);
        let mut window = self.initial.max(1);
        let mut round_trips = 1;
        while left > window {
            left -= window;
            window = window.saturating_mul(2);
            round_trips += 1;
        }
        round_trips
    }

    /// The least initial window by which so many bytes take one round trip.
    #[must_use]
    pub fn window_for(self, bytes: usize) -> usize {
        self.segments(bytes).max(1)
    }
}
