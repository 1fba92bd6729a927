//! Any bytes as the lines of a key log.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tracker::fuzz::key_log(bytes));
