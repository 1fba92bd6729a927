//! Any bytes where a live server's certificate, or QUIC handshake messages, are expected.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    conn::untrusted::certificate(bytes);
    conn::untrusted::quic_handshake(bytes, cut.into());
});
