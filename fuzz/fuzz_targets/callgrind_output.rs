//! Any bytes as callgrind's output.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(profile) = callgrind::Profile::parse(bytes) {
        for (&(object, _), executed) in &profile.instructions {
            assert!((object as usize) < profile.objects.len());
            assert!((executed.function as usize) < profile.functions.len());
        }
        let _ = profile.total();
    }
});
