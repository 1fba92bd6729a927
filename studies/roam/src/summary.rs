//! What samples come to: a row a point, what each change saves, and whether the paper's order holds.

use std::collections::BTreeMap;

use handoff::{Change, Direction, Phase};
use record::{Outcome, Sample};
use serde::Serialize;
use stats::{Confidence, Estimate, median, median_estimate};

use crate::point::{PAPER, Point};
use crate::sample::{Bar, STREAM, STUDY, bars_label, value};

/// What a direction of a point's runs came to: medians.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Way {
    /// Frames lost by the rate, in ms; of a TCP stream the longest gap, less the time between two frames.
    pub outage_ms: Option<Estimate>,
    /// The longest time between two arrivals since the trigger, in ms.
    pub gap_ms: Option<Estimate>,
    /// Frames lost: the median of the runs.
    pub lost: Option<f64>,
    /// Frames that came late, since somebody kept them.
    pub late: Option<f64>,
    /// The time of each phase in ms, those without any left out.
    pub phases: Vec<(Phase, f64)>,
    /// The median share of the gap that the phases explain.
    pub explained: Option<f64>,
    /// The phases of the run in the middle, since the trigger.
    pub bars: Vec<Bar>,
}

impl Way {
    /// The median time of a phase, in ms.
    #[must_use]
    pub fn of_phase(&self, phase: Phase) -> f64 {
        self.phases.iter().find(|(own, _)| *own == phase).map_or(0.0, |(_, ms)| *ms)
    }

    fn outage(&self) -> f64 {
        self.outage_ms.map_or(0.0, |outage| outage.value)
    }
}

/// A point and what its runs came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The point of the plan that was measured.
    #[serde(serialize_with = "as_fields")]
    pub point: Point,
    /// Runs that came to something.
    pub runs: usize,
    /// Runs of them in which the host did not come back: their times are longer than what was seen.
    pub not_back: usize,
    /// Runs that say nothing.
    pub failed: usize,
    /// Why the first of these does not.
    pub failure: Option<String>,
    /// Whether frames went by a TCP stream, which loses none: its outages are gaps.
    pub is_stream: bool,
    /// Frames lost by the rate in the direction that was cut off longer, in ms: the paper's outage. Of a TCP stream the
    /// longest gap, less the time between two frames.
    pub outage_ms: Option<Estimate>,
    /// The same less authentication and security association.
    pub keyless_ms: Option<Estimate>,
    /// From the host.
    pub up: Way,
    /// To the host.
    pub down: Way,
    /// The largest share of the processor that was busy.
    pub busy: Option<f64>,
    /// The command that measures it again.
    pub command: String,
    /// Outages by repeat, for pairs.
    #[serde(skip)]
    by_repeat: BTreeMap<u32, f64>,
}

fn as_fields<S: serde::Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
    point.fields().serialize(serializer)
}

impl Row {
    /// What the runs came to in this direction.
    #[must_use]
    pub const fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The case, and that it is of a stream where it is.
    #[must_use]
    pub fn case(&self) -> String {
        let title = self.point.title();
        if self.is_stream { format!("{title} (TCP stream)") } else { title }
    }

    /// The direction that was cut off longer.
    #[must_use]
    pub fn longer(&self) -> Direction {
        if self.up.outage() > self.down.outage() { Direction::Up } else { Direction::Down }
    }
}

/// What a change saves, measured beside the scenario without it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// The scenario, with what else differs.
    pub scenario: String,
    /// What is changed to shorten the outage.
    pub change: Change,
    /// Frames per second.
    pub rate: String,
    /// The outage without it, in ms.
    pub without_ms: Estimate,
    /// The outage with it, in ms.
    pub with_ms: Estimate,
    /// What it saves run by run, in ms.
    pub saved_ms: Estimate,
    /// Whether the interval of what it saves lies on one side of zero.
    pub told_apart: bool,
    /// The command that measures it again.
    pub command: String,
}

