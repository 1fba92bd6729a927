//! Running the program as a user does.
#![allow(dead_code)] // Each test file uses its part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use lab_test::Need;

/// The program, quiet of colours and away from any results folder of the checkout.
pub fn wiretax(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiretax"));
    command.current_dir(folder).env("NO_COLOR", "1").env_remove("RUST_LOG").stdin(Stdio::null());
    command.env(MARK, folder);
    // A shell's background jobs ignore SIGINT, and so would what they start.
    child::with_default_signals(&mut command);
    command
}

/// A command line at a terminal of its own; what is typed there is its standard input.
pub fn at_terminal(folder: &Path, line: &str) -> Command {
    let mut command = Command::new("script");
    command.args(["-qefc", line, "/dev/null"]).current_dir(folder).env(MARK, folder);
    child::with_default_signals(&mut command).stdin(Stdio::null());
    command
}

/// By this variable the processes of a run are found again, whatever their parent.
const MARK: &str = "WIRETAX_TEST_FOLDER";

/// A measurement of about a second: three connections.
pub const QUICK: [&str; 8] =
    ["handshake", "--mode", "tcp", "--rtt", "0.4ms", "--repeat", "3", "--no-calibration"];

/// Runs the program to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    wiretax(folder).args(arguments).output().expect("the program starts")
}

/// What was printed on stderr.
pub fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What was printed on stdout.
pub fn data(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything below a folder, as relative names.
pub fn files_below(folder: &Path) -> Vec<String> {
    fn walk(base: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(base, &path, found);
            } else {
                found.push(path.strip_prefix(base).expect("below").display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

/// Whether a program of the system is there; says so if it is not.
pub fn has(program: &str) -> bool {
    let found = lab_test::program(program).is_some();
    if !found {
        lab_test::skipped(Need::of_program(program), &format!("{program} is not on this machine"));
    }
    found
}

/// The processes that runs in this folder have left.
pub fn processes_of(folder: &Path) -> Vec<u32> {
    let mark = format!("{MARK}={}", folder.display());
    let of_run = |pid: &u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    processes().into_iter().filter(of_run).collect()
}

fn processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The network namespaces of these processes, those of each thread: nodes are threads.
pub fn namespaces_of(processes: &[u32]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for pid in processes {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        let names = tasks.flatten().map(|task| task.path().join("ns/net"));
        found.extend(names.filter_map(|name| std::fs::read_link(name).ok()));
    }
    found
}

/// Which of these network namespaces any process of the machine is still in.
pub fn still_there(namespaces: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    namespaces_of(&processes()).intersection(namespaces).cloned().collect()
}

/// Waits until something holds, a bounded time.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "waited 60 s for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whole lines in the samples of a folder of results.
pub fn samples_in(results: &Path) -> usize {
    let text = std::fs::read(results.join("samples.jsonl")).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Copies the files of a folder.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for name in files_below(from) {
        std::fs::copy(from.join(&name), to.join(&name)).expect("a copy");
    }
}
