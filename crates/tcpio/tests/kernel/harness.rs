//! Running tests in the lab: each is a process of its own, `--scenario NAME`, with a time limit,
//! because entering the lab re-executes the program. What cannot run here says SKIPPED and why.

#![allow(dead_code, reason = "two test programs include this; each uses a part of it")]

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use lab::{Backend, EnterOptions, Lab, LabOptions, Link, Node};
use linkmodel::Path;

/// Exit status of a scenario that cannot run here; its reason is the last line of its output.
const SKIPPED: i32 = 77;

/// The longest that a scenario may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The longest that one step of a scenario may take.
pub const WAIT: Duration = Duration::from_secs(20);

pub type Failure = Box<dyn Error + Send + Sync>;
pub type TestResult<T = ()> = Result<T, Failure>;

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
pub fn skip<T>(reason: impl Into<String>) -> TestResult<T> {
    Err(Box::new(Skip(reason.into())))
}

/// A test's name and its function, which enters the lab.
#[derive(Clone, Copy)]
pub struct Test(pub &'static str, pub fn() -> TestResult);

/// Runs what the command line asks for: one scenario, or all tests whose names contain a filter.
pub fn main(program: &str, tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some([_, name]) = arguments.windows(2).find(|pair| pair[0] == "--scenario") {
        let Some(test) = tests.iter().find(|test| test.0 == name) else {
            eprintln!("there is no scenario {name}");
            return 2.into();
        };
        return run_scenario(test.1);
    }
    run_all(program, tests, &arguments)
}

fn run_all(program: &str, tests: &[Test], arguments: &[String]) -> ExitCode {
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen: Vec<_> = tests
        .iter()
        .filter(|test| filters.is_empty() || filters.iter().any(|f| test.0.contains(*f)))
        .collect();
    if arguments.iter().any(|a| a == "--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.0));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut skipped, mut failures) = (0, 0, Vec::new());
    for Test(name, _) in &chosen {
        let began = Instant::now();
        let result = start(name);
        let took = began.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                passed += 1;
                println!("test {name} ... ok ({took:.2} s)");
            }
            Err(error) if error.is::<Skip>() => {
                skipped += 1;
                println!("test {name} ... SKIPPED: {error}");
            }
            Err(error) => {
                println!("test {name} ... FAILED ({took:.2} s)");
                failures.push((name, error));
            }
        }
    }
    for (name, error) in &failures {
        println!("\n---- {name} ----\n{error}\nagain: cargo test {program} -- {name}");
    }
    let state = if failures.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {state}. {passed} passed; {} failed; {skipped} skipped; {} filtered out\n",
        failures.len(),
        tests.len() - chosen.len()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In the scenario's process.
fn run_scenario(scenario: fn() -> TestResult) -> ExitCode {
    match scenario() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Skip>() => {
            println!("{error}");
            ExitCode::from(SKIPPED as u8)
        }
        Err(error) => {
            let mut causes = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                causes += &format!(": {cause}");
                source = cause.source();
            }
            eprintln!("error: {causes}");
            ExitCode::FAILURE
        }
    }
}

/// A child that is killed when dropped.
pub struct Kill(pub Child);

impl Drop for Kill {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs one scenario in a process of its own and judges how it ended.
fn start(name: &str) -> TestResult {
    let mut output = tempfile::tempfile()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--scenario", name]).stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let mut child = Kill(command.spawn()?);
    let ended = until("the scenario's end", LIMIT, || Ok(child.0.try_wait()?));
    let mut text = || -> TestResult<String> { whole(&mut output) };
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if status.code() == Some(SKIPPED) => {
            skip(text()?.lines().last().unwrap_or("no reason given"))
        }
        Ok(status) => Err(format!("{status}\n{}", text()?).into()),
        Err(error) => Err(format!("{error}; its output:\n{}", text()?).into()),
    }
}

fn whole(file: &mut File) -> TestResult<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Looks every few milliseconds until `look` finds something, for a bounded time.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> TestResult<Option<T>>,
) -> TestResult<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {} s in vain for: {what}", limit.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Two nodes and the link between them.
pub struct Pair {
    pub lab: Lab,
    pub client: Node,
    pub server: Node,
    pub link: Link,
}

/// Enters the lab and joins a client and a server by the pump.
pub fn pair(path: &Path) -> TestResult<Pair> {
    joined(Backend::Veth, path)
}

/// Enters the lab and joins a client and a server by a veth pair alone.
pub fn direct() -> TestResult<Pair> {
    joined(Backend::Direct, &Path::default())
}

fn joined(backend: Backend, path: &Path) -> TestResult<Pair> {
    lab::enter(&EnterOptions::new())?;
    let mut lab = Lab::new(LabOptions { seed: 7, backend, ..LabOptions::default() })?;
    let client = lab.add_node("client")?;
    let server = lab.add_node("server")?;
    let link = lab.connect(&client, &server, path)?;
    Ok(Pair { lab, client, server, link })
}
