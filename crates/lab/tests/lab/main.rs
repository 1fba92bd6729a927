//! The lab, tried on the real kernel.
//!
//! Entering the lab re-executes the program and wants a process without threads, so that libtest
//! cannot run these. This is a small test program instead: every test that needs the lab is a
//! process of its own, `--scenario NAME`, with a time limit. A test that cannot run here says
//! SKIPPED and why.

mod beliefs;
mod captures;
mod devices;
mod frames;
mod harness;
mod lifecycle;
mod link_options;
mod links;
mod programs;
mod rights;

use harness::{Kind, Test};

/// All tests, in the order in which they run.
fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    tests.extend(links::tests());
    tests.extend(link_options::tests());
    tests.extend(devices::tests());
    tests.extend(programs::tests());
    tests.extend(captures::tests());
    tests.extend(beliefs::tests());
    tests.extend(lifecycle::tests());
    tests.extend(rights::tests());
    tests
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tests = tests();
    if let Some([_, name]) =
        arguments.windows(2).find(|pair| pair.first().is_some_and(|flag| flag == "--scenario"))
    {
        let Some(test) = tests.iter().find(|test| test.name == name) else {
            eprintln!("there is no scenario {name}");
            return 2.into();
        };
        return match test.kind {
            Kind::Inside(scenario) | Kind::Helper(scenario) => harness::run_scenario(scenario),
            Kind::Outside(_) => 2.into(),
        };
    }
    harness::run_all(&tests, &arguments)
}
