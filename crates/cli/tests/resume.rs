//! `wiretax run` stopped in each study's part, by an interrupt and by a kill, and continued: nothing is
//! lost and nothing is measured twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{has, processes_of, talk, wait_until, wiretax};

/// The studies of a run, in its order.
const STUDIES: [&str; 3] = ["handshake", "observe", "stacks"];
/// What stands in for cargo: it "builds" the driver without cryptography.
const CARGO: &str = "#!/bin/sh
set -e
mkdir -p \"$CARGO_TARGET_DIR/release\"
cp \"$(dirname \"$0\")/null.so\" \"$CARGO_TARGET_DIR/release/libdriver.so\"
";

/// A folder in which one library is built to be measured.
fn with_a_library() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (drivers, programs) = (folder.path().join("drivers"), folder.path().join("bin"));
    for needed in ["include", "shim", "build", "one-1"] {
        fs::create_dir_all(drivers.join(needed)).unwrap();
    }
    fs::create_dir_all(&programs).unwrap();
    fs::write(drivers.join("include/wiretax_driver.h"), "").unwrap();
    let text = "name = 'one-1'\nlibrary = 'Null'\nversion = '1'\ndefault = true\nkind = 'null'\n\
                about = 'for tests'\nlicence = 'MIT'\n";
    fs::write(drivers.join("one-1/driver.toml"), text).unwrap();
    fs::write(drivers.join("one-1/Cargo.toml"), "").unwrap();
    fs::write(programs.join("null.so"), tls_drivers::NULL).unwrap();
    lab_test::executable(&programs.join("cargo"), CARGO);
    let output = own(wiretax(folder.path()), folder.path())
        .args(["drivers", "build", "one-1", "--drivers", "drivers"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", talk(&output));
    folder
}

/// The command with the folder's cache and cargo, out of reach of the machine's Go and Java.
fn own(mut command: Command, folder: &Path) -> Command {
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("CARGO", folder.join("bin/cargo"));
    command
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = own(wiretax(folder), folder);
    command.arg("run").args(arguments).arg("--no-calibration");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Whole lines of the samples.
fn recorded(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("r/samples.jsonl")).unwrap_or_default();
    text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}

fn samples_of(study: &str, folder: &Path) -> usize {
    recorded(folder).matches(&format!("{{\"study\":\"{study}\"")).count()
}

/// Runs all, stopped by these signals in the parts of the studies, in turn; the samples' names.
fn stopped_by(signals: [&str; 3]) -> BTreeSet<String> {
    let folder = with_a_library();
    let folder = folder.path();
    let mut child = start(folder, &["--scale", "smoke", "--out", "r"]);
    for (study, signal) in STUDIES.into_iter().zip(signals) {
        let mut ended = false;
        wait_until(&format!("a sample of {study}"), || {
            ended = child.try_wait().unwrap().is_some();
            ended || samples_of(study, folder) > 0
        });
        assert!(!ended, "it ended before {study}: {}", talk(&child.wait_with_output().unwrap()));
        let to = [format!("-{signal}"), child.id().to_string()];
        assert!(Command::new("kill").args(to).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(!output.status.success(), "{study} was stopped: {}", talk(&output));
        if signal == "INT" {
            assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
            assert!(talk(&output).contains("wiretax run --resume r"), "{}", talk(&output));
        }
        wait_until("no process left", || processes_of(folder).is_empty());
        let before = recorded(folder);
        child = start(folder, &["--resume", "r"]);
        wait_until("more samples", || {
            ended = child.try_wait().unwrap().is_some();
            ended || recorded(folder).len() > before.len()
        });
        assert!(recorded(folder).starts_with(&before), "the samples of before stay as they are");
    }
    let output = child.wait_with_output().unwrap();
    let said = talk(&output);
    assert!(output.status.success(), "{said}");
    // Each answer comes when its study has ended, the last one with the screen.
    let answers = |words: &str| said.lines().filter(|line| line.starts_with(words)).count();
    let expected = [("handshake    ", 1), ("observe lab  ", 1), ("stacks       ", 0)];
    assert_eq!(expected.map(|(words, _)| answers(words)), expected.map(|(_, n)| n), "{said}");
    let run = record::Run::open(folder.join("r")).unwrap();
    let names: BTreeSet<String> = run.samples.iter().map(record::Sample::key).collect();
    assert_eq!(run.samples.len(), names.len(), "each once");
    assert_eq!(run.manifest.sessions.len(), 4);
    for study in STUDIES {
        assert!(samples_of(study, folder) > 0, "{study}");
    }
    names
}

#[test]
fn a_run_stopped_in_each_part_and_continued_loses_and_repeats_nothing() {
    if !has("kill") {
        return;
    }
    let one = stopped_by(["KILL", "INT", "KILL"]);
    let other = stopped_by(["INT", "KILL", "INT"]);
    assert_eq!(one, other);
}
