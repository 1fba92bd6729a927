//! Running the program as a user does.
#![allow(dead_code)] // Each test file uses its part.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program, quiet of colours and away from any results folder of the checkout.
pub fn wiretax(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiretax"));
    command.current_dir(folder).env("NO_COLOR", "1").env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

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
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        eprintln!("SKIPPED: {program} is not on this machine");
    }
    found
}
