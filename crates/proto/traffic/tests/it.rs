//! A tally against a stream whose fate is known.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use traffic::{Order, Probe, Tally};
use units::Time;

fn probe(number: u32, sent: Time) -> Probe {
    Probe { stream: 7, number, sent }
}

proptest! {
    /// Against a set of all numbers.
    #[test]
    fn each_frame_is_counted_as_what_it_is(numbers in prop::collection::vec(0u32..300, 0..400)) {
        let (mut tally, mut seen, mut highest) = (Tally::new(7), BTreeSet::new(), None);
        let (mut reordered, mut duplicates) = (0, 0);
        for (at, number) in numbers.iter().enumerate() {
            let expected = if seen.contains(number) {
                duplicates += 1;
                Order::Duplicate
            } else if highest > Some(*number) {
                reordered += 1;
                Order::Reordered
            } else {
                Order::InOrder
            };
            let now = Time::from_micros(at as u64);
            prop_assert_eq!(tally.receive(now, &probe(*number, Time::ZERO), 100), Some(expected));
            seen.insert(*number);
            highest = highest.max(Some(*number));
        }
        prop_assert_eq!(tally.received(), seen.len() as u64);
        prop_assert_eq!((tally.reordered(), tally.duplicates()), (reordered, duplicates));
        prop_assert_eq!(tally.lost(300), 300 - seen.len() as u64);
        prop_assert_eq!(tally.bytes(), 100 * seen.len() as u64);
    }
}

#[test]
fn delays_and_the_longest_gap_are_told() {
    let mut tally = Tally::new(7);
    for number in 0..1000u32 {
        // Frames 400 to 599 are lost; each other takes 100 us, each hundredth 5 ms.
        if (400..600).contains(&number) {
            continue;
        }
        let sent = Time::from_millis(number.into());
        let delay = if number % 100 == 99 { 5_000 } else { 100 };
        tally.receive(sent + Duration::from_micros(delay), &probe(number, sent), 1000);
    }
    let delays = tally.delays().unwrap();
    let near = |told: Duration, micros: u64| {
        let exact = Duration::from_micros(micros).as_nanos() as f64;
        (told.as_nanos() as f64 / exact - 1.0).abs() < 0.002
    };
    assert!(near(delays.least, 100) && near(delays.median, 100), "{delays:?}");
    assert!(near(delays.longest, 5_000), "{delays:?}");
    assert_eq!((tally.received(), tally.lost(1000)), (800, 200));
    let gap = tally.longest_gap().unwrap();
    assert_eq!(gap.to, Time::from_millis(600) + Duration::from_micros(100));
    // From 399, which came at 404 ms, or from one of the frames that overtook it.
    assert_eq!(gap.duration(), Duration::from_micros(600_100 - 404_000));
}

#[test]
fn a_frame_from_long_ago_is_not_counted_and_another_stream_neither() {
    let mut tally = Tally::new(7);
    let now = Time::from_millis(1);
    tally.receive(now, &probe(200_000, Time::ZERO), 60);
    assert_eq!(tally.receive(now, &probe(1, Time::ZERO), 60), Some(Order::TooLate));
    let other = Probe { stream: 8, ..probe(200_001, Time::ZERO) };
    assert_eq!(tally.receive(now, &other, 60), None);
    assert_eq!((tally.received(), tally.foreign()), (1, 1));
    // After a leap nothing of before is remembered for the numbers' places.
    assert_eq!(
        tally.receive(now, &probe(200_000 - 65_000, Time::ZERO), 60),
        Some(Order::Reordered)
    );
}
