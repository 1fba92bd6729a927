//! Any frame through each middlebox: it changes nothing but a SYN with data, and that rightly.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| linkmodel::fuzz::middlebox(bytes));
