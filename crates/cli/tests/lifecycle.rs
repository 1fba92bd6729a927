//! However a run ends, what was measured stays, the rest goes, and it can go on from there.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    QUICK, at_terminal, data, has, namespaces_of, processes_of, run, samples_in, still_there, talk,
    wait_until, wiretax,
};

/// A plan of some seconds.
const PLAN: [&str; 8] =
    ["handshake", "--mode", "tcp,tcp+tls13", "--rtt", "20ms", "--repeat", "20", "--no-calibration"];
/// What it comes to.
const SAMPLES: usize = 40;

/// A run under way, in a process group of its own, with some samples measured.
struct Under {
    child: Child,
    results: PathBuf,
    namespaces: BTreeSet<PathBuf>,
}

fn start(folder: &Path) -> Under {
    let mut command = wiretax(folder);
    command.args(PLAN).args(["--out", "results"]).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let results = folder.join("results");
    wait_until("five samples", || samples_in(&results) >= 5);
    let own = namespaces_of(&[std::process::id()]);
    let namespaces: BTreeSet<_> =
        namespaces_of(&processes_of(folder)).difference(&own).cloned().collect();
    assert!(namespaces.len() >= 3, "the lab's, the client's and the server's: {namespaces:?}");
    Under { child, results, namespaces }
}

impl Under {
    fn signal(&self, signal: &str, whole_group: bool) {
        let sign = if whole_group { "-" } else { "" };
        let target = format!("{sign}{}", self.child.id());
        let sent = Command::new("kill").args([&format!("-{signal}"), "--", &target]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end, and looks that nothing is left but whole samples.
    fn end(self, folder: &Path) -> Output {
        let began = Instant::now();
        let output = self.child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
        wait_until("no process left", || processes_of(folder).is_empty());
        wait_until("no namespace left", || still_there(&self.namespaces).is_empty());
        assert!(samples_in(&self.results) < SAMPLES, "it was interrupted half way");
        output
    }
}

/// Goes on with the run: what is measured already stays as it is, the rest is added, all once.
fn resumes(folder: &Path) {
    let before = fs::read_to_string(folder.join("results/samples.jsonl")).unwrap();
    let whole = &before[..before.rfind('\n').map_or(0, |end| end + 1)];
    let output = run(folder, &["handshake", "--resume", "results", "--no-calibration"]);
    assert!(output.status.success(), "{}", talk(&output));
    let after = fs::read_to_string(folder.join("results/samples.jsonl")).unwrap();
    assert!(after.starts_with(whole), "the samples of before stay as they are");
    let run = record::Run::open(folder.join("results")).unwrap();
    let keys: BTreeSet<String> = run.samples.iter().map(record::Sample::key).collect();
    assert_eq!((run.samples.len(), keys.len()), (SAMPLES, SAMPLES), "each once");
    assert_eq!(run.manifest.sessions.len(), 2);
    assert!(folder.join("results/report.html").is_file());
}

fn says_how_to_go_on(output: &Output) {
    let text = talk(output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("wiretax handshake --resume results"), "{text}");
    assert_eq!(data(output), "", "no half result");
}

#[test]
fn an_interrupt_of_the_group_keeps_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let under = start(folder.path());
    under.signal("INT", true);
    says_how_to_go_on(&under.end(folder.path()));
    resumes(folder.path());
}

#[test]
fn a_termination_of_the_outer_process_keeps_the_samples() {
    let folder = tempfile::tempdir().unwrap();
    let under = start(folder.path());
    under.signal("TERM", false);
    says_how_to_go_on(&under.end(folder.path()));
    resumes(folder.path());
}

#[test]
fn a_kill_leaves_no_process_and_readable_samples() {
    let folder = tempfile::tempdir().unwrap();
    let under = start(folder.path());
    under.signal("KILL", false);
    let output = under.end(folder.path());
    assert_eq!(output.status.code(), None, "killed: {}", talk(&output));
    let read = record::Run::open(folder.path().join("results")).unwrap();
    assert_eq!(read.samples.len(), samples_in(&folder.path().join("results")));
    // A kill in the middle of a write leaves part of a line: it counts as none.
    let samples = folder.path().join("results/samples.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(samples).unwrap();
    file.write_all(b"{\"study\":\"hand").unwrap();
    drop(file);
    let output = run(folder.path(), &["report", "results"]);
    assert!(output.status.success(), "the half can be reported: {}", talk(&output));
    assert!(talk(&output).contains("was cut short after"), "{}", talk(&output));
    resumes(folder.path());
}

#[test]
fn control_c_at_a_terminal_keeps_the_samples() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = wiretax(folder.path()).get_program().to_string_lossy().into_owned();
    let command = format!("{program} {} --out results", PLAN.join(" "));
    let mut child = at_terminal(folder.path(), &command)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let results = folder.path().join("results");
    wait_until("five samples", || samples_in(&results) >= 5);
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(b"\x03").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keyboard);
    let screen = data(&output);
    assert_eq!(output.status.code(), Some(130), "{screen}");
    assert!(screen.contains("wiretax handshake --resume results"), "{screen}");
    assert!(screen.contains(" left"), "a bar with the time left: {screen}");
    assert!(samples_in(&results) < SAMPLES);
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    resumes(folder.path());
}

