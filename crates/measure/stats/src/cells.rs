//! Two runs, cell by cell: what got slower, and how sure that is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Confidence, Error, Estimate, Sample, hodges_lehmann};

/// What is asked of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// How sure a verdict has to be; 1 - confidence is the false discovery rate over all cells.
    pub confidence: Confidence,
    /// The change that matters, as a fraction of A's median: 0.05.
    pub threshold: f64,
    /// Whether a larger value is the better one: a rate. Otherwise a smaller one is: a time, a cost.
    pub more_is_better: bool,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { confidence: Confidence::C95, threshold: 0.05, more_is_better: false }
    }
}

/// What became of a cell from A to B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is better than A by the threshold at least, and chance does not explain it.
    Faster,
    /// B is worse than A by the threshold at least, and chance does not explain it.
    Slower,
    /// Any change is below the threshold: the interval lies inside it, or a change that chance
    /// does not explain is estimated below it.
    NoDifference,
    /// Neither a change nor its absence is shown. The interval says how far it may reach; more
    /// repeats narrow it.
    Unclear,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no difference",
            Self::Unclear => "unclear",
        })
    }
}

/// One cell of both runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellVerdict {
    /// The cell's name, as given.
    pub key: String,
    /// Samples of A.
    pub count_a: usize,
    /// Samples of B.
    pub count_b: usize,
    /// The median of A.
    pub median_a: f64,
    /// The median of B.
    pub median_b: f64,
    /// How far B lies from A (Hodges-Lehmann), in the unit of the samples. The interval is for
    /// this cell alone; the correction for many cells is in `q_value`.
    pub shift: Estimate,
    /// The shift as a fraction of A's median; `None` unless that is above 0, and then the
    /// threshold is any shift at all.
    pub relative: Option<Estimate>,
    /// Two-sided p-value of this cell alone (Mann-Whitney).
    pub p_value: f64,
    /// The least false discovery rate at which this cell counts as changed, all cells considered.
    pub q_value: f64,
    /// What became of it.
    pub verdict: Verdict,
}

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The cells that both have, by key.
    pub cells: Vec<CellVerdict>,
    /// Keys that only A has, cells without samples on the other side among them.
    pub only_a: Vec<String>,
    /// Keys that only B has.
    pub only_b: Vec<String>,
}

impl Comparison {
    /// The cells with a verdict.
    pub fn with(&self, verdict: Verdict) -> impl Iterator<Item = &CellVerdict> {
        self.cells.iter().filter(move |cell| cell.verdict == verdict)
    }
}

/// Compares what two runs measured, cell by cell.
///
/// With a hundred cells and a 5 % test each, five would cry wolf by chance. The p-values are
/// therefore adjusted by [`benjamini_hochberg`]: of the cells called faster or slower at 95 %, at
/// most 5 % are expected to be false, however many cells there are (the tests being independent,
/// or positively dependent as cells of one run are).
///
/// Faster and slower also need a shift of the threshold at least, so that a large run does not
/// fail over a microsecond. With very few samples nothing can be shown: three against three has
/// no p-value below 0.1, and four against four none below 0.029.
///
/// # Errors
/// [`Error::Threshold`], [`Error::NotFinite`].
pub fn compare_cells(
    a: &BTreeMap<String, Vec<f64>>,
    b: &BTreeMap<String, Vec<f64>>,
    options: CompareOptions,
) -> Result<Comparison, Error> {
    if !(0.0..=1.0).contains(&options.threshold) {
        return Err(Error::Threshold(options.threshold));
    }
    let filled = |run: &BTreeMap<String, Vec<f64>>, key: &String| {
        run.get(key).is_some_and(|samples| !samples.is_empty())
    };
    let missing = |run: &BTreeMap<String, Vec<f64>>, other: &BTreeMap<String, Vec<f64>>| {
        run.keys().filter(|key| filled(run, key) && !filled(other, key)).cloned().collect()
    };
    let mut cells = Vec::new();
    for (key, values) in a {
        if let Some(others) = b.get(key).filter(|_| filled(a, key) && filled(b, key)) {
            cells.push(measure(key, &Sample::new(values)?, &Sample::new(others)?, options)?);
        }
    }
    let p_values: Vec<f64> = cells.iter().map(|cell| cell.p_value).collect();
    for (cell, q_value) in cells.iter_mut().zip(benjamini_hochberg(&p_values)) {
        cell.q_value = q_value;
        cell.verdict = verdict(cell.shift, cell.relative, q_value, options);
    }
    Ok(Comparison { cells, only_a: missing(a, b), only_b: missing(b, a) })
}

