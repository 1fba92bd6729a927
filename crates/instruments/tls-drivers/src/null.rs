//! The driver without cryptography, which comes with the program.

/// A shared object: what it costs in a measurement is the harness's own cost.
pub const NULL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/null.so"));
