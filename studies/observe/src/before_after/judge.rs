//! What lies between two sides.

use serde::Serialize;
use stats::{CompareOptions, Estimate, Sample, Verdict};

use super::side::{Group, Kept, Side, Timed};

/// Fewer of either side say too little.
const FEWEST: usize = 20;

/// What of a group is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The time of handshakes that completed.
    Time,
    /// The share of these that resumed a session.
    Resumption,
    /// The share of all that failed.
    Failure,
    /// The clients' round-trip time: it says who came, and is neither better nor worse.
    RoundTrip,
}

/// How sides are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// The change that matters, as a fraction of what was before.
    pub threshold: f64,
}

/// One thing of one group, before and after. Times are in the unit of what is compared, shares are
/// fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// What it is.
    pub measure: Measure,
    /// Whose handshakes these are.
    pub group: Group,
    /// Handshakes that it rests on, before.
    pub count_before: u64,
    /// Handshakes that it rests on, after.
    pub count_after: u64,
    /// The median or share before.
    pub before: f64,
    /// The median or share after.
    pub after: f64,
    /// How far it moved, with its interval of 95 %.
    pub shift: Estimate,
    /// The same as a fraction of what was before; `None` where that was 0.
    pub relative: Option<Estimate>,
    /// By chance alone it would move as far with this probability.
    pub p_value: f64,
    /// The least false discovery rate at which it counts, all that is compared considered.
    pub q_value: f64,
    /// What became of it; of round-trip times, which way they moved.
    pub verdict: Verdict,
}

impl Changed {
    /// Whether it got worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.measure != Measure::RoundTrip && self.verdict == Verdict::Slower
    }

    /// Whether it got better.
    #[must_use]
    pub fn is_better(&self) -> bool {
        self.measure != Measure::RoundTrip && self.verdict == Verdict::Faster
    }
}

/// Two sides compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Which time was compared.
    pub timed: Timed,
    /// Handshakes before, those that failed too.
    pub handshakes_before: u64,
    /// Handshakes after, those that failed too.
    pub handshakes_after: u64,
    /// All that was compared, the surest changes first.
    pub changes: Vec<Changed>,
    /// Groups that both sides have with too few handshakes to compare them.
    pub too_few: u64,
    /// Groups that one side alone has.
    pub only_before: Vec<Group>,
    /// The same of the other.
    pub only_after: Vec<Group>,
}

impl Compared {
    /// What got worse.
    pub fn worse(&self) -> impl Iterator<Item = &Changed> {
        self.changes.iter().filter(|changed| changed.is_worse())
    }

    /// How the round-trip time of all clients moved, if it did.
    #[must_use]
    pub fn clients_moved(&self) -> Option<&Changed> {
        let of_all = |c: &&Changed| c.measure == Measure::RoundTrip && c.group == Group::All;
        let moved = |c: &&Changed| matches!(c.verdict, Verdict::Slower | Verdict::Faster);
        self.changes.iter().find(of_all).filter(moved)
    }
}

/// Compares two sides. Round-trip times count for no false discovery: they are judged by themselves.
///
/// # Errors
/// The threshold is no fraction.
pub fn compare(before: &Side, after: &Side, asked: Asked) -> Result<Compared, stats::Error> {
    if !(0.0..=1.0).contains(&asked.threshold) {
        return Err(stats::Error::Threshold(asked.threshold));
    }
    let (a, b) = (before.groups(), after.groups());
    let mut compared = Compared {
        timed: before.timed(),
        handshakes_before: before.handshakes(),
        handshakes_after: after.handshakes(),
        changes: Vec::new(),
        too_few: 0,
        only_before: a.keys().filter(|group| !b.contains_key(group)).cloned().collect(),
        only_after: b.keys().filter(|group| !a.contains_key(group)).cloned().collect(),
    };
    for (group, before) in &a {
        let Some(after) = b.get(group) else { continue };
        let found = of_group(group, before, after)?;
        compared.too_few += u64::from(found.is_empty());
        compared.changes.extend(found);
    }
    for of_round_trips in [false, true] {
        let judged = compared.changes.iter_mut();
        let judged = judged.filter(|c| (c.measure == Measure::RoundTrip) == of_round_trips);
        judge(judged.collect(), asked);
    }
    compared.changes.sort_by(|a, b| {
        let rank = |c: &Changed| (!c.is_worse(), !c.is_better(), c.measure == Measure::RoundTrip);
        rank(a).cmp(&rank(b)).then(a.q_value.total_cmp(&b.q_value)).then(a.group.cmp(&b.group))
    });
    Ok(compared)
}

