use super::*;

const MSS: u64 = 1000;
const MS: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(100);

fn progress(delivered: u64, now: Time) -> Progress {
    Progress {
        now,
        delivered,
        in_flight: u64::MAX,
        limited: true,
        rtt: None,
        smoothed: Some(RTT),
        acknowledged: 0,
        sent: 0,
    }
}

/// Acknowledges a window, two segments at a time, in each of `rounds` round trips.
fn run(controller: &mut Controller, from: Time, rounds: u32) -> Time {
    let mut now = from;
    for _ in 0..rounds {
        let acks = controller.window() / (2 * MSS);
        for number in 0..acks {
            let at = now + RTT.mul_f64(number as f64 / acks as f64);
            controller.on_ack(&progress(2 * MSS, at));
        }
        now += RTT;
    }
    now
}

/// A controller whose window was `segments` when a loss came.
fn after_loss(algorithm: Congestion, segments: u64) -> Controller {
    let mut controller = Controller::new(algorithm, MSS);
    controller.window = segments * MSS;
    controller.on_congestion(controller.window);
    controller.leave_recovery();
    controller
}

#[test]
fn the_initial_window_is_ten_segments_within_the_bytes() {
    assert_eq!(initial_window(1460), 14_600);
    assert_eq!(initial_window(536), 5_360);
    assert_eq!(initial_window(8960), 17_920);
}

#[test]
fn reno_halves_and_adds_a_segment_in_a_round_trip() {
    let mut controller = after_loss(Congestion::NewReno, 40);
    assert_eq!(controller.window(), 20 * MSS);
    run(&mut controller, Time::ZERO, 10);
    let grown = controller.window() - 20 * MSS;
    assert!((9 * MSS..=10 * MSS).contains(&grown), "{grown}");
}

#[test]
fn cubic_keeps_seven_tenths_and_is_back_after_k() {
    // RFC 9438 §4.2: K = cbrt((W_max - 0.7 W_max) / 0.4)
    let mut controller = after_loss(Congestion::Cubic, 1000);
    assert_eq!(controller.window(), 700 * MSS);
    let k = (300.0_f64 / 0.4).cbrt();
    let now = run(&mut controller, Time::ZERO, (k / 0.1) as u32);
    assert!((980 * MSS..=1001 * MSS).contains(&controller.window()), "{}", controller.window());
    // The plateau, and then the convex part: 0.4 * 5^3 = 50 segments after 5 s
    run(&mut controller, now, 50);
    assert!((1045 * MSS..=1065 * MSS).contains(&controller.window()), "{}", controller.window());
}

#[test]
fn a_small_cubic_window_grows_as_reno_would() {
    // RFC 9438 §4.3: 9/17 of a segment in a round trip until what was lost is back, then a whole one
    let mut controller = after_loss(Congestion::Cubic, 20);
    assert_eq!(controller.window(), 14 * MSS);
    let now = run(&mut controller, Time::ZERO, 8);
    let grown = (controller.window() - 14 * MSS) as f64 / MSS as f64;
    assert!((3.4..=4.3).contains(&grown), "{grown}");
    let now = run(&mut controller, now, 5);
    let before = controller.window();
    run(&mut controller, now, 5);
    let grown = (controller.window() - before) as f64 / MSS as f64;
    assert!((4.4..=5.1).contains(&grown), "{grown}");
}

#[test]
fn growth_of_less_than_a_byte_is_not_lost() {
    let mut controller = after_loss(Congestion::Cubic, 10_000);
    let before = controller.window();
    for number in 0..7000 {
        controller.on_ack(&progress(MSS, Time::from_micros(number)));
    }
    assert!(controller.window() > before);
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    // RFC 9438 §4.7: the second loss comes before the first plateau
    let mut controller = after_loss(Congestion::Cubic, 1000);
    controller.on_congestion(controller.window);
    let Avoidance::Cubic(cubic) = &controller.avoidance else { panic!("not CUBIC") };
    assert!(format!("{cubic:?}").contains("max: 595.0"), "{cubic:?}");
    assert_eq!(controller.threshold() / MSS, 489); // 490, less what the binary fraction 0.7 lacks
}

