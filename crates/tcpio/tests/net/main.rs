//! Stacks on the real kernel: in network namespaces, against each other and against its TCP.
//!
//! Entering the lab re-executes the program and wants a process without threads, so that libtest
//! cannot run these: this is a small test program. Each test has a lab of its own and a time limit.

mod closing;
mod devices;
mod kernel;
mod ours;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use support::{Skip, Test};

/// The longest that a test may take.
const LIMIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Err(error) = lab::enter(&lab::EnterOptions::new()) {
        println!("SKIPPED: no lab here: {error}");
        return ExitCode::SUCCESS;
    }
    let tests: Vec<Test> =
        [ours::tests(), kernel::tests(), closing::tests(), devices::tests()].concat();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<_> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let exact = arguments.iter().any(|word| word == "--exact");
    let matches =
        |name: &str, filter: &str| if exact { name == filter } else { name.contains(filter) };
    let wanted =
        |test: &&Test| filters.is_empty() || filters.iter().any(|filter| matches(test.0, filter));
    let chosen: Vec<_> = tests.iter().filter(wanted).collect();
    if arguments.iter().any(|word| word == "--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.0));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for test in chosen {
        let began = Instant::now();
        let result = run(*test);
        let took = began.elapsed().as_secs_f64();
        match result {
            Ok(()) => println!("test {} ... ok ({took:.2} s)", test.0),
            Err(error) if error.is::<Skip>() => println!("test {} ... SKIPPED: {error}", test.0),
            Err(error) => {
                failed += 1;
                println!("test {} ... FAILED ({took:.2} s): {error}", test.0);
            }
        }
    }
    println!("\ntest result: {}. {failed} failed\n", if failed == 0 { "ok" } else { "FAILED" });
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(test: Test) -> support::TestResult {
    let (sender, receiver) = mpsc::channel();
    // A test that hangs leaves its thread behind; the process's end takes it along.
    std::thread::spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(test.1));
        let _ = sender.send(result.unwrap_or_else(|_| Err("it panicked".into())));
    });
    receiver.recv_timeout(LIMIT).unwrap_or_else(|_| Err(format!("not done in {LIMIT:?}").into()))
}
