//! Any bytes as the wire format of this name.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| wire::fuzz::mpls(bytes));