/// The paper's order at a rate: IPsec between networks, MACsec between networks, MACsec within one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Order {
    /// Frames per second.
    pub rate: String,
    /// The medians in ms, in the paper's order.
    pub medians_ms: [f64; 3],
    /// Whether each is longer than the next.
    pub holds: bool,
    /// Which phases are to blame where it does not.
    pub why: Vec<String>,
}

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// A row a point, in the order in which they were first measured.
    pub rows: Vec<Row>,
    /// What changes save, the best first.
    pub changes: Vec<Changed>,
    /// The paper's order, by rate.
    pub order: Vec<Order>,
}

impl Summary {
    /// Sums samples up; those of other studies are left out.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Summary {
        let mut points: Vec<(Point, Vec<&Sample>)> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.study == STUDY) {
            let Some(point) = Point::of_fields(&sample.point) else { continue };
            match points.iter_mut().find(|(known, _)| *known == point) {
                Some((_, own)) => own.push(sample),
                None => points.push((point, vec![sample])),
            }
        }
        let rows: Vec<Row> =
            points.into_iter().map(|(point, samples)| row(point, &samples)).collect();
        let (changes, order) = (changes(&rows), order(&rows));
        Summary { rows, changes, order }
    }

    /// The row of a scenario as it is, at a rate.
    #[must_use]
    pub fn plain(&self, scenario: &str, rate: &str) -> Option<&Row> {
        plain(&self.rows, scenario, rate)
    }
}

fn plain<'a>(rows: &'a [Row], scenario: &str, rate: &str) -> Option<&'a Row> {
    rows.iter().find(|row| {
        let point = &row.point;
        point.scenario.0 == scenario
            && point.rate.to_string() == rate
            && point.difference().is_empty()
            && row.outage_ms.is_some()
    })
}

/// Runs that came to something, be it that the host did not come back in time.
fn good<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Sample> {
    samples.iter().copied().filter(|sample| !matches!(sample.outcome, Outcome::Failed { .. }))
}

fn values(samples: &[&Sample], name: &str) -> Vec<f64> {
    good(samples).filter_map(|sample| sample.values.get(name).copied()).collect()
}

fn row(point: Point, samples: &[&Sample]) -> Row {
    let failures = samples.iter().filter_map(|sample| match &sample.outcome {
        Outcome::Failed { reason } => Some(reason.clone()),
        _ => None,
    });
    let failures: Vec<String> = failures.collect();
    let is_out = |sample: &&Sample| matches!(sample.outcome, Outcome::TimedOut { .. });
    let by_repeat = good(samples).filter_map(|sample| {
        let outage = sample.values.get(value::OUTAGE)?;
        Some((sample.repeat, *outage))
    });
    Row {
        runs: good(samples).count(),
        not_back: good(samples).filter(is_out).count(),
        failed: failures.len(),
        failure: failures.first().cloned(),
        is_stream: good(samples).any(|sample| sample.labels.contains_key(STREAM)),
        outage_ms: median_estimate(&values(samples, value::OUTAGE)),
        keyless_ms: median_estimate(&values(samples, value::KEYLESS)),
        up: way(samples, Direction::Up),
        down: way(samples, Direction::Down),
        busy: values(samples, value::BUSY).into_iter().reduce(f64::max),
        command: samples.last().map(|sample| sample.command.clone()).unwrap_or_default(),
        by_repeat: by_repeat.collect(),
        point,
    }
}

fn way(samples: &[&Sample], direction: Direction) -> Way {
    let of = |each| values(samples, value::of(each, direction));
    let phase = |phase: Phase| {
        let median = median(&values(samples, value::of_phase(phase, direction)))?;
        (median > 0.0).then_some((phase, median))
    };
    let gap_name = value::of(value::GAPS, direction);
    let unexplained = value::of_phase(Phase::Unexplained, direction);
    let explained = good(samples).filter_map(|sample| {
        let (gap, rest) = (sample.values.get(gap_name)?, sample.values.get(unexplained)?);
        (*gap > 0.0).then(|| 1.0 - rest / gap)
    });
    let explained: Vec<f64> = explained.collect();
    Way {
        outage_ms: median_estimate(&of(value::OUTAGES)),
        gap_ms: median_estimate(&of(value::GAPS)),
        lost: median(&of(value::LOST)),
        late: median(&of(value::LATE)),
        phases: Phase::ALL.iter().filter_map(|one| phase(*one)).collect(),
        explained: median(&explained),
        bars: middle_bars(samples, direction),
    }
}

