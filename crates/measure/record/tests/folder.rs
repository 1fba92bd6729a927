//! Real folders: what is written, what a death leaves, what a bad folder gets.

#[path = "folder/hostile.rs"]
mod hostile;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use fault::Explain;
use record::{
    Manifest, Outcome, Problem, Recorder, Run, Sample, Session, TornLine, Warning, export_csv,
};
use serde_json::json;

fn plan() -> serde_json::Value {
    json!({"repeat": 20, "rtt": ["20ms"]})
}

fn manifest() -> Manifest {
    Manifest::new(plan(), Session::begin(false))
}

fn point(rtt: &str) -> BTreeMap<String, String> {
    [("mode".to_owned(), "tls13".to_owned()), ("rtt".to_owned(), rtt.to_owned())].into()
}

fn sample(repeat: u32) -> Sample {
    Sample {
        study: "handshake".into(),
        point: point("20ms"),
        repeat,
        seed: 7,
        at_unix_ms: 1,
        outcome: Outcome::Completed,
        values: [("ready_ms".to_owned(), f64::from(repeat) + 0.1)].into(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: "wiretax handshake".into(),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_reads_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("a/b");
    let mut recorder = Recorder::create(&dir, manifest()).unwrap();
    recorder.record(&sample(0)).unwrap();
    recorder
        .update_manifest(|m| {
            m.calibration = Some(json!({"p50_us": 0.6}));
            m.warn(Warning::new("w", "r"));
        })
        .unwrap();
    recorder.record(&sample(1)).unwrap();
    // Readable while it is written.
    assert_eq!(Run::open(&dir).unwrap().samples.len(), 2);
    let last = recorder.finish().unwrap();
    let run = Run::open(&dir).unwrap();
    assert_eq!((run.samples, run.torn), (vec![sample(0), sample(1)], None));
    assert_eq!(run.manifest, last);
    assert!(run.manifest.ended() >= run.manifest.started());
    assert_eq!(names(&dir), ["lock", "manifest.json", "samples.jsonl"]);
}

#[test]
fn a_resumed_run_knows_what_is_done() {
    let root = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(root.path(), manifest()).unwrap();
    let mut failed = sample(1);
    failed.outcome = Outcome::Failed { reason: "refused".into() };
    recorder.record(&sample(0)).unwrap();
    recorder.record(&failed).unwrap();
    drop(recorder);
    let path = root.path().join("samples.jsonl");
    let whole = fs::metadata(&path).unwrap().len();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"study\":\"ha").unwrap();

    let mut resumed = Recorder::resume(root.path(), &plan(), Session::begin(false)).unwrap();
    assert_eq!(resumed.torn, Some(TornLine { line: 3, bytes: 12 }));
    assert_eq!(fs::metadata(&path).unwrap().len(), whole);
    let done = |rtt, repeat| resumed.finished.contains("handshake", &point(rtt), repeat);
    assert!(done("20ms", 0) && done("20ms", 1) && !done("20ms", 2) && !done("50ms", 0));
    assert_eq!(resumed.finished.len(), 2);
    resumed.recorder.record(&sample(2)).unwrap();
    resumed.recorder.finish().unwrap();
    let run = Run::open(root.path()).unwrap();
    assert_eq!((run.samples.len(), run.torn, run.manifest.sessions.len()), (3, None, 2));
}

#[test]
fn another_plan_is_refused_with_what_differs() {
    let root = tempfile::tempdir().unwrap();
    drop(Recorder::create(root.path(), manifest()).unwrap());
    let other = json!({"repeat": 10, "rtt": ["20ms"]});
    let error = Recorder::resume(root.path(), &other, Session::begin(false)).unwrap_err();
    assert!(matches!(error.problem, Problem::OtherPlan { .. }));
    assert!(error.to_string().contains("repeat was 20, is 10"), "{error}");
    assert_eq!(Run::open(root.path()).unwrap().manifest.sessions.len(), 1);
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let first = Recorder::create(root.path(), manifest()).unwrap();
    for error in [
        Recorder::resume(root.path(), &plan(), Session::begin(false)).unwrap_err(),
        Recorder::create(root.path(), manifest()).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(matches!(error.problem, Problem::Locked { .. }), "{text}");
        assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    }
    drop(first);
    let error = Recorder::create(root.path(), manifest()).unwrap_err();
    assert!(matches!(error.problem, Problem::HasResults), "{error}");
    assert!(Recorder::resume(root.path(), &plan(), Session::begin(false)).is_ok());
}

#[test]
fn bad_folders_get_clear_errors_and_nothing_is_left() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Recorder::create(&path, manifest()).unwrap_err();
        assert!(matches!(error.problem, Problem::NotAFolder), "{error}");
    }
    // A file name that is too long fails below a folder that was to be made.
    let deep = root.path().join("new").join("x".repeat(300));
    assert!(Recorder::create(&deep, manifest()).is_err());
    assert_eq!(names(root.path()), ["file"]);

    for error in [
        Run::open(root.path()).unwrap_err(),
        Recorder::resume(root.path(), &plan(), Session::begin(false)).unwrap_err(),
        Run::open(root.path().join("missing")).unwrap_err(),
    ] {
        assert!(matches!(error.problem, Problem::NotResults { missing: "manifest.json" }));
    }
    assert_eq!(names(root.path()), ["file"]);
    fs::write(root.path().join("manifest.json"), "{\"schema\":\"9.0\"}").unwrap();
    let error = Run::open(root.path()).unwrap_err();
    assert!(matches!(error.problem, Problem::NewerSchema { .. }));
    assert_eq!(error.remedy().as_deref(), Some("use a newer wiretax"), "{error}");
}

