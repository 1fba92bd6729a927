//! Any sequence of segments to a connection, and calls of its application between them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tcp::fuzz::conversation(bytes));
