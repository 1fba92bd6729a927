//! Verdicts by hand, and rates of false claims.

use proptest::prelude::*;
use rand::{Rng, RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const FASTEST: Words = Words { wins: "is fastest", behind: "slower", pairs: "loads" };

fn ranking(groups: &[(&str, &[f64])]) -> Ranking {
    let mut ranking = Ranking::new(Better::Less, MARGIN);
    for (name, values) in groups {
        ranking.push(*name, values.iter().map(|value| Some(*value)));
    }
    ranking
}

fn seconds(group: usize) -> String {
    format!("{group} s")
}

/// Values around a level, without an order that repeats.
fn around(level: f64, n: usize, spread: f64) -> Vec<f64> {
    (0..n).map(|at| level * (1.0 + spread * ((at * 7 % n) as f64 / n as f64 - 0.5))).collect()
}

#[test]
fn a_winner_beats_every_other() {
    let (a, b, c) = (around(80.0, 12, 0.02), around(100.0, 12, 0.02), around(101.0, 12, 0.3));
    let ranking = ranking(&[("b", &b), ("a", &a), ("c", &c)]);
    let ranked = ranking.verdict();
    assert_eq!(ranked.leaders, Leaders::Winner(1));
    assert_eq!(ranked.between(1, 0).unwrap().verdict, Verdict::Better);
    assert_eq!(ranked.between(0, 1).unwrap().verdict, Verdict::Worse);
    let ratio = ranked.between(1, 0).unwrap().estimate.unwrap();
    assert!((ratio.value - 0.8).abs() < 1e-9 && ratio.confidence >= 0.95, "{ratio:?}");
    let said = FASTEST.sentence(&ranked, seconds);
    assert!(
        said.starts_with("a is fastest: 1 s, at least ") && said.contains(" less than "),
        "{said}"
    );
}

#[test]
fn without_a_winner_the_groups_in_front_are_named() {
    let (a, b, c) = (around(100.0, 20, 0.1), around(100.4, 20, 0.3), around(150.0, 20, 0.02));
    let ranking = ranking(&[("a", &a), ("b", &b), ("c", &c)]);
    let ranked = ranking.verdict();
    assert_eq!(ranked.leaders, Leaders::Tied(vec![0, 1]));
    let said = FASTEST.sentence(&ranked, seconds);
    let expected = "no measurable difference among the best: a 0 s and b 1 s; slower: c 2 s";
    assert_eq!(said, expected);
}

#[test]
fn equal_groups_have_no_difference() {
    let (a, b) = (around(100.0, 30, 0.02), around(100.2, 30, 0.02));
    let equal = ranking(&[("a", &a), ("b", &b)]);
    let ranked = equal.verdict();
    assert!(
        matches!(ranked.leaders, Leaders::Winner(0))
            || ranked.compared[0].verdict == Verdict::Equivalent
    );
    // Wide: neither a difference nor equality is known.
    let (a, b) = (around(100.0, 8, 0.5), around(100.0, 8, -0.5));
    let wide = ranking(&[("a", &a), ("b", &b)]);
    let ranked = wide.verdict();
    assert_eq!(ranked.compared[0].verdict, Verdict::Undecided);
    let said = FASTEST.sentence(&ranked, seconds);
    assert!(said.starts_with("no measurable difference: a 0 s and b 1 s (less than "), "{said}");
    assert!(ranked.pairs_for_margin().unwrap() > 8);
}

#[test]
fn few_pairs_carry_no_claim() {
    for n in [1, 3, 5] {
        let ranking = ranking(&[("a", &around(1.0, n, 0.0)), ("b", &around(9.0, n, 0.0))]);
        let ranked = ranking.verdict();
        assert_eq!(ranked.leaders, Leaders::TooFew { pairs: n, needed: 6 });
        assert_eq!(ranked.compared[0].estimate.unwrap().confidence, 0.0);
        let said = FASTEST.sentence(&ranked, seconds);
        let expected =
            format!("a 0 s and b 1 s; too few loads to rank them ({n}, and 6 are needed)");
        assert_eq!(said, expected);
        assert_eq!((ranked.detectable(), ranked.pairs_for_margin().is_some()), (None, n > 0));
    }
    // Four groups make six comparisons: seven pairs are too few.
    let values: Vec<Vec<f64>> = (1..5).map(|level| around(f64::from(level), 7, 0.0)).collect();
    let groups: Vec<(&str, &[f64])> =
        ["a", "b", "c", "d"].into_iter().zip(values.iter().map(Vec::as_slice)).collect();
    assert_eq!(ranking(&groups).verdict().leaders, Leaders::TooFew { pairs: 7, needed: 8 });
}

#[test]
fn what_was_not_measured_makes_no_pair() {
    let mut ranking = Ranking::new(Better::More, MARGIN);
    ranking.push("a", (0..10).map(|at| (at != 3).then_some(2.0)));
    ranking.push("b", (0..9).map(|at| (at != 4).then_some(if at == 0 { f64::NAN } else { 1.0 })));
    let ranked = ranking.verdict();
    assert_eq!(ranked.compared[0].pairs, 6);
    assert_eq!(ranked.leaders, Leaders::Winner(0));
    assert_eq!(Ranking::new(Better::More, MARGIN).verdict().leaders, Leaders::Tied(Vec::new()));
}

#[test]
fn values_that_are_not_above_zero_are_compared_by_difference() {
    let ranking = ranking(&[("a", &[0.0; 8]), ("b", &[1.0; 8])]);
    let ranked = ranking.verdict();
    let one = ranked.compared[0];
    assert_eq!((one.scale, one.verdict), (Scale::Difference, Verdict::Better));
    assert_eq!(FASTEST.sentence(&ranked, seconds), "a is fastest: 0 s");
}

/// A population of a study's values.
type Draw = fn(&mut Pcg64Mcg) -> f64;

/// Two modes, heavy tails, many ties, and none of these.
const POPULATIONS: [(&str, Draw); 4] = [
    (
        "bimodal",
        |random| if random.random_bool(0.4) { 13.4 } else { 15.8 } + random.random::<f64>() * 0.1,
    ),
    ("heavy-tailed", |random| 1.0 / (1e-6 + random.random::<f64>()).powf(1.5)),
    ("tied", |random| f64::from(random.random_range(1_u8..4))),
    ("uniform", |random| 1.0 + random.random::<f64>()),
];

fn drawn(draw: Draw, groups: usize, pairs: usize, random: &mut Pcg64Mcg) -> Ranking {
    let mut ranking = Ranking::new(Better::Less, MARGIN);
    for group in 0..groups {
        ranking
            .push(format!("{group}"), (0..pairs).map(|_| Some(draw(random))).collect::<Vec<_>>());
    }
    ranking
}

#[test]
fn groups_without_a_difference_rarely_have_a_winner() {
    let mut random = Pcg64Mcg::seed_from_u64(random_seed());
    for (name, draw) in POPULATIONS {
        for (groups, pairs) in [(2, 6), (2, 20), (4, 12), (6, 30)] {
            let mut all = Placebo { drawn: 0, named: 0 };
            for _ in 0..10 {
                let seed = random.next_u64();
                all = all.and(placebo(&drawn(draw, groups, pairs, &mut random), 100, seed));
            }
            assert!(all.at_least() <= ALPHA, "{name}, {groups} groups of {pairs}: {all:?}");
        }
    }
}

/// Seed of the draws: always the same.
fn random_seed() -> u64 {
    20_261_128
}

#[test]
fn the_rate_of_a_test_that_errs_too_often_is_seen() {
    let erring = Placebo { drawn: 1000, named: 90 };
    assert!(erring.at_least() > ALPHA);
    assert!(Placebo { drawn: 1000, named: 55 }.at_least() <= ALPHA);
    assert_eq!(Placebo { drawn: 1000, named: 0 }.at_least(), 0.0);
}

proptest! {
    #[test]
    fn a_claim_is_what_its_interval_carries(
        a in prop::collection::vec(0.1_f64..100.0, 0..30),
        b in prop::collection::vec(0.1_f64..100.0, 0..30),
        c in prop::collection::vec(0.1_f64..100.0, 0..30),
    ) {
        let ranking = ranking(&[("a", &a), ("b", &b), ("c", &c)]);
        let ranked = ranking.verdict();
        for one in &ranked.compared {
            let Some(estimate) = one.estimate else { continue };
            prop_assert!(estimate.low <= estimate.value && estimate.value <= estimate.high);
            match one.verdict {
                Verdict::Better => prop_assert!(estimate.high < 1.0 && estimate.confidence >= 0.95),
                Verdict::Worse => prop_assert!(estimate.low > 1.0 && estimate.confidence >= 0.95),
                Verdict::Equivalent => prop_assert!(estimate.low >= 1.0 / 1.05 - 1e-9 && estimate.high <= 1.05 + 1e-9),
                Verdict::Undecided => prop_assert!(estimate.contains(1.0)),
                Verdict::TooFew { needed } => prop_assert!(one.pairs < needed && estimate.confidence == 0.0),
            }
            let turned = one.turned();
            prop_assert_eq!((turned.winner(), turned.loser()), (one.winner(), one.loser()));
        }
        // Exactly one winner, or none.
        if let Leaders::Winner(winner) = ranked.leaders {
            for other in (0..3).filter(|other| *other != winner) {
                prop_assert_eq!(ranked.between(winner, other).unwrap().verdict, Verdict::Better);
            }
        }
    }

    #[test]
    fn the_order_of_groups_changes_no_verdict(
        a in prop::collection::vec(0.1_f64..2.0, 12),
        b in prop::collection::vec(0.1_f64..2.0, 12),
    ) {
        let forth = ranking(&[("a", &a), ("b", &b)]);
        let back = ranking(&[("b", &b), ("a", &a)]);
        prop_assert_eq!(forth.verdict().compared[0].winner().map(|at| forth.name(at)), back.verdict().compared[0].winner().map(|at| back.name(at)));
    }
}
