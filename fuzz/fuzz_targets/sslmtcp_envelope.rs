//! Any bytes as envelopes, cut anywhere, and as a flight to be lengthened.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    sslmtcp::fuzz::envelope(bytes);
    sslmtcp::fuzz::pad(bytes);
});
