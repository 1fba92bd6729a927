//! Any bytes as what a capture may hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tracker::fuzz::tcp_streams(bytes));
