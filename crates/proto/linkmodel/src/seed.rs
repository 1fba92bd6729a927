//! Seeds from seeds.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Seed number `stream` derived from `seed`: unrelated to the others (the finaliser of
/// SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[must_use]
pub fn mix(seed: u64, stream: u64) -> u64 {
    let mut z = seed.wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The random numbers of one stage of a link.
pub(crate) fn rng(seed: u64, stream: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(mix(seed, stream))
}
