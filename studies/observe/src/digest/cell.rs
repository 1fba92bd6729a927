//! The handshakes of one version and class.

use std::time::Duration;

use observe::Connection;

use super::kept::{Kept, Times};
use super::spread::{Mould, Spread};

/// What is kept of the handshakes of one version and class. Times of doubtful records are not among
/// them.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// All, the doubtful too.
    pub count: u64,
    /// Those whose times are doubtful.
    pub doubtful: u64,
    pub handshake: Spread,
    pub to_data: Spread,
    pub think: Spread,
    pub round_trip: Spread,
    /// In thousandths of a round trip, as if they were microseconds.
    pub round_trips: Spread,
    pub kept: Kept,
}

impl Cell {
    pub(crate) fn new(mould: &Mould, kept: usize) -> Cell {
        Cell {
            count: 0,
            doubtful: 0,
            handshake: mould.spread(),
            to_data: mould.spread(),
            think: mould.spread(),
            round_trip: mould.spread(),
            round_trips: mould.spread(),
            kept: Kept::new(kept),
        }
    }

    pub(crate) fn take(&mut self, connection: &Connection, doubtful: bool, draw: u64) {
        self.count += 1;
        if doubtful {
            self.doubtful += 1;
            return;
        }
        let times = [
            (&mut self.handshake, connection.tls_handshake_time()),
            (&mut self.to_data, connection.hello_to_data()),
            (&mut self.think, connection.think_time()),
            (&mut self.round_trip, connection.round_trip()),
        ];
        for (spread, time) in times {
            if let Some(time) = time {
                spread.record(time);
            }
        }
        if let Some(round_trips) = connection.tls_round_trips() {
            // A round trip is a nanosecond at least, so the quotient may be large, but is finite.
            self.round_trips.record(Duration::from_micros((round_trips * 1e3) as u64));
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        if let Some(handshake) = connection.tls_handshake_time().map(ms) {
            let to_data = connection.hello_to_data().map(ms);
            let round_trip = connection.round_trip().filter(|time| !time.is_zero()).map(ms);
            self.kept.offer(draw, Times { handshake, to_data, round_trip });
        }
    }

    pub(crate) fn merge(&mut self, other: Cell) {
        self.count += other.count;
        self.doubtful += other.doubtful;
        self.handshake.merge(&other.handshake);
        self.to_data.merge(&other.to_data);
        self.think.merge(&other.think);
        self.round_trip.merge(&other.round_trip);
        self.round_trips.merge(&other.round_trips);
        self.kept.merge(other.kept);
    }
}
