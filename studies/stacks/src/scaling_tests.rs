//! The law is found again in rates that were made by it.

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::scaling::{Fit, Law, Rates, ScalingError};

const COUNTS: [u32; 8] = [1, 2, 4, 8, 16, 24, 32, 64];

fn exact(law: Law, counts: &[u32]) -> Vec<Rates> {
    let rates = |cores: u32| Rates { cores, rates: vec![law.at(f64::from(cores)); 3] };
    counts.iter().map(|cores| rates(*cores)).collect()
}

/// Rates with noise of `share`, five at each count.
fn noisy(law: Law, share: f64, seed: u64) -> Vec<Rates> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut rate =
        |cores: u32| law.at(f64::from(cores)) * (1.0 + share * rng.random_range(-1.0..1.0));
    COUNTS.map(|cores| Rates { cores, rates: (0..5).map(|_| rate(cores)).collect() }).to_vec()
}

#[test]
fn an_exact_curve_is_recovered_and_predicts_itself() {
    let law = Law { lambda: 1000.0, sigma: 0.05, kappa: 0.0004 };
    let fit = Fit::new(&exact(law, &COUNTS), 1).unwrap();
    assert!((fit.law.lambda / 1000.0 - 1.0).abs() < 1e-9, "{:?}", fit.law);
    assert!((fit.law.sigma - 0.05).abs() < 1e-9 && (fit.law.kappa - 0.0004).abs() < 1e-11);
    assert!(fit.worst_error() < 1e-9);
    let far = fit.predict(256, 1);
    assert!((far.value / law.at(256.0) - 1.0).abs() < 1e-6, "{far:?}");
    let peak = fit.law.peak().unwrap();
    assert!((peak - (0.95f64 / 0.0004).sqrt()).abs() < 1e-3);
    assert!(law.at(peak) > law.at(peak * 1.1) && law.at(peak) > law.at(peak / 1.1));
}

#[test]
fn what_scales_without_end_has_no_peak() {
    let fit = Fit::new(&exact(Law { lambda: 5.0, sigma: 0.0, kappa: 0.0 }, &COUNTS), 1).unwrap();
    assert!(fit.law.sigma < 1e-9 && fit.law.kappa < 1e-12);
    assert!(fit.law.kappa > 0.0 || fit.law.peak().is_none());
}

#[test]
fn a_point_that_lies_elsewhere_shows_when_it_is_left_out() {
    let mut points = exact(Law { lambda: 1000.0, sigma: 0.02, kappa: 0.0 }, &COUNTS);
    if let Some(last) = points.last_mut() {
        last.rates = last.rates.iter().map(|rate| rate / 2.0).collect();
    }
    let fit = Fit::new(&points, 1).unwrap();
    let last = fit.left_out.last().unwrap();
    assert_eq!(last.cores, 64);
    assert!((last.error() - 1.0).abs() < 1e-6, "the others say twice as much: {last:?}");
}

#[test]
fn too_few_counts_give_no_curve() {
    let law = Law { lambda: 1.0, sigma: 0.0, kappa: 0.0 };
    assert_eq!(Fit::new(&exact(law, &[1, 2, 3, 4, 5]), 1), Err(ScalingError::TooFew { have: 5 }));
    assert_eq!(Fit::new(&exact(law, &[1, 2, 3, 4, 5, 5]), 1), Err(ScalingError::Twice(5)));
    let nothing = [Rates { cores: 1, rates: vec![] }];
    assert_eq!(Fit::new(&nothing, 1), Err(ScalingError::NoRates(1)));
    let no_core = [Rates { cores: 0, rates: vec![1.0] }];
    assert_eq!(Fit::new(&no_core, 1), Err(ScalingError::NoRates(0)));
    let halted = [Rates { cores: 2, rates: vec![5.0, 0.0] }];
    assert_eq!(Fit::new(&halted, 1), Err(ScalingError::NotARate { cores: 2, rate: 0.0 }));
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    let law = Law { lambda: 1000.0, sigma: 0.03, kappa: 0.0005 };
    let mut held = [0, 0];
    for seed in 0..60 {
        let fit = Fit::new(&noisy(law, 0.03, seed), seed).unwrap();
        let at_96 = fit.predict(96, seed);
        held[0] += u32::from(fit.sigma.low <= law.sigma && law.sigma <= fit.sigma.high);
        held[1] += u32::from(at_96.low <= law.at(96.0) && law.at(96.0) <= at_96.high);
    }
    assert!(held.iter().all(|held| *held >= 51), "of 60: {held:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_exact_curve_is_recovered(lambda in 1.0f64..1e6, sigma in 0.0f64..0.5, kappa in 0.0f64..0.01) {
        let law = Law { lambda, sigma, kappa };
        let fit = Fit::new(&exact(law, &COUNTS), 1).unwrap();
        prop_assert!((fit.law.lambda / lambda - 1.0).abs() < 1e-6);
        prop_assert!((fit.law.sigma - sigma).abs() < 1e-6, "{} {}", fit.law.sigma, sigma);
        prop_assert!((fit.law.kappa - kappa).abs() < 1e-7);
        prop_assert!(fit.worst_error() < 1e-5);
    }

    #[test]
    fn any_points_give_a_law_that_can_be_or_an_error(
        rates in prop::collection::vec((0u32..100, prop::collection::vec(-1.0f64..1e9, 0..3)), 0..10)
    ) {
        let points: Vec<Rates> = rates.into_iter().map(|(cores, rates)| Rates { cores, rates }).collect();
        if let Ok(fit) = Fit::new(&points, 1) {
            prop_assert!(fit.law.lambda > 0.0 && fit.law.sigma >= 0.0 && fit.law.kappa >= 0.0);
            prop_assert!(fit.lambda.low <= fit.lambda.value && fit.lambda.value <= fit.lambda.high);
        }
    }
}