/// A cell without the judgement, which needs the others.
fn measure(
    key: &str,
    a: &Sample,
    b: &Sample,
    options: CompareOptions,
) -> Result<CellVerdict, Error> {
    let shift = hodges_lehmann(a, b, options.confidence)?;
    let median_a = a.median();
    Ok(CellVerdict {
        key: key.to_owned(),
        count_a: a.len(),
        count_b: b.len(),
        median_a,
        median_b: b.median(),
        shift: shift.shift,
        relative: (median_a > 0.0)
            .then(|| shift.shift.map(|shift| shift / median_a))
            .filter(|r| r.low.is_finite() && r.high.is_finite()),
        p_value: shift.p_value,
        q_value: 1.0,
        verdict: Verdict::Unclear,
    })
}

/// What became of one cell: its shift, the shift as a fraction where it has one, and the least false
/// discovery rate at which it counts as changed, all cells considered ([`benjamini_hochberg`]). Where
/// there is no fraction, any shift reaches the threshold.
#[must_use]
pub fn verdict(
    shift: Estimate,
    relative: Option<Estimate>,
    q_value: f64,
    options: CompareOptions,
) -> Verdict {
    let threshold = if relative.is_some() { options.threshold } else { 0.0 };
    let change = relative.unwrap_or(shift);
    let inside = change.low >= -threshold
        && change.high <= threshold
        && change.confidence >= options.confidence.level();
    let shown = q_value <= options.confidence.alpha();
    let worse = if options.more_is_better { -change.value } else { change.value };
    match worse {
        value if shown && value >= threshold && value > 0.0 => Verdict::Slower,
        value if shown && value <= -threshold && value < 0.0 => Verdict::Faster,
        _ if inside || shown => Verdict::NoDifference,
        _ => Verdict::Unclear,
    }
}

