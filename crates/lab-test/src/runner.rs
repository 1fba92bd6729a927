//! The `main` of test programs without libtest: it takes libtest's arguments and prints as it does.

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::need::{Skip, note};
use crate::scenario::{FLAG, LIMIT, SKIPPED};
use crate::{Failure, Scenario, TestResult, judge};

/// A test: a name and a function that runs in a process of its own.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    name: &'static str,
    run: fn() -> TestResult,
    before: fn() -> TestResult,
    limit: Duration,
    helper: bool,
}

impl Test {
    /// A test in a process of its own, which may enter the lab.
    #[must_use]
    pub const fn new(name: &'static str, run: fn() -> TestResult) -> Test {
        Test { name, run, before: || Ok(()), limit: LIMIT, helper: false }
    }

    /// A test whose process is in the lab already, before any thread is started.
    #[cfg(feature = "lab")]
    #[must_use]
    pub const fn inside(name: &'static str, run: fn() -> TestResult) -> Test {
        Test::new(name, run).prepared(crate::net::enter)
    }

    /// The same after another function, which may skip it: one that enters namespaces.
    #[must_use]
    pub const fn prepared(self, before: fn() -> TestResult) -> Test {
        Test { before, ..self }
    }

    /// The same with another time limit than two minutes.
    #[must_use]
    pub const fn within(self, limit: Duration) -> Test {
        Test { limit, ..self }
    }

    /// No test: a function that other tests start as a [`Scenario`].
    #[must_use]
    pub const fn helper(name: &'static str, run: fn() -> TestResult) -> Test {
        Test { helper: true, ..Test::new(name, run) }
    }
}

/// What the command line asks for, by libtest's names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Arguments {
    filters: Vec<String>,
    without: Vec<String>,
    exact: bool,
    list: bool,
    shown: bool,
    ignored: bool,
    threads: Option<usize>,
}

impl Arguments {
    fn read(words: impl Iterator<Item = String>) -> Arguments {
        let mut read = Arguments::default();
        let mut words = words.flat_map(|word| match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => {
                vec![option.to_owned(), value.to_owned()]
            }
            _ => vec![word],
        });
        while let Some(word) = words.next() {
            match word.as_str() {
                "--exact" => read.exact = true,
                "--list" => read.list = true,
                "--nocapture" | "--no-capture" => read.shown = true,
                "--ignored" => read.ignored = true,
                "--skip" => read.without.extend(words.next()),
                "--test-threads" => read.threads = words.next().and_then(|n| n.parse().ok()),
                "--format" | "--color" | "--logfile" | "--shuffle-seed" | "-Z" => {
                    let _ = words.next();
                }
                option if option.starts_with('-') => {}
                filter => read.filters.push(filter.to_owned()),
            }
        }
        read
    }

    fn wants(&self, test: &Test) -> bool {
        let matches = |filter: &String| match self.exact {
            true => test.name == filter,
            false => test.name.contains(filter.as_str()),
        };
        !test.helper
            && !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(matches))
            && !self.without.iter().any(matches)
    }
}

/// Runs what the command line asks for: one scenario, or all tests whose names contain a filter.
///
/// # Panics
/// Two tests have one name.
#[must_use]
pub fn main(tests: &[Test]) -> ExitCode {
    let names: BTreeSet<_> = tests.iter().map(|test| test.name).collect();
    assert_eq!(names.len(), tests.len(), "two tests have one name");
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == FLAG).is_some() {
        return scenario(tests, &words.next().unwrap_or_default());
    }
    let arguments = Arguments::read(words);
    let chosen: Vec<&Test> = tests.iter().filter(|test| arguments.wants(test)).collect();
    if arguments.list {
        chosen.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let filtered = tests.iter().filter(|test| !test.helper).count() - chosen.len();
    run_all(&chosen, &arguments, filtered)
}

