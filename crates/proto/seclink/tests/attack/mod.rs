//! Random sessions of key agreement under an attacker who drops, delays, duplicates, reorders, replays and forges
//! packets. Members restart, pause, ask for fresh keys, and change their priority.

mod draw;
mod insider;
mod orders;
mod station;
mod step;
mod world;

use std::time::Duration;

use step::{Breach, Coverage, Setup, Step};
use world::World;

/// Time in which members agree after the attack.
const BOUND: Duration = Duration::from_secs(12);

/// No promise under attack: a server that lacks packets does not know the association numbers in use.
const ALLOWED: Breach = Breach::CutOff;

fn play(setup: &Setup, steps: &[Step]) -> World {
    let mut world = World::new(setup);
    steps.iter().for_each(|step| world.step(*step));
    world.settle(BOUND);
    world
}

/// Drops steps as long as the breach stays.
fn shrink(setup: &Setup, mut steps: Vec<Step>, breach: Breach) -> Vec<Step> {
    let mut size = steps.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            if play(setup, &fewer).breaches.contains(&breach) {
                steps = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    steps
}

/// Plays the sessions of these seeds. A breach shows its shortest sequence.
fn attack(seeds: std::ops::Range<u64>) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in seeds {
        let setup = draw::setup(seed);
        let steps = draw::steps(&setup);
        let world = play(&setup, &steps);
        coverage.add(&world.coverage);
        if let Some(breach) = world.breaches.iter().find(|breach| **breach != ALLOWED) {
            let steps = shrink(&setup, steps, *breach);
            panic!("{breach:?} with {setup:?}: {steps:#?}");
        }
    }
    coverage
}

#[test]
fn no_attack_breaks_a_promise() {
    let coverage = attack(0..600);
    // The sessions reach the states in which the promises are at risk.
    for (name, least) in [
        ("keys", 2_000),
        ("restarts", 1_500),
        ("expiries", 2_000),
        ("changes of server", 1_500),
        ("injected packets", 12_000),
        ("injected packets taken", 1_200),
        ("packets of earlier lives", 1_500),
        ("replayed frames", 50_000),
    ] {
        assert!(coverage.of(name) >= least, "{name}: {coverage:#?}");
    }
    for reason in ["Replayed", "Own", "NotNamed", "NotKeyServer", "UnknownMember", "NotAuthentic"] {
        assert!(coverage.rejected.contains_key(reason), "{reason}: {coverage:#?}");
    }
}

#[test]
#[ignore = "takes minutes; run it after changes to key agreement"]
fn no_long_attack_breaks_a_promise() {
    let coverage = attack(1_000..41_000);
    assert!(coverage.rejected.contains_key("UsedKey"));
    println!("{coverage:#?}");
}
