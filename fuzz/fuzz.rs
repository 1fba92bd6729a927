//! The target that `WIRETAX_FUZZ_TARGET` names, by libFuzzer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| target()(bytes));

fn target() -> fn(&[u8]) {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let wanted = std::env::var("WIRETAX_FUZZ_TARGET").unwrap_or_default();
        let found = fuzz_targets::TARGETS.iter().find(|(name, _)| *name == wanted);
        found.unwrap_or_else(|| panic!("WIRETAX_FUZZ_TARGET: there is no target `{wanted}`")).1
    })
}
