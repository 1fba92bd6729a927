//! A handoff from outside: what was sent and what came, made a run, its outages and its phases.

use std::time::Duration;

use handoff::{
    Departures, Direction, Event, Outage, Phase, Received, Run, Sent, Source, Stream, Tally,
    Timeline, What,
};
use units::{Delay, Probability, Time};

/// Two thousand frames per second for two seconds; those of `lost` never come, those of `late` come at its end.
fn stream(lost: std::ops::Range<u64>, late: std::ops::Range<u64>) -> Stream {
    let (mut departures, mut tally) = (Departures::new(), Tally::new());
    for number in 0..4000 {
        let sent = Time::from_micros(number * 500);
        departures.note(Sent { number, at: sent });
        if lost.contains(&number) {
            continue;
        }
        let at = if late.contains(&number) { Time::from_micros(late.end * 500) } else { sent };
        tally.note(Received { number, sent, at });
    }
    tally.stream(&departures)
}

fn event(millis: u64, source: Source, what: What) -> Event {
    Event { at: Time::from_millis(millis), source, what, detail: String::new() }
}

fn run(up: Stream, down: Stream) -> Run {
    Run {
        frames_per_second: 2000,
        frame: 1000,
        trial: Delay::from(Duration::from_secs(2)),
        events: vec![
            event(500, Source::Control, What::Triggered),
            event(501, Source::Supplicant, What::LinkLost),
            event(510, Source::Radio, What::Authenticating),
            event(520, Source::Radio, What::Associated),
            event(540, Source::Supplicant, What::Authorized),
            event(549, Source::Bridge, What::Bound),
        ],
        up,
        down,
        busy: Probability::ZERO,
    }
}

/// 100 frames at 2000 per second are 50 ms, by the paper's reckoning; the gap is one frame more.
#[test]
fn frames_lost_by_the_rate_and_the_gap_are_told_apart() {
    let run = run(stream(1001..1101, 0..0), stream(1001..1081, 1081..1101));
    let up = Outage::of(&run, Direction::Up);
    assert_eq!((up.lost, up.by_loss), (100, Duration::from_millis(50)));
    assert_eq!(up.gap.unwrap().duration(), Duration::from_micros(50_500));
    assert_eq!(up.gap.unwrap().frames(), 100);
    assert_eq!(up.by_gap, Duration::from_millis(50));
    // Frames that were kept and came late are not lost, and the gap is as long.
    let down = Outage::of(&run, Direction::Down);
    assert_eq!((down.lost, down.by_loss), (80, Duration::from_millis(40)));
    assert_eq!(down.by_gap, Duration::from_millis(50));
    assert_eq!(down.gap.unwrap().duration(), Duration::from_micros(50_500));
    assert!(up.is_over && down.is_over);
}

#[test]
fn a_timeline_names_what_took_longest() {
    let run = run(stream(1001..1101, 0..0), stream(1001..1101, 0..0));
    let timeline = Timeline::of(&run, Direction::Down).unwrap();
    let longest = Phase::ALL.iter().max_by_key(|phase| timeline.of_phase(**phase)).unwrap();
    assert_eq!(
        (*longest, timeline.of_phase(*longest)),
        (Phase::Authentication, Duration::from_millis(20))
    );
    assert!(timeline.adds_up());
    assert_eq!(timeline.explained(), timeline.duration());
}

#[test]
fn a_run_reads_back() {
    let run = run(stream(10..20, 30..40), stream(0..4000, 0..0));
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    // Nothing came at all: there is no time from which it could be counted.
    assert_eq!(Timeline::of(&run, Direction::Down), None);
    assert!(!Outage::of(&run, Direction::Down).is_over);
}

/// A handoff to another network with WPA3-SAE, as it was recorded: the access point asks for block acknowledgements
/// before the station has its key, and holds frames for a second: those down, and of those up ARP's answer.
#[test]
fn a_recorded_hold_is_named_in_both_directions() {
    let run: Run = serde_json::from_str(include_str!("data/wpa3-sae.json")).unwrap();
    let micros = |direction| {
        let timeline = Timeline::of(&run, direction).unwrap();
        assert!(timeline.adds_up(), "{timeline:?}");
        let phases = [Phase::Held, Phase::GatewayDiscovery, Phase::Unexplained];
        phases.map(|phase| timeline.of_phase(phase).as_micros())
    };
    assert_eq!(micros(Direction::Up), [1_018_473, 11_067, 3_117]);
    assert_eq!(micros(Direction::Down), [1_002_417, 0, 5_072]);
}
