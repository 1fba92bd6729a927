//! Drives: what is drawn is what the parameters say, and what a trace of it carries.

use std::time::Duration;

use crate::common::fates;
use fault::Explain;
use linkmodel::{Drive, Handover, Level, LinkConfig, Queue, RateSource, State, Stretch, mix};
use proptest::prelude::*;
use units::{CountedBytes, Delay, Rate};

fn rate(kbit: u64) -> Rate {
    Rate::new(kbit * 1000, CountedBytes::Ip).unwrap()
}

fn millis(millis: u64) -> Delay {
    Duration::from_millis(millis).into()
}

fn seconds(stretch: &Stretch) -> f64 {
    (stretch.until - stretch.from).as_secs_f64()
}

fn drive() -> impl Strategy<Value = Drive> {
    let level = || {
        (100u64..20_000, 50u64..5_000, 100u64..4_000).prop_map(|(down, up, stay)| Level {
            down: rate(down),
            up: rate(up),
            stay: millis(stay),
        })
    };
    let handover =
        (1_000u64..20_000, 0u64..200, 0u64..200).prop_map(|(every, shortest, more)| Handover {
            every: millis(every),
            shortest: millis(shortest),
            longest: millis(shortest + more),
        });
    (level(), level(), handover, 1u64..30_000).prop_map(|(good, poor, handover, length)| Drive {
        good,
        poor,
        handover,
        length: millis(length),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stretches_cover_the_drive_and_traces_have_their_capacity(drive in drive(), seed: u64) {
        let stretches = drive.stretches(seed).unwrap();
        let length = drive.length.duration();
        prop_assert_eq!(stretches.first().map(|s| s.from), Some(Duration::ZERO));
        prop_assert_eq!(stretches.last().map(|s| s.until), Some(length));
        for pair in stretches.windows(2) {
            prop_assert_eq!(pair[0].until, pair[1].from);
            prop_assert!(pair[0].state != pair[1].state);
        }
        // Outages are as long as they may be; the drive's ends may cut one.
        let inner = stretches.iter().filter(|s| s.from > Duration::ZERO && s.until < length);
        for down in inner.filter(|stretch| stretch.state == State::Down) {
            let long = down.until - down.from;
            prop_assert!(long >= drive.handover.shortest.duration());
            prop_assert!(long <= drive.handover.longest.duration());
        }
        let handovers = stretches.iter().filter(|s| s.state == State::Down).count() as u32;
        // Beginnings are between half and one and a half of the mean apart.
        prop_assert!(handovers <= (length * 2).div_duration_f64(drive.handover.every.duration()) as u32 + 1);
        // The bytes of a trace are those of its stretches, to a packet, and the one at the end.
        let capacity = drive.capacity(seed).unwrap();
        for (trace, rate) in [(&capacity.down, (|l| l.down) as fn(&Level) -> Rate), (&capacity.up, |l| l.up)] {
            let bits = |stretch: &Stretch| match stretch.state {
                State::Good => rate(&drive.good).bits_per_second() as f64 * seconds(stretch),
                State::Poor => rate(&drive.poor).bits_per_second() as f64 * seconds(stretch),
                State::Down => 0.0,
            };
            let packets = stretches.iter().map(bits).sum::<f64>() / 12_000.0;
            let counted = trace.millis().len() as f64;
            prop_assert!(counted > packets - 1.001 && counted < packets + 1.001, "{} of {}", counted, packets);
            prop_assert_eq!(trace.period(), length);
            // Nothing is sent in an outage.
            for down in stretches.iter().filter(|s| s.state == State::Down && s.until < length) {
                let within = |at: &&u64| {
                    let at = Duration::from_millis(**at);
                    at > down.from && at <= down.until
                };
                prop_assert_eq!(trace.millis().iter().filter(within).count(), 0);
            }
        }
        prop_assert_eq!(drive.capacity(seed).unwrap(), capacity);
    }
}

/// Hundreds of drives: mean capacity, time in each state and outages are what the parameters say. The
/// seeds are fixed, so that this is a fact and no chance.
#[test]
fn many_drives_are_what_the_parameters_say() {
    let bus = Drive::wibro_bus();
    let drives = 300u32;
    let (mut down, mut up) = (0.0, 0.0);
    let (mut stays, mut outages) = (Vec::new(), Vec::new());
    for number in 0..drives {
        let seed = mix(7, u64::from(number));
        let capacity = bus.capacity(seed).unwrap();
        down += capacity.down.mean() / f64::from(drives);
        up += capacity.up.mean() / f64::from(drives);
        let stretches = bus.stretches(seed).unwrap();
        outages.extend(stretches.iter().filter(|s| s.state == State::Down).map(seconds));
        let good: f64 = stretches.iter().filter(|s| s.state == State::Good).map(seconds).sum();
        stays.push(good / 600.0);
    }
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.02;
    let (mean_down, mean_up) = bus.mean();
    assert!(near(down, mean_down) && near(up, mean_up), "{down} {mean_down}, {up} {mean_up}");
    // (3000 + 512) / 2 kbit/s, less 1.525 s of each minute.
    assert!((mean_down - 1_711_368.3).abs() < 1.0, "{mean_down}");
    // One outage per minute, from 50 ms to 3 s.
    let per_drive = outages.len() as f64 / f64::from(drives);
    assert!(near(per_drive, 10.0), "{per_drive}");
    let mean = outages.iter().sum::<f64>() / outages.len() as f64;
    assert!(near(mean, 1.525), "{mean}");
    let good = stays.iter().sum::<f64>() / stays.len() as f64;
    assert!((good / (0.5 * (1.0 - 1.525 / 60.0)) - 1.0).abs() < 0.03, "{good}");
}

/// The fading forgets its state as the documentation of the bus says: to 1/e within half of the mean stay.
#[test]
fn the_fading_forgets_its_state() {
    let still = Drive {
        handover: Handover { every: millis(3_600_000), shortest: millis(0), longest: millis(0) },
        ..Drive::wibro_bus()
    };
    let (mut same, mut pairs) = (0u32, 0u32);
    for number in 0..300 {
        let stretches = still.stretches(mix(11, number)).unwrap();
        let state = |at: Duration| stretches.iter().find(|s| at < s.until).map(|s| s.state);
        for second in 0..590 {
            let at = Duration::from_secs(second);
            pairs += 1;
            same += u32::from(state(at) == state(at + Duration::from_millis(6_800)));
        }
    }
    // P(same) = (1 + correlation) / 2.
    let correlation = 2.0 * f64::from(same) / f64::from(pairs) - 1.0;
    assert!((correlation - (-1f64).exp()).abs() < 0.03, "{correlation}");
}

#[test]
fn frames_cross_a_drive_at_exact_times() {
    // 12 Mbit/s: a packet per millisecond, but for the outage.
    let level = Level { down: rate(12_000), up: rate(1_200), stay: millis(10) };
    let drive = Drive {
        good: level,
        poor: level,
        handover: Handover { every: millis(60), shortest: millis(20), longest: millis(20) },
        length: millis(50),
    };
    let down = |seed| {
        let stretches = drive.stretches(seed).unwrap();
        let down: Vec<_> = stretches.into_iter().filter(|s| s.state == State::Down).collect();
        match down.as_slice() {
            [one] if one.from > Duration::from_millis(5) && one.until < drive.length.duration() => {
                Some((one.from.as_millis() as u64, one.until.as_millis() as u64))
            }
            _ => None,
        }
    };
    let (seed, (from, until)) = (0..).find_map(|seed| Some((seed, down(seed)?))).unwrap();
    assert_eq!(until - from, 20);
    let capacity = drive.capacity(seed).unwrap();
    let link = |phase| LinkConfig {
        delay: millis(3),
        rate: Some(RateSource::Trace(capacity.down.clone().begun_at(Duration::from_millis(phase)))),
        queue: Queue::Unlimited,
        ..LinkConfig::default()
    };
    // Frame n leaves in millisecond n; the one whose turn comes in the outage when that is over.
    let last = from + 2;
    let schedule = vec![(0, 1514); usize::try_from(last).unwrap()];
    let expected: Vec<_> =
        (1..=last).map(|n| Ok((if n > from { n + 20 } else { n } + 3) * 1000)).collect();
    assert_eq!(fates(&link(0), 1, &schedule), expected);
    // Begun two milliseconds before the outage, the third frame waits for its end.
    let schedule = [(0, 1514); 3];
    assert_eq!(fates(&link(from - 2), 1, &schedule), [Ok(4_000), Ok(5_000), Ok(26_000)]);
}

#[test]
fn a_drive_that_cannot_be_is_told_so() {
    let bus = Drive::wibro_bus();
    let ethernet = Rate::new(1000, CountedBytes::Ethernet).unwrap();
    for (wrong, field) in [
        (Drive { length: millis(0), ..bus }, "length"),
        (Drive { length: Duration::from_micros(1500).into(), ..bus }, "length"),
        (Drive { length: millis(4_000_000), ..bus }, "length"),
        (Drive { good: Level { stay: millis(1), ..bus.good }, ..bus }, "good.stay"),
        (Drive { poor: Level { up: ethernet, ..bus.poor }, ..bus }, "poor.up"),
        (Drive { good: Level { down: rate(1_000_000), ..bus.good }, ..bus }, "good.down"),
        (
            Drive { handover: Handover { every: millis(1), ..bus.handover }, ..bus },
            "handover.every",
        ),
        (
            Drive { handover: Handover { longest: millis(30_000), ..bus.handover }, ..bus },
            "handover.longest",
        ),
        (
            Drive { handover: Handover { longest: millis(20), ..bus.handover }, ..bus },
            "handover.longest",
        ),
    ] {
        let error = wrong.capacity(1).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.remedy().is_some());
    }
}
