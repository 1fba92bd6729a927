//! When each frame leaves.

use std::time::Duration;

use units::{Rate, Time};

use crate::Sizes;

/// How much is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Frames per second, equally spaced.
    Frames(u64),
    /// A rate: each frame takes the time that a link of this rate would.
    Rate(Rate),
    /// As fast as can be: frames without a gap (RFC 2544 §26.4).
    BackToBack,
}

/// The frames of one direction of a trial. The time of a frame comes of its number alone, so that nothing adds up:
/// whoever is late does not make the next one late.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// When the first frame leaves.
    begin: Time,
    load: Load,
    sizes: Sizes,
    frames: u64,
}

const SECOND: u128 = 1_000_000_000;

impl Schedule {
    /// So many frames from `begin` on.
    #[must_use]
    pub const fn new(begin: Time, load: Load, sizes: Sizes, frames: u64) -> Self {
        Schedule { begin, load, sizes, frames }
    }

    /// The frames that leave within a duration.
    #[must_use]
    pub fn lasting(begin: Time, load: Load, sizes: Sizes, duration: Duration) -> Self {
        let mut schedule = Schedule { begin, load, sizes, frames: u64::MAX };
        let end = begin + duration;
        // The first number whose time is at or after the end.
        let (mut low, mut high) = (0u64, u64::from(u32::MAX));
        while low < high {
            let middle = low.midpoint(high);
            match schedule.time_of(middle) {
                time if time < end && load != Load::BackToBack => low = middle.saturating_add(1),
                _ => high = middle,
            }
        }
        schedule.frames = low;
        schedule
    }

    /// How many frames.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }

    /// Size of a frame, in bytes.
    #[must_use]
    pub fn size_of(&self, number: u64) -> usize {
        self.sizes.of(number)
    }

    /// When a frame leaves, rounded down to 1 ns.
    #[must_use]
    pub fn time_of(&self, number: u64) -> Time {
        let nanos = match self.load {
            Load::Frames(per_second) => {
                (u128::from(number) * SECOND).checked_div(per_second.into()).unwrap_or(u128::MAX)
            }
            Load::Rate(rate) => {
                let bits = self.counted_before(number, rate) * 8;
                (bits * SECOND).checked_div(rate.bits_per_second().into()).unwrap_or(u128::MAX)
            }
            Load::BackToBack => 0,
        };
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Time::from_nanos(self.begin.as_nanos().saturating_add(nanos))
    }

    /// When the last frame has left, if it takes as long as others do.
    #[must_use]
    pub fn end(&self) -> Time {
        self.time_of(self.frames)
    }

    /// Bytes of the frames before a number, as the rate counts them.
    fn counted_before(&self, number: u64, rate: Rate) -> u128 {
        let counted = rate.counted();
        let per_round = self.sizes.round();
        let of_round: u128 =
            (0..per_round).map(|at| u128::from(counted.of_frame(self.sizes.of(at)))).sum();
        let (rounds, rest) = (number / per_round, number % per_round);
        let of_rest: u128 =
            (0..rest).map(|at| u128::from(counted.of_frame(self.sizes.of(at)))).sum();
        of_round * u128::from(rounds) + of_rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGIN: Time = Time::from_nanos(5_000);

    proptest! {
        /// A million frames later the time is still exact.
        #[test]
        fn spacing_is_exact_however_long_it_lasts(per_second in 1u64..2_000_000, seconds in 0u64..3600) {
            let schedule = Schedule::new(BEGIN, Load::Frames(per_second), Sizes::Fixed(1000), u64::MAX);
            let time = schedule.time_of(per_second * seconds);
            prop_assert_eq!(time, BEGIN + Duration::from_secs(seconds));
        }

        #[test]
        fn a_duration_has_the_frames_that_leave_within_it(
            per_second in 1u64..100_000, millis in 0u64..5_000,
        ) {
            let duration = Duration::from_millis(millis);
            let schedule = Schedule::lasting(BEGIN, Load::Frames(per_second), Sizes::Imix, duration);
            let frames = schedule.frames();
            prop_assert!(schedule.time_of(frames) >= BEGIN + duration);
            prop_assert!(frames == 0 || schedule.time_of(frames - 1) < BEGIN + duration);
            prop_assert_eq!(frames, (u128::from(per_second) * u128::from(millis)).div_ceil(1000) as u64);
        }
    }

    #[test]
    fn a_rate_spaces_frames_as_a_link_would() {
        let rate: Rate = "8mbit".parse().unwrap();
        let schedule = Schedule::new(BEGIN, Load::Rate(rate), Sizes::Fixed(1000), 10);
        let gap = |number| schedule.time_of(number).saturating_since(BEGIN);
        assert_eq!((gap(1), gap(9)), (Duration::from_millis(1), Duration::from_millis(9)));
        // With a mix each frame takes its own time.
        let schedule = Schedule::new(BEGIN, Load::Rate(rate), Sizes::Imix, 24);
        let bytes = |count| (0..count).map(|number| Sizes::Imix.of(number) as u64).sum::<u64>();
        for number in 0..24 {
            let since = schedule.time_of(number).saturating_since(BEGIN);
            assert_eq!(since, Duration::from_micros(bytes(number)), "frame {number}");
        }
        // On the medium there is more than the frame.
        let rate: Rate = "8mbit/wire".parse().unwrap();
        let schedule = Schedule::new(BEGIN, Load::Rate(rate), Sizes::Fixed(1000), 10);
        assert_eq!(schedule.time_of(1).saturating_since(BEGIN), Duration::from_micros(1024));
    }

    #[test]
    fn back_to_back_frames_are_all_due_at_once() {
        let schedule = Schedule::new(BEGIN, Load::BackToBack, Sizes::Fixed(1000), 10);
        assert_eq!((schedule.time_of(9), schedule.end()), (BEGIN, BEGIN));
    }
}
