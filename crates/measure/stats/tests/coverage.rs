//! Do intervals hold the truth as often as they say? Seeded, so that the answer is always the same.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use stats::{
    Bootstrap, Cell, CompareOptions, Confidence, Observation, Sample, Survival, Verdict,
    bootstrap_medians, compare_cells, compare_paired, fit_medians, hodges_lehmann,
};

const SEED: u64 = 20_140_908;
const TRIALS: u32 = 2000;

/// An exponential variable with median 1: skewed, as times are.
fn time(rng: &mut Pcg64Mcg) -> f64 {
    let uniform: f64 = rng.random();
    -(1.0 - uniform).log2()
}

/// The share of trials in percent whose interval holds the truth.
fn coverage(mut holds: impl FnMut(&mut Pcg64Mcg) -> bool, trials: u32) -> f64 {
    let mut rng = Pcg64Mcg::seed_from_u64(SEED);
    let held = (0..trials).filter(|_| holds(&mut rng)).count();
    100.0 * held as f64 / f64::from(trials)
}

fn times(count: usize, rng: &mut Pcg64Mcg) -> Vec<f64> {
    (0..count).map(|_| time(rng)).collect()
}

#[track_caller]
fn within(percent: f64, low: f64, high: f64) {
    assert!(
        (low..=high).contains(&percent),
        "covers {percent} %, not {low} to {high} (seed {SEED})"
    );
}

#[test]
fn median_interval() {
    for (count, low, high) in [(20, 94.0, 97.5), (51, 94.0, 97.5), (6, 95.5, 98.0)] {
        let of = |rng: &mut Pcg64Mcg| {
            Sample::new(&times(count, rng)).unwrap().median_estimate(Confidence::C95).contains(1.0)
        };
        within(coverage(of, TRIALS), low, high);
    }
}

#[test]
fn five_samples_cover_what_they_state() {
    let of = |rng: &mut Pcg64Mcg| {
        Sample::new(&times(5, rng)).unwrap().median_estimate(Confidence::C95).contains(1.0)
    };
    within(coverage(of, TRIALS), 92.5, 95.0);
}

#[test]
fn p95_interval() {
    // The 95th percentile of the exponential with median 1.
    let truth = -(0.05_f64).log2();
    let of = |rng: &mut Pcg64Mcg| {
        let p95 = Sample::new(&times(200, rng))
            .unwrap()
            .quantile_estimate(0.95, Confidence::C95)
            .unwrap();
        p95.low.is_none_or(|low| low <= truth) && p95.high.is_none_or(|high| high >= truth)
    };
    within(coverage(of, TRIALS), 94.0, 98.0);
}

#[test]
fn bootstrap_of_a_difference_of_medians() {
    let of = |rng: &mut Pcg64Mcg| {
        let (a, b) = (times(20, rng), times(20, rng));
        let bootstrap = Bootstrap { resamples: 400, seed: rng.random() };
        bootstrap_medians(&[&a, &b], bootstrap, Confidence::C95, |m| m[1] - m[0])
            .unwrap()
            .contains(0.0)
    };
    within(coverage(of, TRIALS), 92.0, 98.0);
}

#[test]
fn slope_and_intercept() {
    let (mut slopes, mut intercepts) = (0, 0);
    let trials = 600;
    let mut rng = Pcg64Mcg::seed_from_u64(SEED);
    for _ in 0..trials {
        let cells: Vec<(f64, Vec<f64>)> = [0.4, 11.6, 20.0, 50.0, 85.5, 200.0]
            .map(|x| (x, times(20, &mut rng).iter().map(|t| 2.0 * x + t).collect()))
            .into();
        let cells: Vec<Cell> = cells.iter().map(|(x, samples)| Cell { x: *x, samples }).collect();
        let bootstrap = Bootstrap { resamples: 400, seed: rng.random() };
        let fit = fit_medians(&cells, bootstrap, Confidence::C95).unwrap();
        slopes += u32::from(fit.slope.contains(2.0));
        intercepts += u32::from(fit.intercept.contains(1.0));
        assert!((fit.slope.value - 2.0).abs() < 0.05, "{fit:?}");
    }
    let percent = |held: u32| 100.0 * f64::from(held) / f64::from(trials);
    within(percent(slopes), 92.0, 99.0);
    within(percent(intercepts), 92.0, 99.0);
}

#[test]
fn hodges_lehmann_shift() {
    for (a, b) in [(8, 9), (25, 30)] {
        let of = |rng: &mut Pcg64Mcg| {
            let (a, b) = (times(a, rng), times(b, rng).iter().map(|t| t + 3.0).collect::<Vec<_>>());
            let (a, b) = (Sample::new(&a).unwrap(), Sample::new(&b).unwrap());
            hodges_lehmann(&a, &b, Confidence::C95).unwrap().shift.contains(3.0)
        };
        within(coverage(of, TRIALS), 93.5, 97.5);
    }
}

#[test]
fn paired_difference_under_drift() {
    let of = |rng: &mut Pcg64Mcg| {
        let mut drift = 0.0;
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            drift += time(rng);
            a.push(drift + time(rng));
            b.push(drift + time(rng) + 0.7);
        }
        compare_paired(&a, &b, Confidence::C95).unwrap().difference.contains(0.7)
    };
    within(coverage(of, TRIALS), 94.0, 97.5);
}

#[test]
fn survival_quantiles() {
    // One time limit, then attempts given up at random times.
    for random in [false, true] {
        let of = |rng: &mut Pcg64Mcg| {
            let all: Vec<Observation> = (0..40)
                .map(|_| {
                    let finish = time(rng);
                    let limit = if random { 3.0 * time(rng) } else { 2.0 };
                    if finish <= limit {
                        Observation::Finished(finish)
                    } else {
                        Observation::Censored(limit)
                    }
                })
                .collect();
            let median = Survival::new(&all).unwrap().quantile(0.5, Confidence::C95).unwrap();
            median.low.is_none_or(|low| low <= 1.0) && median.high.is_none_or(|high| high >= 1.0)
        };
        within(coverage(of, TRIALS), 92.0, 98.0);
    }
}

#[test]
fn a_run_compared_with_itself_seldom_cries_wolf() {
    // 50 cells, nothing changed: with probability 0.95 at least there is no false call at all.
    let of = |rng: &mut Pcg64Mcg| {
        let mut run = || (0..50).map(|i| (i.to_string(), times(10, rng))).collect();
        let (a, b) = (run(), run());
        let comparison = compare_cells(&a, &b, CompareOptions::default()).unwrap();
        comparison.with(Verdict::Slower).count() + comparison.with(Verdict::Faster).count() == 0
    };
    within(coverage(of, 200), 93.0, 100.0);
}
