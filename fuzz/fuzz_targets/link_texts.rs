//! Any text as a capacity trace, a profile and a delay table.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = linkmodel::Trace::parse(text);
    let _ = linkmodel::Profile::parse(text);
    let _ = linkmodel::DelayTable::parse(text);
});
