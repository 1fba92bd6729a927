//! What each command prints: help, completions, man pages, JSON, reports, comparisons.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{QUICK, copy_folder, data, files_below, has, run, talk};
use serde_json::Value;

const COMMANDS: [&str; 16] = [
    "run",
    "handshake",
    "report",
    "compare",
    "doctor",
    "stacks",
    "roam",
    "probe",
    "sequence",
    "chain",
    "ech",
    "load",
    "completions",
    "man",
    "drivers",
    "guest",
];

fn json(output: &std::process::Output) -> Value {
    serde_json::from_str(&data(output)).unwrap_or_else(|error| panic!("{error}:\n{}", data(output)))
}

fn has_fields(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(!value[field].is_null(), "`{field}` is missing in {value:#}");
    }
}

/// A run to look at, of ten repeats.
fn measured(folder: &Path, out: &str) -> std::process::Output {
    let plan = ["handshake", "--mode", "tcp,tcp+tls13", "--rtt", "5ms", "--repeat", "10"];
    let rest = ["--no-calibration", "--json", "--out", out];
    let output = run(folder, &[&plan[..], &rest].concat());
    assert!(output.status.success(), "{}", talk(&output));
    output
}

#[test]
fn every_help_has_examples_and_exit_codes_and_fits_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let helps = COMMANDS.iter().map(|command| vec![*command, "--help"]);
    let helps = helps.chain([vec!["--help"], vec!["stacks", "haproxy", "--help"]]);
    for arguments in helps {
        let output = run(folder.path(), &arguments);
        assert!(output.status.success() && talk(&output).is_empty(), "{arguments:?}");
        let text = data(&output);
        assert!(text.contains("Examples:\n  wiretax "), "{arguments:?}: {text}");
        assert!(text.contains("Exit codes:\n  0    done\n"), "{arguments:?}: {text}");
        assert!(text.contains("130  interrupted"), "{arguments:?}: {text}");
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{arguments:?}");
    }
    let all = data(&run(folder.path(), &["--help"]));
    assert!(COMMANDS.iter().all(|command| all.contains(&format!("  {command} "))), "{all}");
    assert!(!all.contains("figures"), "for the project itself only");
}

#[test]
fn completions_exist_for_every_shell_and_parse() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(folder.path(), &["completions", shell]);
        let script = data(&output);
        assert!(output.status.success(), "{}", talk(&output));
        assert!(script.contains("handshake") && script.contains("concurrent"), "{shell}");
        fs::write(folder.path().join(shell), &script).unwrap();
        if has(shell) {
            let parsed = Command::new(shell).arg("-n").arg(folder.path().join(shell)).output();
            let parsed = parsed.unwrap();
            assert!(parsed.status.success(), "{shell}: {}", talk(&parsed));
        }
    }
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["man", "share/man1"]);
    assert!(output.status.success(), "{}", talk(&output));
    let pages: BTreeSet<String> =
        files_below(&folder.path().join("share/man1")).into_iter().collect();
    let mut expected: BTreeSet<String> =
        COMMANDS.iter().map(|command| format!("wiretax-{command}.1")).collect();
    expected.insert("wiretax.1".to_owned());
    assert!(expected.is_subset(&pages), "{pages:?}");
    assert!(!pages.contains("wiretax-figures.1"), "{pages:?}");
    for page in expected {
        let text = fs::read_to_string(folder.path().join("share/man1").join(&page)).unwrap();
        assert!(text.lines().any(|line| line.starts_with(".TH wiretax")), "{page}: {text}");
        assert!(text.contains("Exit codes:"), "{page}");
    }
}

#[test]
fn the_installer_puts_everything_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install.sh");
    let prefix = folder.path().join("a prefix");
    let program = env!("CARGO_BIN_EXE_wiretax");
    let output = Command::new(&script).arg(program).arg(&prefix).output().unwrap();
    assert!(output.status.success(), "{}", talk(&output));
    let files = files_below(&prefix);
    for file in [
        "bin/wiretax",
        "share/man/man1/wiretax.1",
        "share/man/man1/wiretax-probe.1",
        "share/bash-completion/completions/wiretax",
        "share/zsh/site-functions/_wiretax",
        "share/fish/vendor_completions.d/wiretax.fish",
    ] {
        assert!(files.iter().any(|name| name == file), "{file} is not among {files:?}");
        assert!(data(&output).contains(file), "{file}: {}", data(&output));
    }
    let version = Command::new(prefix.join("bin/wiretax")).arg("--version").output().unwrap();
    assert!(data(&version).starts_with("wiretax "));

    let output = Command::new(&script).arg("nowhere").arg(&prefix).output().unwrap();
    assert!(!output.status.success() && talk(&output).contains("nowhere"), "{}", talk(&output));
    let output = Command::new(&script).output().unwrap();
    assert!(!output.status.success() && talk(&output).contains("PREFIX"), "{}", talk(&output));
}

#[test]
fn doctor_prints_its_facts_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["doctor", "--json"]);
    let facts = json(&output);
    let facts = facts.as_array().unwrap();
    assert!(facts.len() > 8);
    for fact in facts {
        has_fields(fact, &["name", "detail"]);
        assert!(fact["ok"].is_boolean() && fact["required"].is_boolean(), "{fact}");
        let helped = fact["ok"] == true || fact["remedy"].is_string();
        assert!(helped, "what is missing says how to get it: {fact}");
    }
    let missing = facts.iter().any(|fact| fact["required"] == true && fact["ok"] == false);
    assert_eq!(output.status.code(), Some(if missing { 3 } else { 0 }));
    let text = data(&run(folder.path(), &["doctor"]));
    assert!(facts.iter().all(|fact| text.contains(fact["name"].as_str().unwrap())), "{text}");
}