/// The phases of the run whose gap is the one in the middle.
fn middle_bars(samples: &[&Sample], direction: Direction) -> Vec<Bar> {
    let gap = value::of(value::GAPS, direction);
    let mut runs: Vec<(f64, &Sample)> =
        good(samples).filter_map(|sample| Some((*sample.values.get(gap)?, sample))).collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let middle = runs.get(runs.len().saturating_sub(1) / 2);
    let text = middle.and_then(|(_, sample)| sample.labels.get(bars_label(direction)));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// What each change saves, the best first.
fn changes(rows: &[Row]) -> Vec<Changed> {
    let mut changes: Vec<Changed> = rows.iter().filter_map(|row| changed(rows, row)).collect();
    changes.sort_by(|a, b| b.saved_ms.value.total_cmp(&a.saved_ms.value));
    changes
}

fn changed(rows: &[Row], row: &Row) -> Option<Changed> {
    if row.point.change == Change::None {
        return None;
    }
    let plain = Point { change: Change::None, ..row.point.clone() };
    // The same sweep measures it without; else any sweep does.
    let of_sweep = rows.iter().find(|other| other.point == plain);
    let other = of_sweep.or_else(|| {
        rows.iter()
            .find(|other| Point { sweep: plain.sweep.clone(), ..other.point.clone() } == plain)
    })?;
    let pairs = row.by_repeat.iter().filter_map(|(repeat, with)| {
        let without = other.by_repeat.get(repeat)?;
        Some((*with, *without))
    });
    let (with, without): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let saved_ms = stats::compare_paired(&with, &without, Confidence::C95).ok()?.difference;
    Some(Changed {
        scenario: plain.title(),
        change: row.point.change,
        rate: row.point.rate.to_string(),
        without_ms: other.outage_ms?,
        with_ms: row.outage_ms?,
        saved_ms,
        told_apart: saved_ms.low > 0.0 || saved_ms.high < 0.0,
        command: row.command.clone(),
    })
}

/// The paper's order at each rate at which all three were measured.
fn order(rows: &[Row]) -> Vec<Order> {
    let mut rates: Vec<String> = Vec::new();
    for row in rows {
        let rate = row.point.rate.to_string();
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    rates.into_iter().filter_map(|rate| order_at(rows, rate)).collect()
}

fn order_at(rows: &[Row], rate: String) -> Option<Order> {
    let [first, second, third] = PAPER.map(|name| plain(rows, name, &rate));
    let found = [first?, second?, third?];
    let medians_ms = found.map(|row| row.outage_ms.map_or(0.0, |outage| outage.value));
    let pairs = [(found[0], found[1]), (found[1], found[2])];
    let wrong =
        pairs.into_iter().filter(|(longer, shorter)| median_of(longer) <= median_of(shorter));
    let why: Vec<String> = wrong.map(|(longer, shorter)| blame(longer, shorter)).collect();
    Some(Order { rate, medians_ms, holds: why.is_empty(), why })
}

fn median_of(row: &Row) -> f64 {
    row.outage_ms.map_or(0.0, |outage| outage.value)
}

/// Which phases make the one outage as long as the other, which should be shorter.
fn blame(longer: &Row, shorter: &Row) -> String {
    let (own, other) = (longer.way(longer.longer()), shorter.way(shorter.longer()));
    let times = |phase: &Phase| (own.of_phase(*phase), other.of_phase(*phase));
    let mut phases: Vec<(Phase, (f64, f64))> =
        Phase::ALL.iter().map(|phase| (*phase, times(phase))).collect();
    // The longest first: of them the outages are made.
    phases.sort_by(|a, b| b.1.0.max(b.1.1).total_cmp(&a.1.0.max(a.1.1)));
    let phases = phases.iter().take(3).filter(|(_, (own, other))| own.max(*other) > 0.0);
    let phases = phases
        .map(|(phase, (own, other))| format!("{} {own:.0} against {other:.0} ms", phase.title()));
    let phases: Vec<String> = phases.collect();
    format!(
        "{} ({:.0} ms) is not cut off longer than {} ({:.0} ms): {}",
        longer.point.title(),
        median_of(longer),
        shorter.point.title(),
        median_of(shorter),
        phases.join(", ")
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::point::Name;
    use crate::sample::tests::{run, sample_of};

    pub(crate) fn at(scenario: &str, rate: &str) -> Point {
        Point {
            scenario: Name(scenario.to_owned()),
            rate: rate.parse().unwrap(),
            ..Point::of_sweep("paper")
        }
    }

    /// Three runs of each of the paper's cases at two rates, and of a change of one.
    pub(crate) fn samples() -> Vec<Sample> {
        let mut samples = Vec::new();
        for repeat in 0..3 {
            let more = u64::from(repeat) * 10;
            for (scenario, up, down) in [
                ("ipsec-different-ssid", 1000, 1100),
                ("macsec-different-ssid", 850, 800),
                ("macsec-same-ssid", 300, 250),
            ] {
                for rate in ["1000pps", "2000pps"] {
                    let point = at(scenario, rate);
                    let run = run(point.rate.per_second(), up + more, down + more);
                    samples.push(sample_of(&point, repeat, &run));
                }
            }
            let changed = Point { change: Change::ScanList, ..at("macsec-same-ssid", "1000pps") };
            samples.push(sample_of(&changed, repeat, &run(1000, 200 + more, 150 + more)));
        }
        samples
    }

    #[test]
    fn a_point_is_a_row() {
        let summary = Summary::of(&samples());
        assert_eq!(summary.rows.len(), 7);
        let ipsec = &summary.rows[0];
        assert_eq!((ipsec.runs, ipsec.failed, ipsec.not_back), (3, 0, 0));
        assert_eq!(ipsec.outage_ms.unwrap().value, 1110.0);
        assert_eq!(ipsec.up.outage_ms.unwrap().value, 1010.0);
        assert_eq!(ipsec.longer(), Direction::Down);
        assert_eq!(ipsec.keyless_ms.unwrap().value, 1090.0);
        assert_eq!(ipsec.down.of_phase(Phase::Authentication), 20.0);
        assert!(ipsec.down.explained.unwrap() > 0.99);
        assert!(!ipsec.down.bars.is_empty());
    }

    #[test]
    fn a_change_is_held_against_the_scenario_without_it() {
        let summary = Summary::of(&samples());
        let [change] = summary.changes.as_slice() else { panic!("{:?}", summary.changes) };
        assert_eq!((change.change, change.saved_ms.value), (Change::ScanList, 100.0));
        assert!(change.told_apart);
        assert_eq!(change.scenario, "macsec-same-ssid");
    }

    #[test]
    fn the_order_holds_or_phases_say_why_not() {
        let summary = Summary::of(&samples());
        assert_eq!(summary.order.len(), 2);
        assert!(summary.order.iter().all(|order| order.holds && order.why.is_empty()));
        let mut samples = samples();
        samples.retain(|sample| sample.point["scenario"] != "ipsec-different-ssid");
        assert!(Summary::of(&samples).order.is_empty());
        for repeat in 0..3 {
            let point = at("ipsec-different-ssid", "1000pps");
            samples.push(sample_of(&point, repeat, &run(1000, 400, 400)));
        }
        let summary = Summary::of(&samples);
        let [order] = summary.order.as_slice() else { panic!("{:?}", summary.order) };
        assert!(!order.holds);
        let [why] = order.why.as_slice() else { panic!("{:?}", order.why) };
        assert!(why.starts_with("ipsec-different-ssid (400 ms) is not cut off longer"), "{why}");
        assert!(why.contains("t1 discovery 199 against 429 ms"), "{why}");
    }

    #[test]
    fn what_failed_is_counted_and_who_did_not_come_back_too() {
        let mut samples = samples();
        samples[0].outcome = Outcome::Failed { reason: "busy".to_owned() };
        samples[7].outcome = Outcome::TimedOut { after_ms: 3000.0 };
        let summary = Summary::of(&samples);
        let row = &summary.rows[0];
        assert_eq!((row.runs, row.failed, row.not_back), (2, 1, 1));
        assert_eq!(row.failure.as_deref(), Some("busy"));
    }
}
