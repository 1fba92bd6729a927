//! Any text as a quantity: what is read prints as what reads back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

use units::{Bytes, Delay, Probability, Rate};

fn reads_back<T>(text: &str)
where
    T: std::str::FromStr + ToString + PartialEq + std::fmt::Debug,
    T::Err: std::fmt::Debug,
{
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string().parse::<T>().expect("it reads back"), value);
    }
}

fuzz_target!(|text: &str| {
    reads_back::<Delay>(text);
    reads_back::<Bytes>(text);
    reads_back::<Rate>(text);
    reads_back::<Probability>(text);
});