#[test]
fn a_report_is_built_again_without_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let output = measured(folder.path(), "a");
    // Long before the end.
    let first = talk(&output).lines().filter(|line| line.starts_with("so far")).count();
    assert!(first == 1 && talk(&output).contains("each at 5ms: tcp+tls13 "), "{}", talk(&output));
    let measured = json(&output);
    has_fields(&measured, &["manifest", "handshake", "changes"]);
    has_fields(&measured["manifest"], &["schema", "plan", "plan_hash", "sessions", "libraries"]);
    has_fields(&measured["handshake"], &["rows", "samples"]);
    assert_eq!(measured["handshake"]["samples"], 20);
    assert_eq!(measured["changes"]["from"], "tcp+tls12");
    let before = files_below(folder.path());
    let html = fs::read(folder.path().join("a/report.html")).unwrap();
    let samples = fs::read(folder.path().join("a/samples.jsonl")).unwrap();

    let output = run(folder.path(), &["report", "a", "--json", "--html", "again.html"]);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(talk(&output).contains("again.html"), "{}", talk(&output));
    assert_eq!(json(&output), measured, "the same numbers");
    assert!(fs::read(folder.path().join("again.html")).unwrap() == html, "byte for byte");
    fs::remove_file(folder.path().join("again.html")).unwrap();

    // Where the file cannot be written the answer is there all the same.
    let output = run(folder.path(), &["report", "a", "--json", "--html", "nowhere/again.html"]);
    assert_eq!((output.status.code(), json(&output)), (Some(4), measured), "{}", talk(&output));

    let output = run(folder.path(), &["report", "a"]);
    assert!(data(&output).contains("tcp+tls13"), "{}", data(&output));
    assert!(fs::read(folder.path().join("a/report.html")).unwrap() == html, "byte for byte");
    assert!(fs::read(folder.path().join("a/samples.jsonl")).unwrap() == samples);
    assert_eq!(files_below(folder.path()), before);
}

/// Changes the time of each response in the samples of a folder: by the sample's number and its time.
fn retime(results: &Path, time: impl Fn(usize, f64) -> f64) {
    let path = results.join("samples.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let retimed = text.lines().enumerate().map(|(number, line)| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        let before = sample["values"]["first_response_ms"].as_f64().unwrap();
        sample["values"]["first_response_ms"] = time(number, before).into();
        format!("{sample}\n")
    });
    fs::write(&path, retimed.collect::<String>()).unwrap();
}

/// Results, and the same with each response half as late again.
fn before_and_after(folder: &Path) {
    measured(folder, "before");
    // What a busy machine adds is no part of the question.
    retime(&folder.join("before"), |number, _| 10.0 + 0.01 * number as f64);
    copy_folder(&folder.join("before"), &folder.join("after"));
    retime(&folder.join("after"), |_, time| time * 1.5);
}

#[test]
fn a_comparison_finds_what_got_slower_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    before_and_after(folder.path());
    for (a, b, code, word) in [
        ("before", "before", 0, "no difference"),
        ("before", "after", 1, "slower"),
        ("after", "before", 0, "faster"),
    ] {
        let output = run(folder.path(), &["compare", a, b]);
        assert_eq!(output.status.code(), Some(code), "{}{}", data(&output), talk(&output));
        let found = data(&output).contains(word) || talk(&output).contains("0 slower, 0 faster");
        assert!(found, "{a} {b}: {}", data(&output));
    }
    let output = run(folder.path(), &["compare", "before", "after", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let compared = json(&output);
    let cells = compared["times"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        has_fields(cell, &["key", "median_a", "median_b", "shift", "relative", "q_value"]);
        assert_eq!(cell["verdict"], "slower");
        let share = cell["relative"]["value"].as_f64().unwrap();
        assert!((share - 0.5).abs() < 0.1, "{share}");
    }
    assert_eq!(compared["failures"], Value::Array(Vec::new()));

    // A change that is smaller than what the user cares about.
    let output = run(folder.path(), &["compare", "before", "after", "--threshold", "80%"]);
    assert_eq!(output.status.code(), Some(0), "{}", data(&output));
    // A value that no study has.
    let output = run(folder.path(), &["compare", "before", "after", "--value", "colour_ms"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("hint: "), "{}", talk(&output));
}

#[test]
fn an_attempt_that_fails_more_often_is_a_regression() {
    let folder = tempfile::tempdir().unwrap();
    measured(folder.path(), "before");
    copy_folder(&folder.path().join("before"), &folder.path().join("after"));
    let path = folder.path().join("after/samples.jsonl");
    let failed = r#""outcome":{"kind":"failed","reason":"reset"}"#;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(r#""outcome":{"kind":"completed"}"#, failed)).unwrap();
    let one = fs::read_to_string(&path).unwrap();
    // One in ten still completes, so that there is a time to compare.
    let kept: String = one
        .lines()
        .zip(text.lines())
        .map(|(failed, good)| {
            let line = if good.contains("\"repeat\":0") { good } else { failed };
            format!("{line}\n")
        })
        .collect();
    fs::write(&path, kept).unwrap();
    let output = run(folder.path(), &["compare", "before", "after"]);
    assert_eq!(output.status.code(), Some(1), "{}{}", data(&output), talk(&output));
    assert!(talk(&output).contains("2 fail more often"), "{}", talk(&output));
}

#[test]
fn the_default_folder_is_new_each_time() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let output = run(folder.path(), &QUICK);
        assert!(output.status.success(), "{}", talk(&output));
    }
    let reports =
        files_below(folder.path()).into_iter().filter(|name| name.ends_with("report.html"));
    assert_eq!(reports.count(), 2);
}
