//! `wiretax stacks haproxy` as far as it goes without a build of HAProxy, and the report of its results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::{data, run, talk, wiretax};
use haproxy_study::{Plan, STUDY, label, value};
use record::{Manifest, Outcome, Recorder, Sample, Session};
use serde_json::{Value, json};

/// Results as two libraries give them, 3.0.2 half as fast; its runs with two threads failed.
fn results(folder: &Path) {
    let sweep = "name = 'a', library = ['openssl-1.1.1w', 'openssl-3.0.2'], threads = [1, 2]";
    let plan = Plan::parse(&format!("[scale.x]\nsweep = [{{ {sweep} }}]"), "x").unwrap();
    let manifest = Manifest::new(json!({ "haproxy": plan.value() }), Session::begin(false));
    let mut recorder = Recorder::create(folder, manifest).unwrap();
    for run in plan.runs(2).unwrap() {
        let slow = run.point.library == "openssl-3.0.2";
        let per_second = if slow { 500.0 } else { 1000.0 } + f64::from(run.repeat);
        let values = [(value::PER_SECOND, per_second), (value::SERVER_CPU, 1e6 / per_second)];
        let labels = [
            (label::HAPROXY, "3.0.11"),
            (label::SOURCE, "3.0.11-1+deb13u3"),
            (label::RUNS_ON, if slow { "OpenSSL 3.0.2 of 2022" } else { "OpenSSL 1.1.1w of 2023" }),
            (label::LIGHT, "yes"),
        ];
        let outcome = match slow && run.point.threads == 2 {
            true => Outcome::Failed { reason: "it ended with signal 11".to_owned() },
            false => Outcome::Completed,
        };
        let sample = Sample {
            study: STUDY.to_owned(),
            point: run.point.fields(),
            repeat: run.repeat,
            seed: 0,
            at_unix_ms: 0,
            outcome,
            values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            labels: owned(&labels),
            attachments: Vec::new(),
            command: run.command,
        };
        recorder.record(&sample).unwrap();
    }
    recorder.finish().unwrap();
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_report_of_haproxy_s_results_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    results(&folder.path().join("r"));
    let output = run(folder.path(), &["report", "r"]);
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let text = data(&output);
    for part in ["10 proxies in a row", "openssl-3.0.2", "501", "it ended with signal 11"] {
        assert!(text.contains(part), "no `{part}`: {text}");
    }
    let html = fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    for part in [
        "HAProxy on TLS libraries",
        "With HAProxy itself",
        "OpenSSL 3.0.2 of 2022",
        "3.0.11-1+deb13u3",
        "wiretax stacks haproxy --haproxy 3.0.11 --scenario full",
        "--library openssl-3.0.2",
    ] {
        assert!(html.contains(part), "no `{part}` in the report");
    }
    assert!(!text.contains("tcp+tls12"), "nothing of other studies: {text}");

    let output = run(folder.path(), &["report", "r", "--json"]);
    let value: Value = serde_json::from_str(&data(&output)).unwrap();
    assert!(value["handshake"].is_null() && value["stacks"].is_null(), "{value:#}");
    assert_eq!(value["haproxy"]["proxies"], 10, "{value:#}");
    assert_eq!(value["haproxy"]["programs"][1]["runs_on"], "OpenSSL 3.0.2 of 2022");
    let rows = value["haproxy"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let failed = rows.iter().filter(|row| row["failed"] == 3 && row["runs"] == 0);
    assert_eq!(failed.count(), 2, "{value:#}");
    let again = fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(again == html, "byte for byte");
}

#[test]
fn what_there_is_not_is_answered_by_a_list() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in [
        (&["--library", "openssl-9"][..], &["`openssl-9`", "hint: "][..]),
        (&["--scenario", "half"], &["half", "full, chain"]),
        (&["--locks", "none"], &["none", "pthread, light"]),
        (&["--tls", "ssl3"], &["ssl3", "tls1.2, tls1.3"]),
        (&["--sdk", "nothing"], &["NAME=DIR"]),
        (&["--sdk", "openssl-3.5.5=/none", "--haproxy", "1.0"], &["1.0", "3.0.11, 2.6.12"]),
        (&["--sdk", "openssl-3.5.5=/none", "--threads", "0"], &["1 to 256 threads"]),
        (&["--librarie", "x"], &["--library"]),
    ] {
        let output = wiretax(folder.path())
            .env("XDG_CACHE_HOME", folder.path().join("cache"))
            .args(["stacks", "haproxy"])
            .args(arguments)
            .output()
            .unwrap();
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{arguments:?}: {said}");
        assert!(data(&output).is_empty() && !folder.path().join("results").exists());
    }
}

#[test]
fn without_a_library_it_says_how_to_build_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = wiretax(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args(["stacks", "haproxy"])
        .output()
        .unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("hint: `wiretax drivers build` builds some"), "{said}");
    assert!(!folder.path().join("results").exists());

    // A folder that holds no library: named, and nothing is measured.
    let given = ["stacks", "haproxy", "--sdk", "openssl-3.5.5=/none"];
    let output = wiretax(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args(given)
        .output()
        .unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("/none") && said.contains("on none of the libraries"), "{said}");
    assert!(!folder.path().join("results").exists());
}
