//! Any bytes as a line of samples and as a manifest, any text as a distribution.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = record::parse_line(bytes);
    let _ = record::parse_manifest(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = stats::Distribution::parse(text);
    }
});
