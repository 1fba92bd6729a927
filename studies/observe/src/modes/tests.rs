use proptest::prelude::*;
use rand::SeedableRng;
use rand_distr::{Distribution, Exp, Normal};
use rand_pcg::Pcg64Mcg;

use super::*;

/// So many normal values at each place.
fn drawn(seed: u64, parts: &[(f64, f64, usize)]) -> Vec<f64> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let part = |(place, deviation, count): &(f64, f64, usize)| {
        let normal = Normal::new(*place, *deviation).unwrap();
        (0..*count).map(|_| normal.sample(&mut rng)).collect::<Vec<f64>>()
    };
    parts.iter().flat_map(part).collect()
}

/// That the modes are at these places, with these weights.
fn expect(found: &Modes, places: &[(f64, f64)]) {
    assert_eq!(found.modes.len(), places.len(), "{found:#?}");
    for (mode, (place, weight)) in found.modes.iter().zip(places) {
        assert!((mode.place_ms.value / place - 1.0).abs() < 0.05, "{mode:?}");
        assert!((mode.weight.value - weight).abs() < 0.06, "{mode:?}");
        assert!(mode.weight.low <= mode.weight.value && mode.weight.value <= mode.weight.high);
        assert!(mode.place_ms.high - mode.place_ms.low < 0.2 * place, "{mode:?}");
    }
    assert!(found.confirmed, "{:?}", found.density);
}

#[test]
fn two_populations_are_two_modes() {
    for seed in 1..6 {
        let times = drawn(seed, &[(25.0, 2.5, 600), (55.0, 5.0, 400)]);
        let found = modes(&times, seed, 2).unwrap();
        expect(&found, &[(25.0, 0.6), (55.0, 0.4)]);
        assert_eq!(found.mode_of(24.0), Some(0));
        assert_eq!(found.mode_of(57.0), Some(1));
        assert_eq!(found.mode_of(0.0), Some(0));
        assert_eq!(found.mode_of(1e7), Some(1));
        assert_eq!(found.mode_of(f64::NAN), None);
    }
}

#[test]
fn one_population_is_one_mode() {
    for seed in 1..6 {
        expect(&modes(&drawn(seed, &[(40.0, 4.0, 500)]), seed, 2).unwrap(), &[(40.0, 1.0)]);
    }
}

#[test]
fn three_populations_are_three_modes() {
    let times = drawn(3, &[(5.0, 0.4, 300), (25.0, 2.0, 500), (120.0, 10.0, 200)]);
    expect(&modes(&times, 3, 2).unwrap(), &[(5.0, 0.3), (25.0, 0.5), (120.0, 0.2)]);
}

#[test]
fn a_skewed_hump_is_one_mode_whatever_it_takes_to_fit() {
    let mut rng = Pcg64Mcg::seed_from_u64(9);
    let jitter = Exp::new(0.5).unwrap();
    let times: Vec<f64> = (0..800).map(|_| 25.0 + jitter.sample(&mut rng)).collect();
    let found = modes(&times, 9, 2).unwrap();
    assert_eq!(found.modes.len(), 1, "{found:#?}");
    assert!((25.0..27.5).contains(&found.modes[0].place_ms.value));
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    let held = (0..40).filter(|seed| {
        let found = modes(&drawn(100 + seed, &[(25.0, 2.5, 150)]), *seed, 2).unwrap();
        // The median of these on the logarithm is at 25 less deviation^2 / place.
        found.modes.len() == 1 && found.modes[0].place_ms.contains(24.9)
    });
    assert!(held.count() >= 32);
}

#[test]
fn a_seed_decides_everything() {
    let times = drawn(1, &[(25.0, 2.5, 100), (55.0, 5.0, 100)]);
    let one = modes(&times, 5, 1);
    assert!(one.is_some());
    for threads in [1, 2, 3, 8] {
        assert_eq!(modes(&times, 5, threads), one);
    }
}

#[test]
fn odd_values_are_left_out_or_bounded() {
    assert_eq!(modes(&[], 1, 1), None);
    assert_eq!(modes(&[1.0; FEWEST - 1], 1, 1), None);
    assert_eq!(modes(&[f64::NAN; 100], 1, 1), None);
    let same = modes(&[30.0; 100], 1, 1).unwrap();
    expect(&same, &[(30.0, 1.0)]);
    assert_eq!(modes(&[0.0; 100], 1, 1).unwrap().modes.len(), 1);
    assert_eq!(modes(&[f64::MAX; 100], 1, 1).unwrap().modes.len(), 1);
}

#[test]
fn many_values_are_as_good_as_few() {
    let times = drawn(1, &[(25.0, 2.5, 6000), (55.0, 5.0, 4000)]);
    let found = modes(&times, 1, 2).unwrap();
    assert_eq!(found.values, 10_000);
    expect(&found, &[(25.0, 0.6), (55.0, 0.4)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_values_panic(
        times in prop::collection::vec(
            prop_oneof![0.0f64..200.0, Just(0.0), Just(25.0), any::<f64>()],
            0..120,
        ),
        seed: u64,
    ) {
        if let Some(found) = modes(&times, seed, 2) {
            let weight: f64 = found.modes.iter().map(|mode| mode.weight.value).sum();
            prop_assert!(weight <= 1.0 + 1e-6 && weight + found.outliers >= 1.0 - 1e-6);
            let places: Vec<f64> = found.modes.iter().map(|mode| mode.place_ms.value).collect();
            prop_assert!(places.is_sorted(), "{:?}", places);
            prop_assert!(places.iter().all(|place| place.is_finite()));
        }
    }
}
