//! Running scenarios, each in a process of its own, and telling how they ended.

use std::error::Error;
use std::io::{Read, Seek};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Exit status of a scenario that cannot run here.
const SKIPPED: u8 = 77;
/// The longest that a scenario may take.
const LIMIT: Duration = Duration::from_secs(90);

pub type TestResult = Result<(), Box<dyn Error>>;

/// A test.
#[derive(Clone, Copy)]
pub struct Test {
    pub name: &'static str,
    pub run: fn() -> TestResult,
}

/// Why a test was not run.
#[derive(Debug)]
struct Skip(String);

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Skip {}

/// Ends a test as skipped.
pub fn skip<T>(reason: impl Into<String>) -> Result<T, Box<dyn Error>> {
    Err(Box::new(Skip(reason.into())))
}

/// Ends a test as failed unless this holds.
pub fn check(holds: bool, otherwise: impl FnOnce() -> String) -> TestResult {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

/// Looks every few milliseconds until `look` finds something, for a bounded time.
pub fn until<T>(
    what: &str,
    mut look: impl FnMut() -> Result<Option<T>, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited 30 s in vain for: {what}").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs the tests whose names contain a filter, as libtest does, or one scenario.
pub fn main(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = arguments.as_slice()
        && flag == "--scenario"
    {
        return scenario(tests, name);
    }
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let wanted = |test: &&Test| {
        filters.is_empty() || filters.iter().any(|filter| test.name.contains(filter.as_str()))
    };
    let chosen: Vec<_> = tests.iter().filter(wanted).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failures = Vec::new();
    for test in chosen {
        let began = Instant::now();
        match process(test.name) {
            Ok((Some(0), _)) => {
                println!("test {} ... ok ({:.2} s)", test.name, began.elapsed().as_secs_f64());
            }
            Ok((Some(code), output)) if code == i32::from(SKIPPED) => {
                println!("test {} ... SKIPPED: {}", test.name, output.trim_end());
            }
            Ok((code, output)) => {
                println!("test {} ... FAILED", test.name);
                failures.push((test.name, format!("exit status {code:?}\n{output}")));
            }
            Err(error) => {
                println!("test {} ... FAILED", test.name);
                failures.push((test.name, error.to_string()));
            }
        }
    }
    for (name, failure) in &failures {
        let again = format!("cargo test -p cli --test gateway -- {name}");
        println!("\n---- {name} ----\n{failure}\nagain: {again}");
    }
    println!("\ntest result: {}\n", if failures.is_empty() { "ok" } else { "FAILED" });
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn scenario(tests: &[Test], name: &str) -> ExitCode {
    let Some(test) = tests.iter().find(|test| test.name == name) else {
        eprintln!("there is no scenario {name}");
        return 2.into();
    };
    match (test.run)() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            if error.is::<Skip>() { SKIPPED.into() } else { ExitCode::FAILURE }
        }
    }
}

/// Runs a scenario to its end: its exit status and its output.
fn process(name: &str) -> Result<(Option<i32>, String), Box<dyn Error>> {
    let mut output = tempfile::tempfile()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--scenario", name])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .spawn()?;
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            break Err("it took too long");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut text = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    match status {
        Ok(status) => Ok((status.code(), text)),
        Err(problem) => Err(format!("{problem}:\n{text}").into()),
    }
}
