//! Our TCP against the kernel's: `cargo bench -p tcpio [-- NAME…] [OPTIONS]`, where NAME is `bulk`,
//! `lossy`, `round_trip` or `handshakes`, and all four if none is given.

mod bulk;
mod handshakes;
mod judge;
mod lossy;
mod round_trip;
mod support;

use lab_test::TestResult;

type Benchmark = (&'static str, fn() -> TestResult);

const BENCHMARKS: [Benchmark; 4] = [
    ("bulk", bulk::main),
    ("lossy", lossy::main),
    ("round_trip", round_trip::main),
    ("handshakes", handshakes::main),
];

fn main() -> TestResult {
    if let Err(error) = lab::enter(&lab::EnterOptions::new()) {
        println!("SKIPPED: {error}");
        return Ok(());
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| words.iter().any(|word| word == name);
    let all = !BENCHMARKS.iter().any(|(name, _)| named(name));
    for (name, run) in BENCHMARKS {
        if all || named(name) {
            run()?;
        }
    }
    Ok(())
}
