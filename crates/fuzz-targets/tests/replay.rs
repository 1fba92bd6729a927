//! Every target on its seeds, on seeds that are damaged, and on bytes of no kind: what libFuzzer does
//! for longer (`make fuzz`), here with fixed inputs, in every `make test`.

use std::path::Path;

use fuzz_targets::TARGETS;
use rand::{Rng, RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Made inputs a target.
const MADE: u64 = 300;

/// What a target's inputs are made of.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).expect("a seed")).collect()
}

/// Runs the target; a panic says on what, so that the input can become a seed.
fn run(name: &str, target: fn(&[u8]), input: &[u8], what: &str) {
    if std::panic::catch_unwind(|| target(input)).is_err() {
        panic!("{name} on {what}: {}", hex(input));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A seed with some bytes changed, cut out or doubled; or bytes of no kind.
fn made(random: &mut Pcg64, seeds: &[Vec<u8>]) -> Vec<u8> {
    if seeds.is_empty() || random.random_bool(0.3) {
        let mut bytes = vec![0; random.random_range(0..800)];
        random.fill_bytes(&mut bytes);
        // Small numbers reach further: they are lengths, types and versions.
        if random.random() {
            bytes.iter_mut().for_each(|byte| *byte &= 0x1f);
        }
        return bytes;
    }
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    for _ in 0..random.random_range(1..8) {
        if bytes.is_empty() {
            break;
        }
        let (at, len) = (random.random_range(0..bytes.len()), random.random_range(1..16));
        let end = (at + len).min(bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => drop(bytes.drain(at..end)),
            _ => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

#[test]
fn every_target_bears_its_seeds() {
    for (name, target) in TARGETS {
        run(name, *target, &[], "nothing");
        for (number, seed) in seeds(name).iter().enumerate() {
            run(name, *target, seed, &format!("seed {number}"));
        }
    }
}

#[test]
fn every_target_bears_made_inputs() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        let mut random = Pcg64::seed_from_u64(9);
        for number in 0..MADE {
            let input = made(&mut random, &seeds);
            run(name, *target, &input, &format!("made input {number}"));
        }
    }
}

#[test]
fn every_folder_of_seeds_has_its_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for entry in std::fs::read_dir(folder).expect("seeds") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(TARGETS.iter().any(|(target, _)| *target == name), "no target is called {name}");
    }
}
