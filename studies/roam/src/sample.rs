//! From one run to one sample.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use handoff::{Direction, Outage, Phase, Run, Timeline};
use record::{Outcome, Sample};
use serde::{Deserialize, Serialize};
use units::Time;

use crate::point::Point;

/// The study's name in samples.
pub(crate) const STUDY: &str = "roam";

/// Names of the values in a sample, and what each is.
pub mod value {
    use handoff::{Direction, Phase};
    use record::{Better, Clock, ValueKind};

    /// Frames lost by the rate, in the direction that was cut off longer; of a TCP stream the longest gap, less the time
    /// between two frames.
    pub const OUTAGE: &str = "outage_ms";
    /// The same less authentication (t4) and security association (t5).
    pub const KEYLESS: &str = "outage_without_keys_ms";
    /// Frames sent each way.
    pub const SENT: &str = "sent";
    /// Share of the guest's processor that was busy while traffic ran.
    pub const BUSY: &str = "busy_share";

    /// What is told of each direction: its names up and down, its unit, and whether it is a time.
    type Each = (&'static str, &'static str, &'static str, bool);

    /// The same of each direction.
    pub const OUTAGES: Each = ("up_outage_ms", "down_outage_ms", "ms", true);
    /// The longest time between two arrivals since the trigger.
    pub const GAPS: Each = ("up_gap_ms", "down_gap_ms", "ms", true);
    /// Frames that never came.
    pub const LOST: Each = ("up_lost", "down_lost", "", false);
    /// Frames that somebody kept and delivered late.
    pub const LATE: Each = ("up_late", "down_late", "", false);
    /// Frames that came after one of a higher number.
    pub const REORDERED: Each = ("up_reordered", "down_reordered", "", false);
    /// Frames that came twice.
    pub const DUPLICATES: Each = ("up_duplicates", "down_duplicates", "", false);
    const COUNTED: [Each; 6] = [OUTAGES, GAPS, LOST, LATE, REORDERED, DUPLICATES];

    /// The time that went to each phase.
    const PHASES: [(Phase, &str, &str); 13] = [
        (Phase::Trigger, "up_t0_ms", "down_t0_ms"),
        (Phase::Discovery, "up_t1_ms", "down_t1_ms"),
        (Phase::Attachment, "up_t2_ms", "down_t2_ms"),
        (Phase::Authentication, "up_t4_ms", "down_t4_ms"),
        (Phase::Configuration, "up_t3_ms", "down_t3_ms"),
        (Phase::DuplicateDetection, "up_t3_dad_ms", "down_t3_dad_ms"),
        (Phase::Held, "up_held_ms", "down_held_ms"),
        (Phase::GatewayDiscovery, "up_t3_gateway_ms", "down_t3_gateway_ms"),
        (Phase::Security, "up_t5_ms", "down_t5_ms"),
        (Phase::Binding, "up_t6_ms", "down_t6_ms"),
        (Phase::Redirection, "up_t8_ms", "down_t8_ms"),
        (Phase::Local, "up_t9_ms", "down_t9_ms"),
        (Phase::Unexplained, "up_unexplained_ms", "down_unexplained_ms"),
    ];

    /// The name of what is told of each direction.
    #[must_use]
    pub const fn of(each: Each, direction: Direction) -> &'static str {
        match direction {
            Direction::Up => each.0,
            Direction::Down => each.1,
        }
    }

    /// The name of the time that went to a phase.
    #[must_use]
    pub fn of_phase(phase: Phase, direction: Direction) -> &'static str {
        let found = PHASES.iter().find(|(own, ..)| *own == phase);
        found.map_or("", |names| match direction {
            Direction::Up => names.1,
            Direction::Down => names.2,
        })
    }

    /// What each value is; the first is what results are compared by.
    pub(crate) fn kinds() -> Vec<(&'static str, ValueKind)> {
        let time = || ValueKind::new("ms", Better::Less, Clock::Virtual);
        let count = |unit, better| ValueKind::new(unit, better, Clock::Count);
        let mut kinds = vec![(OUTAGE, time()), (KEYLESS, time())];
        for (up, down, unit, is_time) in COUNTED {
            let kind = || if is_time { time() } else { count(unit, Better::Less) };
            kinds.extend([(up, kind()), (down, kind())]);
        }
        kinds.extend(PHASES.iter().flat_map(|(_, up, down)| [(*up, time()), (*down, time())]));
        kinds.push((SENT, count("", Better::Neither)));
        kinds.push((BUSY, ValueKind::new("", Better::Less, Clock::Virtual)));
        kinds
    }
}

