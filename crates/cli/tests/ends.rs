//! Runs that end: when the user wants to stop, whatever is waited for, and where the system grants too little.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::{QUICK, run, talk, wait_until, wiretax};

/// Starts the program without waiting for it.
fn started(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = wiretax(folder);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Whether a process has this file open.
fn has_open(process: u32, path: &Path) -> bool {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|open| open == path)
}

/// Sends SIGINT once; the program must end by it.
fn interrupt(mut child: Child) -> Output {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    wait_until("the end", || child.try_wait().expect("a child").is_some());
    child.wait_with_output().expect("its output")
}

fn fifo(folder: &Path) -> std::path::PathBuf {
    let path = folder.canonicalize().expect("a folder").join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

#[test]
fn a_pipe_without_a_writer_is_waited_for_until_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let child = started(folder.path(), &["observe", "fifo"]);
    wait_until("the pipe is open", || has_open(child.id(), &path));
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    assert!(talk(&output).contains("interrupted"), "{}", talk(&output));
}

#[test]
fn a_silent_writer_is_waited_for_until_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let child = started(folder.path(), &["observe", "fifo"]);
    // Opening waits for the reader; nothing is ever written.
    let writer = fs::File::options().write(true).open(&path).unwrap();
    wait_until("the pipe is open", || has_open(child.id(), &path));
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    drop(writer);
}

/// Runs the program under a limit of the shell.
fn limited(folder: &Path, limit: &str, line: &[&str]) -> Output {
    let program = wiretax(folder).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(program).args(line);
    shell.current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null());
    shell.output().expect("a shell")
}

#[test]
fn limits_under_which_a_program_is_aborted_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (limit, line, names) in [
        ("-s 64", &["--version"][..], "`ulimit -s 1024`"),
        ("-v 400000", &QUICK[..], "`ulimit -v 1048576`"),
        ("-v 400000", &["lab", "--", "true"], "`ulimit -v 1048576`"),
    ] {
        let output = limited(folder.path(), limit, line);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(3), "{limit} {line:?}: {said}");
        assert!(output.status.signal().is_none() && said.contains(names), "{limit}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_run_that_fails_at_its_start_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let line: Vec<&str> = QUICK.into_iter().chain(["--out", "deep/r"]).collect();
    let output = limited(folder.path(), "-n 20", &line);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(!folder.path().join("deep").exists(), "{}", talk(&output));
}

#[test]
fn an_output_that_cannot_be_made_is_named_as_it_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("r");
    let manifest = record::Manifest::new(
        serde_json::json!({ "handshake": {} }),
        record::Session::begin(false),
    );
    record::Recorder::create(&results, manifest).unwrap().finish().unwrap();
    for line in [
        &["report", "r", "--html", "/nosuch/x.html"][..],
        &["observe", "r/manifest.json", "--html", "/nosuch/x.html"],
    ] {
        let said = talk(&run(folder.path(), line));
        assert!(!said.contains("partial") && !said.contains("x.html."), "{said}");
    }
}

#[test]
fn a_trace_that_results_name_is_a_regular_file_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("bus.down");
    fs::write(&trace, "1\n2\n3\n").unwrap();
    let line = "page --link trace:bus.down@20ms --no-calibration --out r";
    let line: Vec<&str> = line.split(' ').collect();
    let child = started(folder.path(), &line);
    wait_until("the manifest", || folder.path().join("r/manifest.json").exists());
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130), "{}", talk(&output));
    fs::remove_file(&trace).unwrap();
    assert!(Command::new("mkfifo").arg(&trace).status().unwrap().success());
    let mut child = started(folder.path(), &["page", "--resume", "r"]);
    wait_until("the end", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("not a regular file"), "{said}");
}
