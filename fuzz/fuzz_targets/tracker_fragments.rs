//! Any bytes as IP fragments.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tracker::fuzz::fragments(bytes));
