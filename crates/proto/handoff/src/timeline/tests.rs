use proptest::prelude::*;
use units::Delay;

use super::*;
use crate::{Departures, Received, Sent, Stream, Tally};

/// A frame each millisecond both ways for 3 s; those sent from `cut` on until `back` are lost.
fn streamed(cut: u64, back: u64) -> Stream {
    let (mut departures, mut tally) = (Departures::new(), Tally::new());
    for number in 0..3000 {
        let sent = Time::from_millis(number);
        departures.note(Sent { number, at: sent });
        if !(cut..back).contains(&number) {
            tally.note(Received { number, sent, at: sent });
        }
    }
    tally.stream(&departures)
}

fn run(cut: u64, back: u64, events: &[(u64, What)]) -> Run {
    let events = events.iter().map(|(at, what)| Event {
        at: Time::from_millis(*at),
        source: Source::Supplicant,
        what: *what,
        detail: String::new(),
    });
    Run {
        frames_per_second: 1000,
        frame: 1000,
        trial: Delay::from(Duration::from_secs(3)),
        events: events.collect(),
        up: streamed(cut, back),
        down: streamed(cut, back),
        busy: "0.3".parse().unwrap(),
    }
}

/// A handoff between two networks with a new address, and when each event was.
const WHOLE: &[(u64, What)] = &[
    (1000, What::Triggered),
    (1010, What::LinkLost),
    (1012, What::ScanStarted),
    (1212, What::ScanDone),
    (1213, What::Authenticating),
    (1220, What::Authenticated),
    (1221, What::Associating),
    (1230, What::Associated),
    (1260, What::Authorized),
    (1261, What::LinkUp),
    (1270, What::DhcpStarted),
    (1370, What::DhcpBound),
    (1371, What::AddressSet),
    (1372, What::DuplicateCheckStarted),
    (1472, What::DuplicateCheckDone),
    (1475, What::GatewayAsked),
    (1480, What::GatewayKnown),
    (1481, What::SecurityStarted),
    (1530, What::SecurityDone),
    (1540, What::Bound),
    (1541, What::Redirected),
    (3000, What::Ended),
];

fn phases(timeline: &Timeline) -> Vec<(Phase, u128)> {
    timeline.spans.iter().map(|span| (span.phase, span.duration().as_millis())).collect()
}

#[test]
fn a_whole_handoff_has_its_phases_in_order() {
    let timeline = Timeline::of(&run(1001, 1545, WHOLE), Direction::Down).unwrap();
    assert_eq!(
        phases(&timeline),
        [
            (Phase::Trigger, 10),
            (Phase::Discovery, 202),
            (Phase::Attachment, 18),
            (Phase::Authentication, 31),
            (Phase::Configuration, 110),
            (Phase::DuplicateDetection, 101),
            (Phase::GatewayDiscovery, 8),
            (Phase::Security, 50),
            (Phase::Binding, 10),
            (Phase::Redirection, 1),
            (Phase::Local, 4),
        ]
    );
    assert!(timeline.adds_up() && timeline.is_over);
    assert_eq!(timeline.duration(), Duration::from_millis(545));
}

#[test]
fn what_no_event_accounts_for_is_not_hidden() {
    // Nothing is heard of after the keys, and frames come a second later.
    let timeline = Timeline::of(&run(1001, 2260, &WHOLE[..9]), Direction::Up).unwrap();
    assert_eq!(timeline.of_phase(Phase::Unexplained), Duration::from_millis(1000));
    assert!(!timeline.adds_up());
    assert_eq!(timeline.explained(), Duration::from_millis(260));
    // A run without any event is unexplained altogether.
    let timeline = Timeline::of(&run(1001, 1101, &[]), Direction::Up).unwrap();
    assert_eq!(phases(&timeline), [(Phase::Unexplained, 101)]);
}

#[test]
fn a_roam_without_dhcp_has_no_t3() {
    let events: Vec<_> = WHOLE
        .iter()
        .copied()
        .filter(|(at, what)| *at <= 1261 || matches!(what, What::Bound | What::Ended))
        .map(|(at, what)| (if what == What::Bound { 1264 } else { at }, what))
        .collect();
    let timeline = Timeline::of(&run(1001, 1266, &events), Direction::Down).unwrap();
    assert_eq!(timeline.of_phase(Phase::Configuration), Duration::ZERO);
    assert_eq!(timeline.of_phase(Phase::Binding), Duration::from_millis(3));
    assert_eq!(timeline.of_phase(Phase::Redirection), Duration::from_millis(2));
    assert!(timeline.adds_up());
}

#[test]
fn events_may_be_missing_or_out_of_order() {
    // Nobody said that the scan was done, nor that authentication began.
    let events: Vec<_> = WHOLE
        .iter()
        .copied()
        .filter(|(_, what)| {
            !matches!(what, What::ScanDone | What::Authenticating | What::Associating)
        })
        .rev()
        .collect();
    let timeline = Timeline::of(&run(1001, 1545, &events), Direction::Down).unwrap();
    assert_eq!(timeline.of_phase(Phase::Discovery), Duration::from_millis(220));
    assert_eq!(timeline.of_phase(Phase::Configuration), Duration::from_millis(110));
    assert!(timeline.adds_up());
}

