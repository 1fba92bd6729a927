//! A link of any configuration, driven by any script: no frame is made or lost but by the model.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(broken) = linkmodel::script::run_input(bytes) {
        panic!("{broken}");
    }
});