/// Above this share the guest's processor may be what cuts the host off.
pub(crate) const MOST_BUSY: f64 = 0.8;

/// A phase of the middle run, for pictures: its name, its begin and end in ms since the trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bar(pub Phase, pub f64, pub f64);

/// The label with the bars of a direction.
pub(crate) const fn bars_label(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up_phases",
        Direction::Down => "down_phases",
    }
}

/// The label of samples whose frames went by a TCP stream.
pub(crate) const STREAM: &str = "tcp_stream";

/// What a sample has beside what was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) point: &'a Point,
    pub(crate) repeat: u32,
    pub(crate) seed: u64,
    pub(crate) command: &'a str,
    /// Whether frames go by a TCP stream.
    pub(crate) is_stream: bool,
}

impl About<'_> {
    /// How long the host was cut off: a TCP stream loses no frame, and delivers all of them late.
    const fn time_of(&self, outage: &Outage) -> Duration {
        if self.is_stream { outage.by_gap } else { outage.by_loss }
    }
}

/// The sample of a run.
pub(crate) fn sample(about: About<'_>, run: &Run) -> Sample {
    let mut sample = bare(about, outcome(about, run));
    put_values(&mut sample.values, about, run);
    for direction in Direction::ALL {
        let Some(timeline) = Timeline::of(run, *direction) else { continue };
        put_phases(&mut sample.values, &timeline, *direction);
        let text = serde_json::to_string(&bars(run, &timeline)).ok();
        let label = bars_label(*direction).to_owned();
        sample.labels.extend(text.map(|text| (label, text)));
    }
    let keyless = keyless(about, run);
    sample.values.insert(value::KEYLESS.to_owned(), millis(keyless));
    sample
}

/// The sample of a run that came to nothing.
pub(crate) fn failed(about: About<'_>, reason: impl Into<String>) -> Sample {
    bare(about, Outcome::Failed { reason: reason.into() })
}

fn bare(about: About<'_>, outcome: Outcome) -> Sample {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Sample {
        study: STUDY.to_owned(),
        point: about.point.fields(),
        repeat: about.repeat,
        seed: about.seed,
        at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        outcome,
        values: BTreeMap::new(),
        labels: about
            .is_stream
            .then(|| (STREAM.to_owned(), "yes".to_owned()))
            .into_iter()
            .collect(),
        attachments: Vec::new(),
        command: about.command.to_owned(),
    }
}

/// A run on a busy machine, or one in which nothing came, says nothing of the handoff; one that did not end has a time
/// that is longer than what was seen of it.
fn outcome(about: About<'_>, run: &Run) -> Outcome {
    let failed = |reason: String| Outcome::Failed { reason };
    if run.busy.value() > MOST_BUSY {
        let busy = run.busy.value() * 100.0;
        return failed(format!("the guest's processor was busy for {busy:.0} % of the trial"));
    }
    if run.triggered().is_none() {
        return failed("the trigger was not pulled".to_owned());
    }
    for direction in Direction::ALL {
        if run.stream(*direction).received == 0 {
            return failed(format!("no frame came {direction}"));
        }
    }
    let outages = Direction::ALL.iter().map(|direction| Outage::of(run, *direction));
    match outages.filter(|outage| !outage.is_over).map(|outage| about.time_of(&outage)).max() {
        Some(until) => Outcome::TimedOut { after_ms: millis(until) },
        None => Outcome::Completed,
    }
}

fn put_values(values: &mut BTreeMap<String, f64>, about: About<'_>, run: &Run) {
    let mut put = |name: &str, number: f64| values.insert(name.to_owned(), number);
    for direction in Direction::ALL {
        let (stream, outage) = (run.stream(*direction), Outage::of(run, *direction));
        put(value::of(value::OUTAGES, *direction), millis(about.time_of(&outage)));
        if let Some(gap) = outage.gap {
            put(value::of(value::GAPS, *direction), millis(gap.duration()));
        }
        put(value::of(value::LOST, *direction), outage.lost as f64);
        put(value::of(value::LATE, *direction), outage.late as f64);
        put(value::of(value::REORDERED, *direction), stream.reordered as f64);
        put(value::of(value::DUPLICATES, *direction), stream.duplicates as f64);
    }
    put(value::OUTAGE, millis(about.time_of(&longer(about, run).1)));
    put(value::SENT, run.up.sent.min(run.down.sent) as f64);
    put(value::BUSY, run.busy.value());
}