#[test]
fn a_manifest_that_cannot_be_written_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    fs::create_dir(&dir).unwrap();
    // Something in the way of the samples, whoever the user is.
    fs::create_dir(dir.join("samples.jsonl")).unwrap();
    assert!(Recorder::create(&dir, manifest()).is_err());
    assert_eq!(names(&dir), ["lock", "samples.jsonl"]);
}

#[test]
fn a_corrupt_line_stops_a_resumption() {
    let root = tempfile::tempdir().unwrap();
    drop(Recorder::create(root.path(), manifest()).unwrap());
    fs::write(root.path().join("samples.jsonl"), "{}\n").unwrap();
    let error = Recorder::resume(root.path(), &plan(), Session::begin(false)).unwrap_err();
    assert!(matches!(error.problem, Problem::Corrupt { line: 1, .. }), "{error}");
    assert_eq!(fs::read(root.path().join("samples.jsonl")).unwrap(), b"{}\n");
}

#[test]
fn csv_is_wide_and_quoted() {
    let root = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(root.path(), manifest()).unwrap();
    recorder.record(&sample(0)).unwrap();
    let mut other = sample(1);
    other.outcome = Outcome::Failed { reason: "said \"no\", twice".into() };
    other.values = [("up_bytes".to_owned(), 517.0)].into();
    other.labels.insert("group".into(), "X25519".into());
    recorder.record(&other).unwrap();
    let mut out = Vec::new();
    assert_eq!(export_csv(root.path(), &mut out).unwrap(), 2);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "study,repeat,seed,at_unix_ms,outcome,reason,after_ms,command,point.mode,point.rtt,value.ready_ms,value.up_bytes,label.group\n\
         handshake,0,7,1,completed,,,wiretax handshake,tls13,20ms,0.1,,\n\
         handshake,1,7,1,failed,\"said \"\"no\"\", twice\",,wiretax handshake,tls13,20ms,,517,X25519\n"
    );
}

/// Not a test of its own: the process that the tests below start.
#[test]
#[ignore = "a helper process"]
fn writer() {
    let dir = std::env::var_os("RECORD_TEST_DIR").unwrap();
    let mut recorder = match Recorder::create(dir, manifest()) {
        Ok(recorder) => recorder,
        Err(error) => return println!("failed {}", error.in_one_text()),
    };
    for repeat in 0..10_000_000 {
        match recorder.record(&sample(repeat)) {
            Ok(()) => println!("recorded {repeat}"),
            Err(error) => {
                println!("failed {error}");
                return;
            }
        }
    }
}

fn start(dir: &Path, shell: &str) -> std::process::Child {
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" --exact writer --ignored --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env("RECORD_TEST_DIR", dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn what_is_recorded_survives_kill_9() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let mut child = start(&dir, "");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let reported = lines.by_ref().filter(|line| line.contains("recorded ")).nth(999).unwrap();
    // The process is writing; nobody else may.
    let error = Recorder::resume(&dir, &plan(), Session::begin(false)).unwrap_err();
    assert!(matches!(error.problem, Problem::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {},", child.id())), "{error}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(reported.ends_with("recorded 999"), "{reported}");
    let resumed = Recorder::resume(&dir, &plan(), Session::begin(false)).unwrap();
    // Every one that it told of is there.
    assert!(resumed.finished.len() >= 1000);
    assert!(resumed.recorder.manifest().sessions[0].ended.is_none());
    drop(resumed);
    let run = Run::open(&dir).unwrap();
    assert!(run.samples.iter().enumerate().all(|(at, sample)| sample.repeat as usize == at));
}

#[test]
fn a_file_size_limit_is_a_full_disk() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    // 32 or 64 KiB, as the shell counts blocks.
    let child = start(&dir, "trap '' XFSZ; ulimit -f 64;");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("failed") && text.contains("the disk is full or a quota"), "{text}");
    let run = Run::open(&dir).unwrap();
    assert_eq!(run.torn, None);
    assert_eq!(run.samples.len(), text.lines().filter(|line| line.contains("recorded ")).count());
}

#[test]
fn a_disk_that_is_full_at_the_start_leaves_nothing_to_go_on_with() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    let child = start(&dir, "trap '' XFSZ; ulimit -f 0;");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("failed") && text.contains("the disk is full or a quota"), "{text}");
    assert!(!text.contains("--resume") && !dir.exists(), "{text}");
}
