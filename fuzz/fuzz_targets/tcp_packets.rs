//! Any bytes as packets to a TCP endpoint.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tcp::fuzz::packets(bytes));