fn put_phases(values: &mut BTreeMap<String, f64>, timeline: &Timeline, direction: Direction) {
    for phase in Phase::ALL {
        let name = value::of_phase(*phase, direction).to_owned();
        values.insert(name, millis(timeline.of_phase(*phase)));
    }
}

/// The direction that was cut off longer.
fn longer(about: About<'_>, run: &Run) -> (Direction, Outage) {
    let of = |direction: Direction| (direction, Outage::of(run, direction));
    let (up, down) = (of(Direction::Up), of(Direction::Down));
    if about.time_of(&up.1) > about.time_of(&down.1) { up } else { down }
}

/// The longer outage less the time that went to keys: the paper's transitions leave t4 and t5 out.
fn keyless(about: About<'_>, run: &Run) -> Duration {
    let (direction, outage) = longer(about, run);
    let keys = Timeline::of(run, direction).map(|timeline| {
        timeline.of_phase(Phase::Authentication) + timeline.of_phase(Phase::Security)
    });
    about.time_of(&outage).saturating_sub(keys.unwrap_or_default())
}

/// The pieces of a timeline since the trigger.
fn bars(run: &Run, timeline: &Timeline) -> Vec<Bar> {
    let begin = run.triggered().unwrap_or(timeline.from);
    let since = |time: Time| time.signed_nanos_since(begin) as f64 / 1e6;
    timeline.spans.iter().map(|span| Bar(span.phase, since(span.from), since(span.to))).collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

#[cfg(test)]
pub(crate) mod tests {
    use handoff::{Departures, Event, Received, Sent, Source, Stream, Tally, What};
    use units::{Delay, Probability};

    use super::*;

    /// A frame each 1/rate for 4 s; those sent within `outage` ms from 1 s on never come.
    fn stream(per_second: u64, outage: u64) -> Stream {
        let (mut departures, mut tally) = (Departures::new(), Tally::new());
        for number in 0..per_second * 4 {
            let sent = Time::from_nanos(number * 1_000_000_000 / per_second);
            departures.note(Sent { number, at: sent });
            let is_cut = sent >= Time::from_millis(1000) && sent < Time::from_millis(1000 + outage);
            if !is_cut {
                tally.note(Received { number, sent, at: sent });
            }
        }
        tally.stream(&departures)
    }

    /// A run that was cut off so many ms up and down; the scan takes half of it, the keys 20 ms.
    pub(crate) fn run(per_second: u32, up: u64, down: u64) -> Run {
        let event = |at: u64, source, what| Event {
            at: Time::from_millis(1000 + at),
            source,
            what,
            detail: String::new(),
        };
        let (longest, half) = (up.max(down), up.max(down) / 2);
        Run {
            frames_per_second: per_second,
            frame: 1000,
            trial: Delay::from(Duration::from_secs(4)),
            events: vec![
                event(0, Source::Control, What::Triggered),
                event(1, Source::Supplicant, What::LinkLost),
                event(half, Source::Radio, What::ScanDone),
                event(2, Source::Radio, What::ScanStarted),
                event(half + 10, Source::Radio, What::Associated),
                event(half + 30, Source::Supplicant, What::Authorized),
                event(half + 31, Source::Dhcp, What::DhcpStarted),
                event(longest.saturating_sub(1), Source::Dhcp, What::DhcpBound),
                event(longest.saturating_sub(1), Source::Bridge, What::Bound),
                event(3000, Source::Control, What::Ended),
            ],
            up: stream(per_second.into(), up),
            down: stream(per_second.into(), down),
            busy: Probability::new(0.4).unwrap(),
        }
    }

    pub(crate) fn sample_of(point: &Point, repeat: u32, run: &Run) -> Sample {
        sample(About { point, repeat, seed: 1, command: "wiretax roam", is_stream: false }, run)
    }

    /// A run by a TCP stream: of what was sent within `outage` ms from 1 s on all comes when that is over.
    pub(crate) fn streamed(point: &Point, repeat: u32, outage: u64) -> Sample {
        let back = Time::from_millis(1000 + outage);
        let (mut departures, mut tally) = (Departures::new(), Tally::new());
        for number in 0..4000 {
            let sent = Time::from_millis(number);
            departures.note(Sent { number, at: sent });
            let at = if sent >= Time::from_millis(1000) { sent.max(back) } else { sent };
            tally.note(Received { number, sent, at });
        }
        let run = Run { up: tally.stream(&departures), ..run(1000, outage, 0) };
        sample(About { point, repeat, seed: 1, command: "wiretax roam", is_stream: true }, &run)
    }

    #[test]
    fn a_run_has_its_values() {
        let sample = sample_of(&Point::of_sweep("a"), 0, &run(1000, 500, 400));
        assert_eq!(sample.outcome, Outcome::Completed);
        let value = |name: &str| sample.values[name];
        assert_eq!((value("outage_ms"), value("outage_without_keys_ms")), (500.0, 480.0));
        assert_eq!((value("up_outage_ms"), value("down_outage_ms")), (500.0, 400.0));
        assert_eq!((value("down_gap_ms"), value("down_lost")), (401.0, 400.0));
        assert_eq!((value("up_t1_ms"), value("up_t4_ms")), (249.0, 20.0));
        let known = value::kinds();
        for name in sample.values.keys() {
            assert!(known.iter().any(|(kind, _)| kind == name), "{name}");
        }
        let bars: Vec<Bar> = serde_json::from_str(&sample.labels["up_phases"]).unwrap();
        assert_eq!((bars[1].0, bars[2].0), (Phase::Trigger, Phase::Discovery));
        let sum: f64 = bars.iter().map(|bar| bar.2 - bar.1).sum();
        assert!((sum - value("up_gap_ms")).abs() < 1e-6);
    }

    #[test]
    fn a_tcp_stream_is_cut_off_for_its_gap() {
        let point =
            Point { scenario: crate::point::Name("mptcp".to_owned()), ..Point::of_sweep("a") };
        let sample = streamed(&point, 0, 700);
        let value = |name: &str| sample.values[name];
        assert_eq!((value("up_lost"), value("up_gap_ms")), (0.0, 701.0));
        assert_eq!((value("up_outage_ms"), value("outage_ms")), (700.0, 700.0));
        // Keys take 20 ms of it.
        assert_eq!(value("outage_without_keys_ms"), 680.0);
        assert_eq!((value("down_outage_ms"), &sample.outcome), (0.0, &Outcome::Completed));
        assert_eq!(sample.labels[STREAM], "yes");
        // What has not come by the end is cut off still.
        let about = About { point: &point, repeat: 0, seed: 1, command: "", is_stream: true };
        let not_back = super::sample(about, &run(1000, 500, 3000));
        assert_eq!(not_back.outcome, Outcome::TimedOut { after_ms: 3000.0 });
    }

    #[test]
    fn a_busy_machine_is_a_failure_that_is_kept() {
        let mut busy = run(1000, 500, 400);
        busy.busy = Probability::new(0.85).unwrap();
        let sample = sample_of(&Point::of_sweep("a"), 0, &busy);
        let Outcome::Failed { reason } = &sample.outcome else { panic!("{:?}", sample.outcome) };
        assert!(reason.contains("busy for 85 %"), "{reason}");
        assert_eq!(sample.values["busy_share"], 0.85);
    }

    #[test]
    fn who_does_not_come_back_is_longer_than_what_was_seen() {
        let sample = sample_of(&Point::of_sweep("a"), 0, &run(1000, 500, 3000));
        assert_eq!(sample.outcome, Outcome::TimedOut { after_ms: 3000.0 });
        let mut none = run(1000, 500, 400);
        none.down = Tally::new().stream(&Departures::new());
        let sample = sample_of(&Point::of_sweep("a"), 0, &none);
        assert!(matches!(sample.outcome, Outcome::Failed { .. }));
    }

    #[test]
    fn every_phase_and_value_has_a_name_of_its_own() {
        let kinds = value::kinds();
        let names: std::collections::BTreeSet<_> = kinds.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), kinds.len());
        for phase in Phase::ALL {
            assert!(!value::of_phase(*phase, Direction::Up).is_empty(), "{phase}");
        }
        assert_eq!(kinds[0].0, value::OUTAGE);
    }
}
