//! Fates at exact virtual times, computed by hand.

use std::time::Duration;

use crate::common::{Token, config, fates, poll};
use fault::Explain;
use linkmodel::{DELAY_LINE_FRAMES, DropCause, Frame, Link, LinkConfig, Output, Path};
use units::Time;

const LOST: Result<u64, DropCause> = Err(DropCause::Outage);
const FULL: Result<u64, DropCause> = Err(DropCause::QueueFull);

#[test]
fn a_perfect_link_delivers_at_once() {
    assert_eq!(fates(&LinkConfig::default(), 1, &[(7, 1000), (7, 0)]), [Ok(7), Ok(7)]);
}

#[test]
fn a_frame_takes_its_time_at_the_rate_and_then_the_delay() {
    // 1000 bytes at 1 Mbit/s take 8 ms.
    let link = config(
        r#"delay = "10ms"
        rate = "1mbit""#,
    );
    let schedule = [(0, 1000), (0, 1000), (3_000, 500), (40_000, 1000)];
    assert_eq!(fates(&link, 1, &schedule), [Ok(18_000), Ok(26_000), Ok(30_000), Ok(58_000)]);
}

#[test]
fn a_rate_counts_the_bytes_it_says() {
    for (rate, due) in [("1mbit", 12_112), ("1mbit/ip", 12_000), ("1mbit/wire", 12_304)] {
        let link = config(&format!("rate = \"{rate}\""));
        assert_eq!(fates(&link, 1, &[(0, 1514)]), [Ok(due)], "{rate}");
    }
}

#[test]
fn drop_tail_in_packets() {
    // One is being sent, one waits, so the third finds no room. At 8 ms the second begins to be
    // sent: room for a fourth.
    let link = config(
        r#"rate = "1mbit"
        queue = { packets = 1 }"#,
    );
    let schedule = [(0, 1000), (0, 1000), (7_999, 1000), (8_000, 1000)];
    assert_eq!(fates(&link, 1, &schedule), [Ok(8_000), Ok(16_000), FULL, Ok(24_000)]);
}

#[test]
fn drop_tail_in_bytes() {
    // 1600 bytes wait at most: 1000 and 600, but not one byte more.
    let link = config(
        r#"rate = "1mbit"
        queue = { bytes = "1600B" }"#,
    );
    let schedule = [(0, 1000), (0, 1000), (0, 601), (0, 600), (0, 1)];
    let expected = [Ok(8_000), Ok(16_000), FULL, Ok(20_800), FULL];
    assert_eq!(fates(&link, 1, &schedule), expected);
}

#[test]
fn an_unlimited_queue_has_its_ceiling() {
    let link = config(
        r#"rate = "1bit"
        queue = "unlimited""#,
    );
    let schedule = vec![(0, 1); DELAY_LINE_FRAMES + 2];
    let fates = fates(&link, 1, &schedule);
    let dropped = fates.iter().filter(|fate| fate.is_err()).count();
    assert_eq!((dropped, fates.last()), (1, Some(&FULL)));
}

#[test]
fn codel_drops_from_a_standing_queue_by_its_control_law() {
    // Twice as much as 10 Mbit/s carries: a frame each 0.4 ms, sent in 0.8 ms. The frame that
    // leaves at 10.4 ms waited 5.2 ms, the first above 5 ms; 100 ms later the first drop, then
    // 100/sqrt(n) ms apart, each at the next departure: 210.4, 281.1, 338.8, 388.8, 433.6.
    let config = config(
        r#"rate = "10mbit"
        queue = { codel = { packets = 10000 } }"#,
    );
    let mut link = Link::new(config, 1).unwrap();
    let mut dropped_at = Vec::new();
    for number in 0..1100 {
        let now = Time::from_micros(number as u64 * 400);
        link.handle_frame(now, Token { number, len: 1000 }).unwrap();
        for (_, fate) in poll(&mut link, now) {
            if fate.is_err() {
                assert_eq!(fate, Err(DropCause::Codel));
                dropped_at.push(now.as_nanos() / 1000);
            }
        }
    }
    assert_eq!(dropped_at, [110_400, 210_400, 281_600, 339_200, 389_600, 433_600]);
    assert_eq!(link.counters().dropped.codel.frames, 6);
}

