//! The benchmarks, here since they read what the tests read.
#![allow(missing_docs)]

mod bench;
mod common;

criterion::criterion_main!(bench::handle_packet::benches, bench::established::benches);
