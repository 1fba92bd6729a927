//! The fuzz entries on the seeds, and on seeds that are damaged.

use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(folder).expect("seeds");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

fn replay(target: &str, entry: fn(&[u8])) {
    let mut random = Pcg64::seed_from_u64(11);
    for seed in seeds(target) {
        entry(&seed);
        for _ in 0..2_000 {
            let mut bytes = seed.clone();
            for _ in 0..random.random_range(1..40) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..3) {
                    0 => bytes[at] = random.random(),
                    1 => bytes[at] ^= 1 << random.random_range(0..8),
                    _ => {
                        let other = random.random_range(0..bytes.len());
                        bytes.swap(at, other);
                    }
                }
            }
            entry(&bytes);
        }
    }
}

#[test]
fn events_in_any_order_break_no_load() {
    replay("page_load", page::fuzz::load);
}

#[test]
fn damaged_har_files_break_nothing() {
    replay("page_har", page::fuzz::har);
}

/// The seeds reach what they are for: a file that is read, a load that is done.
#[test]
fn the_seeds_are_good() {
    for seed in seeds("page_har") {
        let text = String::from_utf8(seed).expect("a text");
        assert!(page::har::read("seed", &text).is_ok(), "{text}");
    }
}