#[test]
fn an_opportunity_of_a_trace_delivers_1500_bytes_of_ip() {
    let link = config(
        r#"delay = "5ms"
        rate = { trace = [1, 1, 3, 10] }"#,
    );
    // Full-sized frames: one an opportunity; after 10 ms the trace repeats.
    let fates_of_six = fates(&link, 1, &[(0, 1514); 6]);
    let expected = [6_000, 6_000, 8_000, 15_000, 16_000, 16_000].map(Ok);
    assert_eq!(fates_of_six, expected);
    // 15 packets of 100 bytes fill the first opportunity, the sixteenth takes the second.
    let small = fates(&link, 1, &[(0, 114); 31]);
    assert!(small[..30].iter().all(|fate| *fate == Ok(6_000)), "{small:?}");
    assert_eq!(small[30], Ok(8_000));
}

#[test]
fn what_an_opportunity_has_left_goes_to_the_next_frame_if_it_waits() {
    let link = config("rate = { trace = [2, 4, 6, 8] }");
    // 2000 bytes need two opportunities and leave 1000 bytes, which the next frame takes.
    let schedule = [(0, 2014), (0, 1014), (0, 1514)];
    assert_eq!(fates(&link, 1, &schedule), [Ok(4_000), Ok(4_000), Ok(6_000)]);
    // A frame that comes when the opportunity is passing misses it.
    let schedule = [(0, 114), (2_000, 114), (3_999, 114)];
    assert_eq!(fates(&link, 1, &schedule), [Ok(2_000), Ok(4_000), Ok(4_000)]);
}

#[test]
fn an_unused_opportunity_is_lost() {
    let link = config("rate = { trace = [2, 4, 100] }");
    assert_eq!(fates(&link, 1, &[(5_000, 1514), (5_000, 114)]), [Ok(100_000), Ok(102_000)]);
}

#[test]
fn frames_wait_for_the_end_of_an_outage() {
    let link = config(
        r#"delay = "1ms"
        outages = [{ start = "5ms", duration = "5ms" }]"#,
    );
    let schedule = [(4_999, 10), (5_000, 10), (7_000, 10), (10_000, 10)];
    let expected = [Ok(5_999), Ok(11_000), Ok(11_000), Ok(11_000)];
    assert_eq!(fates(&link, 1, &schedule), expected);
}

#[test]
fn a_frame_whose_sending_has_begun_is_finished_in_an_outage() {
    let link = config(
        r#"rate = "1mbit"
        outages = [{ start = "5ms", duration = "20ms" }]"#,
    );
    assert_eq!(fates(&link, 1, &[(0, 1000), (0, 1000)]), [Ok(8_000), Ok(33_000)]);
}

#[test]
fn frames_are_lost_in_an_outage_that_the_sender_does_not_see() {
    let link = config(
        r#"rate = "1mbit"
        outages = [{ start = "10ms", duration = "10ms", frames = "drop" }]"#,
    );
    // Last bits leave at 8, 16 and 24 ms.
    assert_eq!(fates(&link, 1, &[(0, 1000); 3]), [Ok(8_000), LOST, Ok(24_000)]);
}

#[test]
fn an_outage_repeats() {
    let link = config(r#"outages = [{ start = "2ms", duration = "1ms", every = "10ms" }]"#);
    let schedule = [(1_000, 10), (2_500, 10), (3_000, 10), (12_000, 10), (92_999, 10)];
    let expected = [Ok(1_000), Ok(3_000), Ok(3_000), Ok(13_000), Ok(93_000)];
    assert_eq!(fates(&link, 1, &schedule), expected);
}

#[test]
fn outages_that_touch_are_one() {
    let link = config(
        r#"outages = [
        { start = "7ms", duration = "1ms" },
        { start = "5ms", duration = "1ms", every = "10ms" },
        { start = "6ms", duration = "1ms" },
    ]"#,
    );
    assert_eq!(fates(&link, 1, &[(5_000, 10)]), [Ok(8_000)]);
}

#[test]
fn opportunities_in_an_outage_are_lost() {
    let link = config(
        r#"rate = { trace = [2, 4, 6] }
        outages = [{ start = "1ms", duration = "4ms" }]"#,
    );
    assert_eq!(fates(&link, 1, &[(0, 1514), (0, 1514)]), [Ok(6_000), Ok(8_000)]);
}

