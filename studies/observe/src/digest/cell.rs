//! The handshakes of one version and class.

use std::time::Duration;

use tracker::Connection;

use super::kept::{Kept, Times};
use super::spread::{Mould, Spread};
use crate::reasons::Facts;

/// The times of one handshake, as its record has them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub handshake: Option<Duration>,
    pub to_data: Option<Duration>,
    pub think: Option<Duration>,
    pub round_trip: Option<Duration>,
}

impl Measured {
    pub(crate) fn of(connection: &Connection) -> Measured {
        Measured {
            handshake: connection.tls_handshake_time(),
            to_data: connection.hello_to_data(),
            think: connection.think_time(),
            round_trip: connection.round_trip(),
        }
    }

    /// The same without the times that a doubt touches.
    pub(crate) fn without(&self, touched: Facts) -> Measured {
        let handshake = self.handshake.filter(|_| !touched.touch(Facts::FINISHED));
        let to_data = self.to_data.filter(|_| !touched.touch(Facts::CLIENT_DATA));
        let think = self.think.filter(|_| !touched.touch_times());
        Measured { handshake, to_data, think, round_trip: self.round_trip }
    }
}

/// What is kept of the handshakes of one version and class. Times that a doubt touches are not among
/// them.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// All, the doubtful too.
    pub count: u64,
    /// Those with a time that is doubtful.
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

    pub(crate) fn take(&mut self, times: &Measured, doubtful: bool, draw: u64) {
        self.count += 1;
        self.doubtful += u64::from(doubtful);
        let all = [
            (&mut self.handshake, times.handshake),
            (&mut self.to_data, times.to_data),
            (&mut self.think, times.think),
            (&mut self.round_trip, times.round_trip),
        ];
        for (spread, time) in all {
            if let Some(time) = time {
                spread.record(time);
            }
        }
        let Some(handshake) = times.handshake else { return };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let round_trip = times.round_trip.filter(|time| !time.is_zero());
        if let Some(round_trip) = round_trip {
            let round_trips = handshake.as_secs_f64() / round_trip.as_secs_f64();
            // A round trip is a nanosecond at least, so the quotient may be large, but is finite.
            self.round_trips.record(Duration::from_micros((round_trips * 1e3) as u64));
        }
        let (to_data, round_trip) = (times.to_data.map(ms), round_trip.map(ms));
        self.kept.offer(draw, Times { handshake: ms(handshake), to_data, round_trip });
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
