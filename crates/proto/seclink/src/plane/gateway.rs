//! A slow gateway: frames wait, and are dropped where too many do. In virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use units::{Rate, Time};

/// What a slow gateway is like.
///
/// The MACsec paper's Table 2 has an IPsec gateway whose delay rises from 344 us at 20 Mbit/s to 440 us at
/// 80 Mbit/s, and which loses frames beyond 100. A gateway that looks at its interface at intervals and then works
/// off what came behaves so: what comes in one interval waits for its end, and the more there is, the longer for
/// each other. Interval and latency of [`GatewayOptions::of`] are fitted to that table; the paper does not say
/// what the gateway was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayOptions {
    /// What it works off at most.
    pub rate: Rate,
    /// How often it looks for frames; zero: at once.
    pub interval: Duration,
    /// What it takes for a frame beside, whatever waits.
    pub latency: Duration,
    /// Frames that wait or are worked on at most.
    pub queue: usize,
}

impl GatewayOptions {
    /// A gateway of this rate, like the paper's.
    #[must_use]
    pub const fn of(rate: Rate) -> Self {
        GatewayOptions {
            rate,
            interval: Duration::from_micros(384),
            latency: Duration::from_micros(88),
            queue: 64,
        }
    }
}

/// A slow gateway's queue. Times that are told to it do not go back.
#[derive(Debug)]
pub struct Gateway {
    options: GatewayOptions,
    /// When the frames that wait will have been worked off; as many places as the queue has.
    waiting: VecDeque<Time>,
    /// When the last of them will.
    free_at: Time,
}

impl Gateway {
    /// A gateway that is idle.
    #[must_use]
    pub fn new(options: GatewayOptions) -> Self {
        let waiting = VecDeque::with_capacity(options.queue);
        Gateway { options, waiting, free_at: Time::ZERO }
    }

    /// A frame of `len` bytes comes at `now`: when it leaves; `None` if the queue is full and it is dropped.
    pub fn admit(&mut self, now: Time, len: usize) -> Option<Time> {
        while self.waiting.front().is_some_and(|done| *done <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() >= self.options.queue {
            return None;
        }
        let begin = next_look(now, self.options.interval).max(self.free_at);
        let done = begin + self.options.rate.time_to_send(len);
        self.free_at = done;
        self.waiting.push_back(done);
        Some(done + self.options.latency)
    }
}

/// The next multiple of the interval from `now` on.
fn next_look(now: Time, interval: Duration) -> Time {
    let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    match now.as_nanos().checked_next_multiple_of(interval) {
        Some(nanos) => Time::from_nanos(nanos),
        // An interval of zero, or the end of time.
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> Rate {
        "120mbit".parse().unwrap()
    }

    /// Mean delay and frames lost, of 20,000 frames of 1000 bytes at this rate.
    fn offered(gateway: &mut Gateway, megabits: u64) -> (Duration, u32) {
        let (mut lost, mut sum, mut passed) = (0, Duration::ZERO, 0);
        for number in 0..20_000u64 {
            let now = Time::from_nanos(1_000_000_000 + number * 8_000_000 / megabits);
            match gateway.admit(now, 1000) {
                Some(at) => {
                    sum += at.saturating_since(now);
                    passed += 1;
                }
                None => lost += 1,
            }
        }
        (sum / passed, lost)
    }

    #[test]
    fn delay_rises_as_in_the_papers_table_and_beyond_the_rate_frames_are_lost() {
        // Table 2 of the MACsec paper, in us; within a tenth.
        for (megabits, published) in [(20, 344), (40, 346), (60, 410), (80, 440)] {
            let (delay, lost) = offered(&mut Gateway::new(GatewayOptions::of(rate())), megabits);
            let delay = delay.as_micros() as i64;
            assert!((delay - published).abs() < published / 10, "{megabits}: {delay}");
            assert_eq!(lost, 0, "{megabits}");
        }
        // Of 150 Mbit/s a fifth, but for the first that fill the queue.
        let (_, lost) = offered(&mut Gateway::new(GatewayOptions::of(rate())), 150);
        assert!((3_900..=4_000).contains(&lost), "{lost}");
    }

    #[test]
    fn without_interval_and_latency_a_frame_waits_for_those_before_it() {
        let options = GatewayOptions {
            rate: "8mbit".parse().unwrap(),
            interval: Duration::ZERO,
            latency: Duration::ZERO,
            queue: 3,
        };
        let mut gateway = Gateway::new(options);
        let now = Time::from_millis(5);
        let out: Vec<_> = (0..4).map(|_| gateway.admit(now, 1000)).collect();
        let at = |millis| Some(Time::from_millis(millis));
        assert_eq!(out, [at(6), at(7), at(8), None]);
        // One has left.
        assert_eq!(gateway.admit(Time::from_millis(6), 1000), at(9));
        assert_eq!(gateway.admit(Time::from_millis(6), 1000), None);
    }

    #[test]
    fn frames_wait_for_the_next_look() {
        let options = GatewayOptions {
            interval: Duration::from_millis(2),
            latency: Duration::from_millis(1),
            ..GatewayOptions::of("8mbit".parse().unwrap())
        };
        let mut gateway = Gateway::new(options);
        let admitted = gateway.admit(Time::from_millis(3), 1000);
        assert_eq!(admitted, Some(Time::from_millis(4 + 1 + 1)));
    }
}