#[test]
fn what_is_not_of_the_handoff_does_not_count() {
    let mut events = WHOLE.to_vec();
    events.extend([
        // A background scan before, one after the new attachment, and another address.
        (500, What::ScanStarted),
        (600, What::ScanDone),
        (1300, What::ScanStarted),
        (1478, What::AddressSet),
    ]);
    let with = Timeline::of(&run(1001, 1545, &events), Direction::Down).unwrap();
    let without = Timeline::of(&run(1001, 1545, WHOLE), Direction::Down).unwrap();
    assert_eq!(with, without);
}

#[test]
fn a_daemon_that_speaks_late_explains_what_was_before() {
    // The first frame came 2 ms before the supplicant said that the keys are in.
    let events = &WHOLE[..9];
    let timeline = Timeline::of(&run(1001, 1258, events), Direction::Up).unwrap();
    assert_eq!(timeline.of_phase(Phase::Authentication), Duration::from_millis(28));
    assert!(timeline.adds_up());
}

fn by(at: u64, source: Source, what: What) -> Event {
    Event { at: Time::from_millis(at), source, what, detail: String::new() }
}

/// A handoff in which the access point and the station hold frames back.
fn held(cut: u64, back: u64, holds: &[(u64, Source, What)]) -> Timeline {
    let mut run = run(cut, back, &WHOLE[..13]);
    run.events.extend(holds.iter().map(|(at, source, what)| by(*at, *source, *what)));
    Timeline::of(&run, Direction::Down).unwrap()
}

#[test]
fn frames_are_held_until_who_holds_them_lets_go() {
    let (point, own) = (Source::AccessPoint, Source::Radio);
    let holds = [
        (1240, point, What::HoldStarted),
        (1372, own, What::HoldStarted),
        (1374, own, What::HoldEnded),
        (2280, point, What::HoldEnded),
    ];
    let timeline = held(1001, 2281, &holds);
    // What the access point does not hold goes on: keys and DHCP have their time, and the 9 ms between them are its.
    assert_eq!(timeline.of_phase(Phase::Authentication), Duration::from_millis(31));
    assert_eq!(timeline.of_phase(Phase::Configuration), Duration::from_millis(101));
    assert_eq!(timeline.of_phase(Phase::Held), Duration::from_millis(2280 - 1371 + 9));
    assert!(timeline.adds_up());
    // One that was over at once has not held what came a second later.
    let holds = [(1372, point, What::HoldStarted), (1373, point, What::HoldEnded)];
    let timeline = held(1001, 2281, &holds);
    assert_eq!(timeline.of_phase(Phase::Held), Duration::from_millis(2));
    assert!(!timeline.adds_up());
    // Nor is the old place's of this handoff.
    let holds = [(900, point, What::HoldStarted), (1005, own, What::HoldStarted)];
    assert_eq!(held(1001, 2281, &holds).of_phase(Phase::Held), Duration::ZERO);
}

#[test]
fn who_does_not_come_back_has_a_timeline_until_the_end() {
    let timeline = Timeline::of(&run(1001, 3000, &WHOLE[..3]), Direction::Down).unwrap();
    assert!(!timeline.is_over);
    assert_eq!(timeline.of_phase(Phase::Discovery), Duration::from_millis(1989));
    let outage = Outage::of(&run(1001, 3000, WHOLE), Direction::Down);
    assert!(!outage.is_over);
    assert_eq!((outage.lost, outage.by_loss), (1999, Duration::from_millis(1999)));
}

fn any_what() -> impl Strategy<Value = What> {
    proptest::sample::select(What::ALL)
}

proptest! {
    /// Whatever is said, the pieces fill the outage, one after the other.
    #[test]
    fn phases_partition_the_outage(
        cut in 2u64..1500,
        length in 1u64..1400,
        events in proptest::collection::vec((0u64..3100, any_what()), 0..60),
    ) {
        let run = run(cut, cut + length, &events);
        for direction in Direction::ALL {
            let Some(timeline) = Timeline::of(&run, *direction) else { continue };
            let mut now = timeline.from;
            for span in &timeline.spans {
                prop_assert_eq!(span.from, now);
                prop_assert!(span.to > span.from);
                now = span.to;
            }
            prop_assert_eq!(now, timeline.to);
            let sum: Duration = Phase::ALL.iter().map(|phase| timeline.of_phase(*phase)).sum();
            prop_assert_eq!(sum, timeline.duration());
        }
    }

    /// The order in which events are given does not matter.
    #[test]
    fn only_the_times_of_events_count(events in Just(WHOLE.to_vec()).prop_shuffle()) {
        let given = Timeline::of(&run(1001, 1545, &events), Direction::Down);
        prop_assert_eq!(given, Timeline::of(&run(1001, 1545, WHOLE), Direction::Down));
    }
}