#[test]
fn jitter_keeps_the_order_unless_told() {
    let text = r#"delay = "10ms"
        jitter = { uniform = "10ms" }"#;
    let schedule: Vec<(u64, usize)> = (0..200).map(|at| (at * 100, 10)).collect();
    let ordered = fates(&config(text), 5, &schedule);
    assert!(ordered.windows(2).all(|pair| pair[0] <= pair[1]));
    let free = fates(&config(&format!("{text}\njitter_may_reorder = true")), 5, &schedule);
    assert!(free.windows(2).any(|pair| pair[0] > pair[1]));
    // A frame is held until the one before it: due = max(own due, last due).
    let mut last = Ok(0);
    for (held, own) in ordered.iter().zip(&free) {
        last = last.max(*own);
        assert_eq!(*held, last);
    }
}

#[test]
fn a_reordered_frame_overtakes() {
    let mut config = config(r#"delay = "10ms""#);
    let mut link = Link::new(config.clone(), 1).unwrap();
    link.handle_frame(Time::ZERO, Token { number: 0, len: 10 }).unwrap();
    config.reorder.probability = "100%".parse().unwrap();
    config.reorder.delay = "2ms".parse().unwrap();
    link.set_config(Time::from_millis(1), config).unwrap();
    link.handle_frame(Time::from_millis(1), Token { number: 1, len: 10 }).unwrap();
    assert_eq!(link.next_event(), Some(Time::from_millis(3)));
    assert_eq!(poll(&mut link, Time::MAX), [(1, Ok(3_000)), (0, Ok(10_000))]);
    assert_eq!(link.counters().reordered, 1);
}

#[test]
fn a_new_configuration_leaves_frames_in_flight_their_times() {
    let slow = config(
        r#"delay = "50ms"
        rate = "1mbit""#,
    );
    let mut link = Link::new(slow, 1).unwrap();
    for number in 0..3 {
        link.handle_frame(Time::ZERO, Token { number, len: 1000 }).unwrap();
    }
    // At 4 ms the first is being sent, two wait; then it becomes ten times as fast.
    let fast = config(
        r#"delay = "1ms"
        rate = "10mbit"
        queue = { packets = 1 }"#,
    );
    link.set_config(Time::from_millis(4), fast).unwrap();
    assert_eq!(link.in_flight(), 3);
    // The first keeps its due time; the others are held behind it.
    let expected = [(0, Ok(58_000)), (1, Ok(58_000)), (2, Ok(58_000))];
    assert_eq!(poll(&mut link, Time::MAX), expected);
}

#[test]
fn a_wrong_configuration_changes_nothing() {
    let good = config(r#"delay = "5ms""#);
    let mut link: Link<Token> = Link::new(good.clone(), 1).unwrap();
    let wrong = config("queue = { packets = 0 }");
    let error = link.set_config(Time::ZERO, wrong).unwrap_err();
    assert_eq!(error.to_string(), "`queue.packets` is 0");
    assert_eq!(error.remedy().as_deref(), Some("give 1 to 262144"));
    assert_eq!(link.config(), &good);
}

#[test]
fn a_duplicate_comes_right_after_its_original() {
    let config = config(
        r#"delay = "5ms"
        duplicate = "100%""#,
    );
    let mut link = Link::new(config, 1).unwrap();
    link.handle_frame(Time::ZERO, Token { number: 0, len: 10 }).unwrap();
    link.handle_frame(Time::ZERO, Token { number: 1, len: 10 }).unwrap();
    let numbers: Vec<usize> = poll(&mut link, Time::MAX).iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, [0, 0, 1, 1]);
    assert_eq!(link.counters().duplicated.frames, 2);
}

#[test]
fn corruption_inverts_one_bit_behind_the_ethernet_header() {
    let config = config(r#"corrupt = "100%""#);
    let mut link = Link::new(config, 9).unwrap();
    for round in 0..500 {
        let len = 15 + round % 5;
        link.handle_frame(Time::ZERO, vec![0u8; len]).unwrap();
        let Some(Output::Deliver { frame, .. }) = link.poll(Time::ZERO) else { panic!() };
        assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        assert!(frame[..14].iter().all(|byte| *byte == 0));
    }
    link.handle_frame(Time::ZERO, Vec::new()).unwrap();
    assert_eq!(link.counters().corrupted, 500);
}

#[test]
fn the_delay_line_is_bounded_in_frames() {
    let mut link = Link::new(config(r#"delay = "1s""#), 1).unwrap();
    for number in 0..DELAY_LINE_FRAMES + 3 {
        link.handle_frame(Time::ZERO, Token { number, len: 1 }).unwrap();
    }
    assert_eq!(link.in_flight(), DELAY_LINE_FRAMES);
    assert_eq!(link.counters().dropped.delay_line_full.frames, 3);
    let first = poll(&mut link, Time::ZERO);
    assert_eq!(first[0], (DELAY_LINE_FRAMES, Err(DropCause::DelayLineFull)));
}

#[test]
fn the_delay_line_is_bounded_in_bytes() {
    let link = config(r#"delay = "1s""#);
    let expected = [Ok(1_000_000), Ok(1_000_000), Err(DropCause::DelayLineFull)];
    assert_eq!(fates(&link, 1, &[(0, 256 << 20); 3]), expected);
}

#[test]
fn a_late_poll_makes_nothing_late() {
    let link = config(
        r#"rate = "1mbit"
        delay = "3ms""#,
    );
    let schedule = [(0, 1000), (500, 1000), (900, 1000)];
    let at_the_end = fates(&link, 1, &schedule);
    let mut link = Link::new(link, 1).unwrap();
    let mut often = Vec::new();
    for micros in 0..40_000 {
        let now = Time::from_micros(micros);
        for (number, (at, len)) in schedule.iter().enumerate() {
            if *at == micros {
                link.handle_frame(now, Token { number, len: *len }).unwrap();
            }
        }
        often.extend(poll(&mut link, now).into_iter().map(|(_, fate)| fate));
    }
    assert_eq!(often, at_the_end);
}

#[test]
fn the_same_seed_gives_the_same_fates_and_another_gives_others() {
    let text = r#"delay = "10ms"
        loss = "10%"
        duplicate = "5%"
        jitter = { normal = "3ms" }
        reorder = "2%""#;
    let schedule: Vec<(u64, usize)> = (0..500).map(|at| (at * 100, 100)).collect();
    let first = fates(&config(text), 7, &schedule);
    assert_eq!(first, fates(&config(text), 7, &schedule));
    assert_ne!(first, fates(&config(text), 8, &schedule));
}

#[test]
fn changing_the_jitter_does_not_change_which_frames_are_lost() {
    let schedule: Vec<(u64, usize)> = (0..500).map(|at| (at * 100, 100)).collect();
    let lost = |text: &str| -> Vec<bool> {
        fates(&config(text), 7, &schedule).iter().map(Result::is_err).collect()
    };
    let without = lost(r#"loss = "10%""#);
    assert_eq!(without, lost("loss = \"10%\"\njitter = { pareto = \"3ms\" }"));
    assert!(without.iter().any(|lost| *lost));
}

#[test]
fn corruption_does_not_change_which_frames_are_duplicated() {
    let numbers = |text: &str| -> Vec<usize> {
        let mut link = Link::new(config(text), 7).unwrap();
        for number in 0..200 {
            link.handle_frame(Time::ZERO, Token { number, len: 100 }).unwrap();
        }
        poll(&mut link, Time::ZERO).iter().map(|(number, _)| *number).collect()
    };
    let without = numbers("duplicate = \"50%\"");
    assert_eq!(without, numbers("duplicate = \"50%\"\ncorrupt = \"50%\""));
    assert!((250..350).contains(&without.len()));
}

#[test]
fn a_path_opens_two_links_with_their_own_seeds() {
    let path = Path::symmetric("20ms".parse().unwrap())
        .with_rate("10mbit/ip".parse::<units::Rate>().unwrap())
        .with_loss("50%".parse::<units::Probability>().unwrap());
    assert_eq!(path.round_trip(), Duration::from_millis(20).into());
    let (mut forward, mut backward) = path.open(Time::ZERO, 3).unwrap();
    let lost = |link: &mut Link<Token>| -> Vec<bool> {
        let frame = |number| Token { number, len: 10 };
        (0..64).map(|number| link.handle_frame(Time::ZERO, frame(number)).is_err()).collect()
    };
    assert_ne!(lost(&mut forward), lost(&mut backward));
}

#[test]
fn vectors_are_frames() {
    let mut frame = vec![0u8; 2];
    frame.flip_bit(0);
    frame.flip_bit(15);
    assert_eq!(frame, [0x80, 0x01]);
}

#[test]
fn outages_in_step_with_a_trace_keep_a_frame_waiting_and_nobody_else() {
    // Each of the trace's opportunities, every 10 ms, lies in an outage.
    let link = config(
        r#"rate = { trace = [10] }
        outages = [{ start = "9ms", duration = "2ms", every = "10ms" }]"#,
    );
    let mut link = Link::new(link, 1).unwrap();
    assert!(link.handle_frame(Time::ZERO, Token { number: 0, len: 1000 }).is_ok());
    let year = Duration::from_secs(365 * 86_400);
    assert!(link.next_event().is_some_and(|event| event > Time::ZERO + 99 * year));
    assert_eq!(poll(&mut link, Time::ZERO + year), []);
}

#[test]
fn a_restart_begins_the_trace_and_the_outages_anew() {
    let config = config(
        r#"rate = { trace = [2, 4, 6, 100], phase = "3ms" }
        outages = [{ start = "40ms", duration = "1ms" }]"#,
    );
    let mut link = Link::new(config, 1).unwrap();
    let send = |link: &mut Link<Token>, at| {
        let now = Time::from_micros(at);
        link.handle_frame(now, Token { number: 0, len: 1514 }).unwrap();
        let due = link.next_event().unwrap();
        poll(link, due).into_iter().map(|(_, fate)| fate).collect::<Vec<_>>()
    };
    // Begun at 3 ms of its period, its next opportunities are 1, 3 and 97 ms later.
    assert_eq!(send(&mut link, 0), [Ok(1_000)]);
    assert_eq!(send(&mut link, 2_000), [Ok(3_000)]);
    link.restart(Time::from_micros(50_000));
    assert_eq!(send(&mut link, 50_500), [Ok(51_000)]);
    assert_eq!(send(&mut link, 52_000), [Ok(53_000)]);
    assert_eq!(send(&mut link, 54_000), [Ok(147_000)]);
}

#[test]
fn frames_wait_until_they_begin_to_be_sent_however_long_they_then_travel() {
    let link = config(
        r#"delay = "100ms"
        rate = "1mbit""#,
    );
    let mut link = Link::new(link, 1).unwrap();
    let at = Time::from_millis;
    assert_eq!(link.waits_until(at(1)), Time::ZERO);
    // The first waits for nobody; 1000 bytes take 8 ms.
    for number in 0..3 {
        link.handle_frame(at(2), Token { number, len: 1000 }).unwrap();
    }
    assert_eq!(poll(&mut link, at(5)), []);
    // The second begins at 10 ms, the third at 18.
    assert_eq!(link.waits_until(at(5)), at(18));
    assert_eq!(link.waits_until(at(12)), at(18));
    // Nobody looked for a while, and nothing is due yet.
    assert_eq!(poll(&mut link, at(60)), []);
    assert_eq!(link.waits_until(at(60)), at(18));
    let fates = [(0, Ok(110_000)), (1, Ok(118_000)), (2, Ok(126_000))];
    assert_eq!(poll(&mut link, at(200)), fates);
    assert_eq!(link.waits_until(at(200)), at(18));
}

/// What is said while frames wait is what came of them.
#[test]
fn until_when_frames_wait_is_known_ahead() {
    let links = [
        "rate = \"1mbit\"",
        "rate = { trace = [3, 5, 9, 20, 30, 31] }",
        "rate = \"1mbit\"\noutages = [{ start = \"5ms\", duration = \"5ms\" }]",
    ];
    let at = Time::from_millis;
    for text in links {
        for frames in 1..6 {
            let mut link = Link::new(config(text), 1).unwrap();
            for number in 0..frames {
                link.handle_frame(at(2), Token { number, len: 1000 }).unwrap();
            }
            let said = link.waits_until(at(2));
            poll(&mut link, at(500));
            assert_eq!(said, link.waits_until(at(500)), "{text}: {frames}");
        }
    }
}
