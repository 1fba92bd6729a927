//! Running other programs' builds.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// How many jobs a build may have at once, as cargo says.
#[must_use]
pub fn jobs() -> String {
    std::env::var("NUM_JOBS").unwrap_or_else(|_| "1".to_owned())
}

/// A command in a folder, without what cargo sets for Rust.
#[must_use]
pub fn tool(program: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // A makefile of others is to make its own choices.
    for name in ["MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS", "RUSTFLAGS", "CFLAGS", "TARGET", "HOST"] {
        command.env_remove(name);
    }
    command.current_dir(folder);
    command
}

/// Runs a command to its end.
///
/// # Panics
/// If it cannot be started, or fails; its output is in the build's log.
pub fn run(command: &mut Command) {
    let shown = format!("{command:?}");
    println!("{shown}");
    let status = command.status().unwrap_or_else(|error| {
        panic!("{shown} could not be started: {error}; hint: is the program installed?")
    });
    assert!(status.success(), "{shown} failed: {status}");
}
