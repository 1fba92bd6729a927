//! Any bytes as the stream of a peer that may or may not wrap its records in envelopes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| sslmtcp::fuzz::carrier(bytes));