/// In a scenario's process.
fn scenario(tests: &[Test], name: &str) -> ExitCode {
    let Some(test) = tests.iter().find(|test| test.name == name) else {
        eprintln!("there is no scenario {name}");
        return 2.into();
    };
    match (test.before)().and_then(|()| (test.run)()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Skip>() => {
            println!("{error}");
            SKIPPED.into()
        }
        Err(error) => {
            eprintln!("error: {}", causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with what caused it.
fn causes(error: &Failure) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = Error::source(cause);
    }
    text
}

fn run_all(chosen: &[&Test], arguments: &Arguments, filtered: usize) -> ExitCode {
    println!("\nrunning {} test{}", chosen.len(), if chosen.len() == 1 { "" } else { "s" });
    let began = Instant::now();
    let (queue, ended) = (Mutex::new(chosen.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads(arguments.threads).min(chosen.len()) {
            scope.spawn(|| {
                loop {
                    // In a statement of its own, so that the queue is free while the test runs.
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some(test) = next else { break };
                    let (began, result) = (Instant::now(), run_one(test, arguments.shown));
                    let outcome = outcome(test.name, &result, began.elapsed());
                    println!("{outcome}");
                    ended.lock().expect("nobody panics with it").push((test.name, result));
                }
            });
        }
    });
    let ended = ended.into_inner().expect("nobody panicked with it");
    let (mut passed, mut skipped, mut failed) = (0, 0, Vec::new());
    for (name, result) in ended {
        match result {
            Ok(()) => passed += 1,
            Err(error) if error.is::<Skip>() => skipped += 1,
            Err(error) => failed.push((name, error)),
        }
    }
    let program = std::env::current_exe().unwrap_or_default();
    for (name, error) in &failed {
        println!("\n---- {name} ----\n{error}\nagain: {} --exact {name}", program.display());
    }
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {skipped} ignored; 0 measured; {filtered} \
         filtered out; finished in {:.2}s\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len(),
        began.elapsed().as_secs_f64()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { 101.into() }
}

/// How many tests run at once: one unless asked, since many of them watch the clock.
fn threads(asked: Option<usize>) -> usize {
    let variable = || std::env::var("WIRETAX_LAB_THREADS").ok()?.parse().ok();
    asked.or_else(variable).unwrap_or(1).max(1)
}

fn run_one(test: &Test, shown: bool) -> TestResult {
    let ended = Scenario::new(test.name).within(test.limit).run()?;
    if shown {
        print!("{}", ended.output);
    }
    judge(ended)
}

/// The line that is printed of a test.
fn outcome(name: &str, result: &TestResult, took: Duration) -> String {
    let took = took.as_secs_f64();
    match result {
        Ok(()) => format!("test {name} ... ok ({took:.2} s)"),
        Err(error) if error.is::<Skip>() => {
            let reason = error.to_string();
            note(name, &reason);
            format!("test {name} ... ignored, SKIPPED: {reason}")
        }
        Err(_) => format!("test {name} ... FAILED ({took:.2} s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Arguments {
        Arguments::read(words.split_whitespace().map(str::to_owned))
    }

    const ONE: Test = Test::new("fast_open_works", || Ok(()));

    #[test]
    fn libtests_arguments_are_taken() {
        let read = read("open --test-threads=2 --skip slow --nocapture --color always -q");
        assert_eq!((read.filters, read.without), (vec!["open".into()], vec!["slow".into()]));
        assert_eq!(
            (read.threads, read.shown, read.exact, read.list),
            (Some(2), true, false, false)
        );
    }

    #[test]
    fn filters_choose_tests() {
        assert!(read("").wants(&ONE) && read("open").wants(&ONE) && read("x open").wants(&ONE));
        assert!(!read("closed").wants(&ONE) && !read("--exact open").wants(&ONE));
        assert!(read("--exact fast_open_works").wants(&ONE));
        assert!(!read("--skip works").wants(&ONE) && !read("--ignored").wants(&ONE));
        assert!(!read("").wants(&Test::helper("fast_open_works", || Ok(()))));
    }
}