#[test]
fn an_interrupt_while_the_lab_measures_itself_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = wiretax(folder.path());
    let plan = &PLAN[..PLAN.len() - 1];
    command.args(plan).args(["--out", "results"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("a folder", || folder.path().join("results/manifest.json").is_file());
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    says_how_to_go_on(&output);
    assert_eq!(samples_in(&folder.path().join("results")), 0);
    wait_until("no process left", || processes_of(folder.path()).is_empty());
    resumes(folder.path());
}

fn signal(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// A kill leaves no output that was not there before.
#[test]
fn a_study_has_nothing_in_the_temporary_folder() {
    for (arguments, samples) in [
        (&["run", "--scale", "quick", "--no-calibration"][..], 1),
        (&["stacks", "--library", "openssl-built-in", "--scale", "quick"], 4),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let mut command = wiretax(folder.path());
        command.args(arguments).args(["--out", "results"]).env("TMPDIR", &temporary);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("samples", || samples_in(&folder.path().join("results")) >= samples);
        let there = || fs::read_dir(&temporary).unwrap().count();
        assert_eq!(there(), 0, "{arguments:?} measures");
        signal("-KILL", &child);
        child.wait().unwrap();
        wait_until("no process left", || processes_of(folder.path()).is_empty());
        assert_eq!(there(), 0, "{arguments:?} was killed");
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_no_death() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = through_shell(folder.path(), "ulimit -f 1; exec \"$@\"");
    let output = command.args(QUICK).args(["--out", "results"]).output().unwrap();
    let text = talk(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("results/manifest.json") && text.contains("hint: "), "{text}");
}

/// As `nohup` and a shell's `&` start it.
#[test]
fn signals_that_are_ignored_stay_so_and_a_termination_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = through_shell(folder.path(), "trap '' INT HUP; exec \"$@\"");
    command.args(PLAN).args(["--out", "results"]).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let results = folder.path().join("results");
    let measured = |more: usize| {
        wait_until("more samples", || samples_in(&results) >= more);
        samples_in(&results)
    };
    let mut samples = measured(1);
    for name in ["-INT", "-HUP"] {
        let group = format!("-{}", child.id());
        assert!(Command::new("kill").args([name, "--", &group]).status().unwrap().success());
        samples = measured(samples + 2);
    }
    signal("-TERM", &child);
    let output = child.wait_with_output().unwrap();
    says_how_to_go_on(&output);
    wait_until("no process left", || processes_of(folder.path()).is_empty());
}

/// The program with the arguments to come, started by a line of a shell.
fn through_shell(folder: &Path, line: &str) -> Command {
    let plain = wiretax(folder);
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(plain.get_program()).current_dir(folder);
    command.env("NO_COLOR", "1").env("WIRETAX_TEST_FOLDER", folder).stdin(Stdio::null());
    command
}

/// A command that has nothing to keep ends at once.
#[test]
fn an_interrupt_of_a_command_that_only_reads_is_said() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("fifo")).status().unwrap().success());
    for name in ["-INT", "-TERM"] {
        let mut command = wiretax(folder.path());
        command.args(["sequence", "fifo"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        let listens = || {
            let tasks = fs::read_dir(&tasks).unwrap().flatten();
            let mut names =
                tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
            names.any(|name| name == "signals\n")
        };
        wait_until("it listens", listens);
        signal(name, &child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name}");
        assert_eq!(talk(&output), "interrupted\n");
    }
}

#[test]
fn a_folder_is_written_by_one_run_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let under = start(folder.path());
    for arguments in [&["--resume", "results"][..], &["--out", "results"]] {
        let all = [&["handshake", "--no-calibration"][..], arguments].concat();
        let output = run(folder.path(), &all);
        let text = talk(&output);
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert_eq!(text.matches("error:").count(), 1, "{text}");
        assert!(text.contains("hint: "), "{text}");
        let locked = text.contains("another run writes it");
        assert!(locked || arguments[0] == "--out", "{text}");
        let who = format!("process {},", under.child.id());
        assert!(!locked || text.contains(&who), "the process that the user started: {text}");
    }
    under.signal("INT", false);
    says_how_to_go_on(&under.end(folder.path()));
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let spawn = |out: &str| {
        let mut command = wiretax(folder.path());
        command.args(QUICK).args(["--out", out]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    for child in [spawn("one"), spawn("two")] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", talk(&output));
    }
    for out in ["one", "two"] {
        let run = record::Run::open(folder.path().join(out)).unwrap();
        let completed = |sample: &&record::Sample| sample.outcome == record::Outcome::Completed;
        assert_eq!(run.samples.iter().filter(completed).count(), 3);
    }
    wait_until("no process left", || processes_of(folder.path()).is_empty());
}

#[test]
fn an_ordinary_user_needs_no_root() {
    if !has("setpriv") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Where the build is may be closed to others.
    let program = folder.path().join("wiretax");
    fs::copy(wiretax(folder.path()).get_program(), &program).unwrap();
    let root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let mut command = Command::new(if root { Path::new("setpriv") } else { &program });
    if root {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
    }
    let output = command
        .args(QUICK)
        .args(["--out", "results"])
        .current_dir(folder.path())
        .env("NO_COLOR", "1")
        .env("WIRETAX_TEST_FOLDER", folder.path())
        .output()
        .unwrap();
    let text = talk(&output);
    if output.status.code() == Some(3) && text.contains("may not make network namespaces") {
        assert!(text.contains("hint: "), "{text}");
        lab_test::skip!(lab_test::Need::Lab, "this system forbids user namespaces: {text}");
    }
    assert!(output.status.success(), "{text}");
    assert_eq!(samples_in(&folder.path().join("results")), 3);
    wait_until("no process left", || processes_of(folder.path()).is_empty());
}

#[test]
fn without_threads_or_descriptors_a_run_ends_with_an_error() {
    if !has("setpriv") {
        return;
    }
    use std::os::unix::fs::MetadataExt;
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        lab_test::skip!(lab_test::Need::Root, "a user with no other processes is needed");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("wiretax");
    fs::copy(wiretax(folder.path()).get_program(), &program).unwrap();
    let capture = folder.path().join("capture.pcap");
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data/tls1.2.pcap");
    fs::copy(data, &capture).unwrap();
    // Nobody else's: the limit is on the processes of a user.
    let user = (1_000_000 + std::process::id()).to_string();
    let handshake = [&QUICK[..], &["--out", "results"]].concat();
    let lab = ["lab", "--rtt", "2ms", "--", "true"];
    let (observe, probe) =
        (["observe", "capture.pcap"], ["probe", "localhost:9", "--timeout", "1s"]);
    let cases: [(&str, &[u32], &[&str]); 5] = [
        ("-u", &[1, 3, 5, 6, 7, 8, 9, 10], &lab),
        ("-u", &[7, 8, 9, 10, 11], &handshake),
        ("-u", &[1, 2, 3], &observe),
        ("-u", &[1], &probe),
        ("-n", &[8, 10, 11, 12], &handshake),
    ];
    for (limit, counts, arguments) in cases {
        for count in counts {
            let _ = fs::remove_dir_all(folder.path().join("results"));
            let script = format!("ulimit {limit} {count} && exec \"$@\"");
            let mut command = Command::new("setpriv");
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
            command.args(["bash", "-c", &script, "bash"]).arg(&program).args(arguments);
            command.current_dir(folder.path()).stdin(Stdio::null()).env("NO_COLOR", "1");
            command.env("HOME", folder.path()).env("WIRETAX_TEST_FOLDER", folder.path());
            let output = command.output().unwrap();
            let text = talk(&output);
            let case =
                format!("ulimit {limit} {count}: {arguments:?}: {:?}: {text}", output.status);
            assert!(!text.contains("panicked"), "{case}");
            match output.status.code() {
                Some(0) => {}
                Some(3) => assert!(text.contains("error: "), "{case}"),
                _ => panic!("{case}"),
            }
        }
    }
    wait_until("no process left", || processes_of(folder.path()).is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(folder.path(), &[&QUICK[..], &["--out", "a"]].concat());
    assert!(made.status.success(), "{}", talk(&made));
    for arguments in [
        "report a",
        "report a --json",
        "compare a a --json",
        "doctor",
        "doctor --json",
        "completions bash",
        "handshake --help",
    ] {
        // `:` reads nothing and is gone at once.
        let script = format!("{{ \"$0\" {arguments}; echo \"code $?\" >&2; }} | :");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(wiretax(folder.path()).get_program());
        let output = command.current_dir(folder.path()).env("NO_COLOR", "1").output().unwrap();
        let text = talk(&output);
        assert!(text.contains("code 0") && !text.contains("error"), "{arguments}: {text}");
        assert!(!text.contains("panicked"), "{arguments}: {text}");
    }
}

#[test]
fn without_a_terminal_progress_is_plain_lines() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ["handshake", "--mode", "tcp", "--rtt", "100ms", "--repeat", "8"];
    let arguments = [&plan[..], &["--no-calibration", "--out", "results"]].concat();
    let output = run(folder.path(), &arguments);
    let text = talk(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.lines().any(|line| line.contains("RTT 100ms") && line.contains("s left)")),
        "{text}"
    );
    assert!(!text.contains(['\r', '\x1b']), "{text:?}");
    let quiet = run(folder.path(), &["-q", "report", "results"]);
    assert_eq!(talk(&quiet), "", "quiet");
}

#[test]
fn colour_only_where_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let coloured = |mut command: Command| {
        let output = command.args(["report", "nowhere"]).output().unwrap();
        talk(&output).contains('\x1b') || data(&output).contains('\x1b')
    };
    let with = |option: &str| {
        let mut command = wiretax(folder.path());
        command.args(["--color", option]);
        command
    };
    assert!(!coloured(with("auto")) && !coloured(with("never")) && coloured(with("always")));
    if !has("script") {
        return;
    }
    for (no_color, expected) in [(true, false), (false, true)] {
        let program = wiretax(folder.path()).get_program().to_string_lossy().into_owned();
        let mut command = at_terminal(folder.path(), &format!("{program} report nowhere"));
        command.env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().unwrap();
        assert_eq!(data(&output).contains('\x1b'), expected, "{:?}", data(&output));
    }
}