/// Benjamini and Hochberg's (1995) adjusted p-values, in the order given: calling changed all with
/// a value of at most q keeps the expected share of false calls at most q. NaN counts as 1.
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let p_value = |index: usize| {
        let p: f64 = p_values[index];
        if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
    };
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_value(a).total_cmp(&p_value(b)));
    let count = p_values.len() as f64;
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 1.0;
    for (rank, &index) in order.iter().enumerate().rev() {
        least = least.min(p_value(index) * count / (rank + 1) as f64);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(cells: &[(&str, Vec<f64>)]) -> BTreeMap<String, Vec<f64>> {
        cells.iter().map(|(key, values)| ((*key).to_owned(), values.clone())).collect()
    }

    fn spread(base: f64, step: f64) -> Vec<f64> {
        (0..20).map(|i| base + step * f64::from((i * 7) % 20)).collect()
    }

    #[test]
    fn each_verdict() {
        let a = run(&[
            ("faster", spread(100.0, 0.1)),
            ("slower", spread(100.0, 0.1)),
            ("same", spread(100.0, 0.1)),
            ("small", spread(100.0, 0.1)),
            ("noise", spread(100.0, 20.0)),
            ("gone", spread(1.0, 0.1)),
            ("empty", vec![1.0]),
        ]);
        let b = run(&[
            ("faster", spread(80.0, 0.1)),
            ("slower", spread(120.0, 0.1)),
            ("same", spread(100.05, 0.1)),
            ("small", spread(103.0, 0.1)),
            ("noise", spread(110.0, 20.0)),
            ("new", spread(1.0, 0.1)),
            ("empty", vec![]),
        ]);
        let comparison = compare_cells(&a, &b, CompareOptions::default()).unwrap();
        let verdicts: Vec<(&str, Verdict)> =
            comparison.cells.iter().map(|cell| (cell.key.as_str(), cell.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                ("faster", Verdict::Faster),
                ("noise", Verdict::Unclear),
                ("same", Verdict::NoDifference),
                ("slower", Verdict::Slower),
                ("small", Verdict::NoDifference),
            ]
        );
        assert_eq!(comparison.only_a, ["empty", "gone"]);
        assert_eq!(comparison.only_b, ["new"]);
        let rates = CompareOptions { more_is_better: true, ..CompareOptions::default() };
        let of_rates = compare_cells(&a, &b, rates).unwrap();
        assert_eq!(of_rates.with(Verdict::Slower).next().unwrap().key, "faster");
        assert_eq!(of_rates.with(Verdict::Faster).next().unwrap().key, "slower");

        assert_eq!(comparison.with(Verdict::Slower).count(), 1);
        let slower = comparison.with(Verdict::Slower).next().unwrap();
        assert!((slower.shift.value - 20.0).abs() < 1e-9 && slower.q_value < 1e-6);
    }

    #[test]
    fn a_median_of_zero_has_no_fraction() {
        let a = run(&[("retransmits", vec![0.0; 20])]);
        let b = run(&[("retransmits", vec![2.0; 20])]);
        let cell = &compare_cells(&a, &b, CompareOptions::default()).unwrap().cells[0];
        assert_eq!((cell.relative, cell.verdict), (None, Verdict::Slower));
        let same = &compare_cells(&a, &a, CompareOptions::default()).unwrap().cells[0];
        assert_eq!(same.verdict, Verdict::NoDifference);
    }

    #[test]
    fn three_repeats_are_never_a_regression() {
        let a = run(&[("x", vec![1.0, 1.1, 1.2])]);
        let b = run(&[("x", vec![9.0, 9.1, 9.2])]);
        let cell = &compare_cells(&a, &b, CompareOptions::default()).unwrap().cells[0];
        assert_eq!(cell.verdict, Verdict::Unclear);
    }

    #[test]
    fn bad_options_and_values_are_refused() {
        let a = run(&[("x", vec![1.0, f64::NAN])]);
        assert!(matches!(
            compare_cells(&a, &a, CompareOptions::default()),
            Err(Error::NotFinite { .. })
        ));
        let options = CompareOptions { threshold: 5.0, ..CompareOptions::default() };
        assert_eq!(compare_cells(&a, &a, options), Err(Error::Threshold(5.0)));
    }

    #[test]
    fn benjamini_hochberg_is_scipys() {
        // scipy.stats.false_discovery_control([0.01, 0.04, 0.03, 0.005, 0.8])
        let expected = [0.025, 0.05, 0.05, 0.025, 0.8];
        for (q, expected) in
            benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005, 0.8]).into_iter().zip(expected)
        {
            assert!((q - expected).abs() < 1e-12);
        }
        assert!(benjamini_hochberg(&[]).is_empty());
        assert_eq!(benjamini_hochberg(&[f64::NAN]), [1.0]);
    }

    proptest! {
        #[test]
        fn adjusted_values_are_no_less_and_keep_the_order(p in prop::collection::vec(0.0f64..=1.0, 1..30)) {
            let q = benjamini_hochberg(&p);
            for i in 0..p.len() {
                prop_assert!(q[i] >= p[i] - 1e-15 && q[i] <= 1.0);
                for j in 0..p.len() {
                    prop_assert!(p[i] > p[j] || q[i] <= q[j]);
                }
            }
        }
    }
}