#[test]
fn the_threshold_is_two_segments_at_least() {
    for algorithm in [Congestion::Cubic, Congestion::NewReno] {
        assert_eq!(after_loss(algorithm, 1).threshold(), 2 * MSS);
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for algorithm in [Congestion::Cubic, Congestion::NewReno] {
        let mut controller = after_loss(algorithm, 40);
        let window = controller.window();
        controller.on_ack(&Progress { limited: false, ..progress(MSS, Time::ZERO) });
        assert_eq!(controller.window(), window);
        let mut fresh = Controller::new(algorithm, MSS);
        let unused = Progress { limited: false, in_flight: MSS, ..progress(MSS, Time::ZERO) };
        fresh.on_ack(&unused);
        assert_eq!(fresh.window(), 10 * MSS);
    }
}

#[test]
fn a_timeout_leaves_a_segment_and_slow_start_to_the_threshold() {
    let mut controller = Controller::new(Congestion::Cubic, MSS);
    controller.window = 20 * MSS;
    controller.on_timeout(20 * MSS, true, 0);
    assert_eq!((controller.window(), controller.threshold()), (MSS, 14 * MSS));
    controller.on_timeout(20 * MSS, false, 0);
    assert_eq!(controller.threshold(), 14 * MSS);
    for _ in 0..13 {
        controller.on_ack(&progress(MSS, Time::ZERO));
    }
    assert_eq!(controller.window(), 14 * MSS);
}

#[test]
fn undoing_gives_back_window_and_threshold() {
    let mut controller = Controller::new(Congestion::Cubic, MSS);
    controller.window = 100 * MSS;
    let before = controller.clone();
    controller.on_timeout(100 * MSS, true, 0);
    controller.undo(&before);
    assert_eq!((controller.window(), controller.threshold()), (100 * MSS, u64::MAX));
}

#[test]
fn idle_time_is_no_time_to_grow() {
    // RFC 9438 §5.8
    let mut controller = after_loss(Congestion::Cubic, 100);
    let now = run(&mut controller, Time::ZERO, 2);
    let mut rested = controller.clone();
    rested.resume(Duration::from_secs(60));
    run(&mut controller, now, 3);
    run(&mut rested, now + Duration::from_secs(60), 3);
    assert_eq!(controller.window(), rested.window());
}

/// One round of slow start whose round-trip times are `rtt`.
fn slow_round(controller: &mut Controller, at: &mut u64, rtt: Duration) {
    let (first, window) = (*at, controller.window());
    *at += window;
    let segments = window / MSS;
    for number in 1..=segments {
        controller.on_ack(&Progress {
            rtt: Some(rtt),
            acknowledged: first + number * MSS,
            sent: first + window + 2 * number * MSS,
            limited: true,
            ..progress(MSS, Time::ZERO)
        });
    }
}

#[test]
fn hystart_leaves_slow_start_when_the_round_trip_grows() {
    // RFC 9406 §4.2: 100 ms and an eighth more begins conservative slow start
    let mut controller = Controller::new(Congestion::Cubic, MSS);
    let mut at = 0;
    for _ in 0..3 {
        slow_round(&mut controller, &mut at, 100 * MS);
    }
    assert_eq!(controller.window(), 80 * MSS);
    let mut rounds = 0;
    while controller.threshold() == u64::MAX {
        slow_round(&mut controller, &mut at, 113 * MS);
        rounds += 1;
        assert!(rounds < 20);
    }
    // Five rounds of a quarter each, not doublings
    assert!(controller.window() < 80 * MSS * 5, "{}", controller.window());
}

#[test]
fn hystart_goes_on_when_the_growth_was_a_passing_one() {
    let mut controller = Controller::new(Congestion::Cubic, MSS);
    let mut at = 0;
    slow_round(&mut controller, &mut at, 100 * MS);
    slow_round(&mut controller, &mut at, 113 * MS);
    slow_round(&mut controller, &mut at, 100 * MS);
    let before = controller.window();
    slow_round(&mut controller, &mut at, 100 * MS);
    assert_eq!(controller.threshold(), u64::MAX);
    assert!(controller.window() > before * 3 / 2, "{before} {}", controller.window());
}
