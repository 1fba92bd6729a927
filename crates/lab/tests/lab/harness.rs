//! Running tests, each in a process of its own, and telling how they ended.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use lab::{Backend, EnterOptions, Lab, LabOptions, Node};

/// Exit status of a scenario that cannot run here; its reason is the last line of its output.
const SKIPPED: i32 = 77;

/// The longest that a scenario may take.
pub const LIMIT: Duration = Duration::from_secs(60);

pub type TestResult = Result<(), Box<dyn Error>>;

/// Why a test was not run.
#[derive(Debug)]
pub struct Skip(pub String);

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Skip {}

/// Ends a test as skipped.
pub fn skip(reason: impl Into<String>) -> TestResult {
    Err(Box::new(Skip(reason.into())))
}

#[derive(Clone, Copy)]
pub enum Kind {
    /// Runs as a scenario: its function enters the lab.
    Inside(fn() -> TestResult),
    /// Runs in the test program and starts scenarios itself.
    Outside(fn() -> TestResult),
    /// No test: a scenario that others start.
    Helper(fn() -> TestResult),
}

#[derive(Clone, Copy)]
pub struct Test {
    pub name: &'static str,
    pub kind: Kind,
}

pub const fn inside(name: &'static str, run: fn() -> TestResult) -> Test {
    Test { name, kind: Kind::Inside(run) }
}

pub const fn outside(name: &'static str, run: fn() -> TestResult) -> Test {
    Test { name, kind: Kind::Outside(run) }
}

pub const fn helper(name: &'static str, run: fn() -> TestResult) -> Test {
    Test { name, kind: Kind::Helper(run) }
}

/// Runs the tests whose names contain a filter, as libtest does.
pub fn run_all(tests: &[Test], arguments: &[String]) -> ExitCode {
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let exact = arguments.iter().any(|a| a == "--exact");
    let wanted = |test: &&Test| {
        !matches!(test.kind, Kind::Helper(_))
            && (filters.is_empty()
                || filters
                    .iter()
                    .any(|f| if exact { test.name == *f } else { test.name.contains(*f) }))
    };
    let chosen: Vec<_> = tests.iter().filter(wanted).collect();
    if arguments.iter().any(|a| a == "--list") {
        chosen.iter().for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut skipped, mut failures) = (0, 0, Vec::new());
    for test in &chosen {
        let began = Instant::now();
        let result = match test.kind {
            Kind::Outside(run) => run(),
            Kind::Inside(_) | Kind::Helper(_) => Scenario::new(test.name).run().and_then(judge),
        };
        let took = began.elapsed().as_secs_f64();
        match result {
            Ok(()) => {
                passed += 1;
                println!("test {} ... ok ({took:.2} s)", test.name);
            }
            Err(error) if error.is::<Skip>() => {
                skipped += 1;
                println!("test {} ... SKIPPED: {error}", test.name);
            }
            Err(error) => {
                println!("test {} ... FAILED", test.name);
                failures.push((test.name, error));
            }
        }
    }
    for (name, error) in &failures {
        println!(
            "\n---- {name} ----\n{error}\nagain: cargo test -p lab --test lab -- --exact {name}"
        );
    }
    let state = if failures.is_empty() { "ok" } else { "FAILED" };
    let filtered = tests.len() - chosen.len();
    println!(
        "\ntest result: {state}. {passed} passed; {} failed; {skipped} skipped; {filtered} filtered out\n",
        failures.len()
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In the scenario's process.
pub fn run_scenario(scenario: fn() -> TestResult) -> ExitCode {
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

/// How a scenario ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
}

/// A scenario's result as that of a test.
pub fn judge(ended: Ended) -> TestResult {
    match ended.status.code() {
        Some(0) => Ok(()),
        Some(SKIPPED) => skip(ended.output.lines().last().unwrap_or("no reason given")),
        _ => Err(format!("{}\n{}", ended.status, ended.output).into()),
    }
}

/// A scenario to be started.
pub struct Scenario {
    pub command: Command,
}

/// A scenario that runs. Killed when dropped.
pub struct Running {
    pub child: Child,
    output: File,
}

impl Scenario {
    pub fn new(name: &str) -> Scenario {
        Scenario::of(&std::env::current_exe().expect("the test program's path"), name)
    }

    pub fn of(program: &Path, name: &str) -> Scenario {
        let mut command = Command::new(program);
        command.args(["--scenario", name]).stdin(Stdio::null());
        Scenario { command }
    }

    pub fn start(mut self) -> Result<Running, Box<dyn Error>> {
        let output = tempfile::tempfile()?;
        self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        Ok(Running { child: self.command.spawn()?, output })
    }

    pub fn run(self) -> Result<Ended, Box<dyn Error>> {
        self.start()?.wait()
    }
}

impl Running {
    pub fn output(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.output.rewind().and_then(|()| self.output.read_to_end(&mut bytes));
        read.expect("a temporary file can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn wait(mut self) -> Result<Ended, Box<dyn Error>> {
        let status = until("the scenario's end", LIMIT, || Ok(self.child.try_wait()?));
        match status {
            Ok(status) => Ok(Ended { status, output: self.output() }),
            Err(error) => Err(format!("{error}; its output:\n{}", self.output()).into()),
        }
    }

    /// Waits for a line that begins with `start`; what follows it.
    pub fn wait_for(&mut self, start: &str) -> Result<String, Box<dyn Error>> {
        until(start, LIMIT, || {
            let output = self.output();
            let found = output.lines().find_map(|line| line.strip_prefix(start).map(str::to_owned));
            // Only whole lines: the next one must have begun, or the text end in a newline.
            if found.is_some() && output.ends_with('\n') {
                return Ok(found);
            }
            match self.child.try_wait()? {
                Some(status) => Err(format!("{status} before `{start}`:\n{output}").into()),
                None => Ok(None),
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks every few milliseconds until `look` finds something, for a bounded time.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {} s in vain for: {what}", limit.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Enters the lab; in a scenario only.
pub fn enter() -> TestResult {
    let force = std::env::var_os("LAB_TEST_USER_NAMESPACE").is_some();
    lab::enter(&EnterOptions::new().always_user_namespace(force))?;
    Ok(())
}

/// The backend that the environment asks for, veth if none.
pub fn backend() -> Backend {
    std::env::var("LAB_TEST_BACKEND").map_or(Backend::Veth, |name| name.parse().unwrap())
}

pub fn options() -> LabOptions {
    LabOptions { seed: 7, backend: backend(), ..LabOptions::default() }
}

/// Enters the lab and joins a client and a server.
pub fn pair(rtt: &str) -> Result<(Lab, Node, Node, lab::Link), Box<dyn Error>> {
    enter()?;
    let mut lab = Lab::new(options())?;
    let client = lab.add_node("client")?;
    let server = lab.add_node("server")?;
    let path = linkmodel::Path::symmetric(rtt.parse()?);
    let link = lab.connect(&client, &server, &path)?;
    Ok((lab, client, server, link))
}