fn judge(mut changes: Vec<&mut Changed>, asked: Asked) {
    let p_values: Vec<f64> = changes.iter().map(|changed| changed.p_value).collect();
    for (changed, q_value) in changes.iter_mut().zip(stats::benjamini_hochberg(&p_values)) {
        let more_is_better = changed.measure == Measure::Resumption;
        let threshold = asked.threshold;
        let options = CompareOptions { threshold, more_is_better, ..CompareOptions::default() };
        changed.q_value = q_value;
        changed.verdict = stats::verdict(changed.shift, changed.relative, q_value, options);
    }
}

/// What can be compared of a group.
fn of_group(group: &Group, before: &Kept, after: &Kept) -> Result<Vec<Changed>, stats::Error> {
    let mut found = Vec::new();
    let times = [
        (Measure::Time, before.times.values(), after.times.values()),
        (Measure::RoundTrip, before.round_trips.values(), after.round_trips.values()),
    ];
    for (measure, before, after) in times {
        if before.len() >= FEWEST && after.len() >= FEWEST {
            found.push(of_times(measure, group, &before, &after)?);
        }
    }
    // A class is resumed or not, and failed or not, by what it is.
    if matches!(group, Group::Class(_)) {
        return Ok(found);
    }
    let completed = |kept: &Kept| kept.attempts.saturating_sub(kept.failed);
    let shares = [
        (
            Measure::Resumption,
            (before.resumed, completed(before)),
            (after.resumed, completed(after)),
        ),
        (Measure::Failure, (before.failed, before.attempts), (after.failed, after.attempts)),
    ];
    for (measure, before, after) in shares {
        let enough = before.1 >= FEWEST as u64 && after.1 >= FEWEST as u64;
        if enough && before.0 + after.0 > 0 {
            found.push(of_shares(measure, group, before, after)?);
        }
    }
    Ok(found)
}

fn of_times(
    measure: Measure,
    group: &Group,
    before: &[f64],
    after: &[f64],
) -> Result<Changed, stats::Error> {
    let (a, b) = (Sample::new(before)?, Sample::new(after)?);
    let options = CompareOptions::default();
    let shift = stats::hodges_lehmann(&a, &b, options.confidence)?;
    let median = a.median();
    Ok(Changed {
        measure,
        group: group.clone(),
        count_before: before.len() as u64,
        count_after: after.len() as u64,
        before: median,
        after: b.median(),
        shift: shift.shift,
        relative: relative(shift.shift, median),
        p_value: shift.p_value,
        q_value: 1.0,
        verdict: Verdict::Unclear,
    })
}

fn of_shares(
    measure: Measure,
    group: &Group,
    before: (u64, u64),
    after: (u64, u64),
) -> Result<Changed, stats::Error> {
    let options = CompareOptions::default();
    let found = stats::compare_shares(before, after, options.confidence)?;
    let share = |(hits, of): (u64, u64)| hits as f64 / of as f64;
    Ok(Changed {
        measure,
        group: group.clone(),
        count_before: before.1,
        count_after: after.1,
        before: share(before),
        after: share(after),
        shift: found.shift,
        relative: relative(found.shift, share(before)),
        p_value: found.p_value,
        q_value: 1.0,
        verdict: Verdict::Unclear,
    })
}

/// A shift as a fraction of what was before.
fn relative(shift: Estimate, before: f64) -> Option<Estimate> {
    let relative = (before > 0.0).then(|| shift.map(|shift| shift / before));
    relative.filter(|relative| relative.low.is_finite() && relative.high.is_finite())
}
