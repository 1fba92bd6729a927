//! Sessions drawn from a seed.

use std::time::Duration;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use seclink::macsec::Suite;

use super::step::{Choice, Setup, Step, Transit};

/// Kinds of steps that a seed weighs.
const KINDS: usize = 12;
/// Most restarts of a session.
const MOST_RESTARTS: usize = 12;
/// Lives of a member that fill the lists of its peers.
const MANY_LIVES: usize = 80;
/// Numbers of packets that a session keeps at least.
const PACKETS: usize = 400;

/// Draws 2 to 5 members.
pub fn setup(seed: u64) -> Setup {
    let mut random = Pcg64::seed_from_u64(seed ^ 0xa77a_c4ed);
    let count = random.random_range(2..=5);
    let mut ends = [9, 1, 5, 3, 7];
    for at in (1..ends.len()).rev() {
        ends.swap(at, random.random_range(0..=at));
    }
    let (is_mixed, has_ties) = (random.random_bool(0.3), random.random_bool(0.3));
    let common = suite(&mut random);
    let members = (0..count).map(|at| {
        let own = suite(&mut random);
        let priority = match at {
            4 if random.random_bool(0.3) => 255,
            _ if has_ties => 16,
            _ => 16 + at as u8,
        };
        (ends[at], priority, if is_mixed { own } else { common })
    });
    Setup { seed, members: members.collect() }
}

fn suite(random: &mut Pcg64) -> Suite {
    *Suite::ALL.choose(random).unwrap()
}

fn milliseconds(random: &mut Pcg64, from: u64, to: u64) -> Duration {
    Duration::from_millis(random.random_range(from..to))
}

/// Draws moments, hello times and life times, and their edges.
fn time(random: &mut Pcg64) -> Duration {
    const EDGES: [u64; 9] = [1_999, 2_000, 2_001, 2_999, 3_001, 5_999, 6_000, 6_001, 8_001];
    match random.random_range(0..8) {
        0 | 1 => milliseconds(random, 1, 6),
        2 => milliseconds(random, 1, 40),
        3 | 4 => milliseconds(random, 100, 3_000),
        5 => Duration::from_millis(*EDGES.choose(random).unwrap()),
        _ => milliseconds(random, 5_500, 9_500),
    }
}

fn transit(random: &mut Pcg64) -> Transit {
    match random.random_range(0..10) {
        0..=3 => Transit::Drop,
        4 | 5 => Transit::Pass,
        6 => Transit::Delay(milliseconds(random, 1, 100)),
        7 => Transit::Delay(milliseconds(random, 1_000, 6_500)),
        8 => {
            let most = [5, 50, 3_000, 7_000].choose(random).unwrap();
            Transit::Shuffle(Duration::from_millis(*most))
        }
        _ => Transit::Lossy,
    }
}

fn choice(random: &mut Pcg64, from: usize, lives: usize) -> Choice {
    match random.random_range(0..10) {
        0 => Choice::Sender(from),
        1 => Choice::Life(from, random.random_range(0..=lives)),
        2 | 3 => Choice::Naming(from),
        4 => Choice::Keys,
        5 | 6 => Choice::Lost(from, milliseconds(random, 1_000, 8_000)),
        7 => Choice::Last(random.random_range(1..20)),
        8 => Choice::One(random.random_range(0..PACKETS)),
        _ => Choice::All,
    }
}

/// Draws the steps of a session. Each seed prefers some kinds.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let random = &mut Pcg64::seed_from_u64(setup.seed ^ 0x57e9);
    let weights: [u32; KINDS] = std::array::from_fn(|_| *[1, 2, 2, 3, 7].choose(random).unwrap());
    let mut steps = vec![Step::Run(milliseconds(random, 1, 4_000))];
    let mut restarts = 0;
    if random.random_bool(0.03) {
        let at = random.random_range(0..setup.members.len());
        for _ in 0..MANY_LIVES {
            let moment = milliseconds(random, 1, 12);
            steps.extend([Step::Restart(at, setup.members[at].1), Step::Run(moment)]);
        }
        restarts = MOST_RESTARTS / 2;
    }
    let length = steps.len() + random.random_range(6..45);
    let kinds: [usize; KINDS] = std::array::from_fn(|kind| kind);
    while steps.len() < length {
        let kind = *kinds.choose_weighted(random, |kind| weights[*kind]).unwrap();
        if kind == 8 && restarts == MOST_RESTARTS {
            continue;
        }
        restarts += usize::from(kind == 8);
        extend(&mut steps, random, kind, setup, restarts);
        if random.random_bool(0.5) {
            steps.push(Step::Run(time(random)));
        }
    }
    steps
}

/// Adds steps of a kind.
fn extend(steps: &mut Vec<Step>, random: &mut Pcg64, kind: usize, setup: &Setup, lives: usize) {
    let count = setup.members.len();
    let at = random.random_range(0..count);
    let other = (at + random.random_range(1..count)) % count;
    let step = match kind {
        0 => Step::Run(time(random)),
        1 => Step::Link(at, other, transit(random)),
        2 => Step::Isolate(at, transit(random)),
        3 => Step::Partition(random.random_range(0..1 << count)),
        4 => Step::Heal,
        5 | 6 => {
            let choice = choice(random, other, lives);
            Step::Replay { choice, to: at, reversed: random.random_bool(0.15) }
        }
        7 => Step::Forge {
            packet: random.random_range(0..PACKETS),
            byte: random.random_range(0..300),
            mask: random.random(),
            cut: *[0, 0, 1, 4, 16, 33].choose(random).unwrap(),
            to: at,
        },
        8 => {
            let is_same = random.random_bool(0.7);
            let other = random.random_range(14..22);
            Step::Restart(at, if is_same { setup.members[at].1 } else { other })
        }
        9 => {
            for _ in 0..random.random_range(1..=5) {
                steps.extend([Step::Rekey(at), Step::Run(milliseconds(random, 1, 4))]);
            }
            Step::Rekey(at)
        }
        10 => Step::Exhaust(at),
        _ => Step::Pause(at, time(random)),
    };
    steps.push(step);
}
