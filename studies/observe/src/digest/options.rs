//! What bounds a digest.

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What bounds a [`crate::Digest`]: its memory does not grow with the connections that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Width of a bin of the distributions. GREE 2018 has 10 ms.
    pub bin: Duration,
    /// Number of bins from zero; what is longer is counted apart.
    pub bins: usize,
    /// Bits of an IPv4 address that make a client's network.
    pub prefix4: u8,
    /// Bits of an IPv6 address that make a client's network.
    pub prefix6: u8,
    /// Server names, client networks and other names that are counted one by one, of each kind.
    pub names: usize,
    /// Width of a stretch of time, to begin with: it doubles when there are too many.
    pub bucket: Duration,
    /// Stretches of time, at most.
    pub buckets: usize,
    /// Handshakes of each version and class whose times are kept as they are: a fair draw of all.
    pub kept: usize,
    /// Keys the draw and the bootstrap.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            bin: Duration::from_millis(10),
            bins: 100,
            prefix4: 24,
            prefix6: 48,
            names: 256,
            bucket: Duration::from_secs(3600),
            buckets: 192,
            kept: 4000,
            seed: 1,
        }
    }
}

/// Why [`Options`] make no digest: the caller's to mend.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} is {value}")]
pub struct OptionsError {
    /// The field of [`Options`].
    pub field: &'static str,
    /// What it was.
    pub value: String,
    /// What to write instead: the range.
    pub works: &'static str,
}

impl Explain for OptionsError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(self.works.into())
    }
}

impl Options {
    /// Whether a digest can be made by them.
    ///
    /// # Errors
    /// Names the first field that makes no sense.
    pub fn validate(&self) -> Result<(), OptionsError> {
        let wrong = |field, value, works| Err(OptionsError { field, value, works });
        let hour = Duration::from_secs(3600);
        if self.bin < Duration::from_micros(10) || self.bin > hour {
            return wrong("bin", format!("{:?}", self.bin), "write 10us to 1h");
        }
        if !(1..=10_000).contains(&self.bins) {
            return wrong("bins", self.bins.to_string(), "write 1 to 10000");
        }
        if self.prefix4 > 32 {
            return wrong("prefix4", self.prefix4.to_string(), "write 0 to 32");
        }
        if self.prefix6 > 128 {
            return wrong("prefix6", self.prefix6.to_string(), "write 0 to 128");
        }
        if !(1..=100_000).contains(&self.names) {
            return wrong("names", self.names.to_string(), "write 1 to 100000");
        }
        if self.bucket < Duration::from_millis(1) {
            return wrong("bucket", format!("{:?}", self.bucket), "write 1ms or more");
        }
        if !(2..=10_000).contains(&self.buckets) {
            return wrong("buckets", self.buckets.to_string(), "write 2 to 10000");
        }
        if !(1..=1_000_000).contains(&self.kept) {
            return wrong("kept", self.kept.to_string(), "write 1 to 1000000");
        }
        Ok(())
    }
}
