//! `wiretax roam` as a user runs it where there is no guest, and its results as a reader has them.

use std::fs;
use std::path::Path;
use std::process::Output;

use record::{Manifest, Outcome, Recorder, Sample, Session};
use serde_json::{Value, json};

use crate::support::{data, files_below, run, talk, wiretax};

/// Runs with a cache that has no guest.
fn ran(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = wiretax(folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).args(arguments);
    command.output().expect("the program starts")
}

#[test]
fn without_a_guest_it_says_how_to_get_one_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = ran(folder.path(), &["roam", "--out", "r"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("hint: "), "{}", talk(&output));
    assert!(talk(&output).contains("guest fetch --with daemons"), "{}", talk(&output));
    assert_eq!((data(&output).as_str(), files_below(folder.path()).len()), ("", 0));
}

#[test]
fn what_is_wrong_is_said_before_a_guest_is_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let case = "name = \"mine\"\ntunnel = \"ipsec\"\n\
                attachments = [{ ssid = \"a\", channel = 1 }, { ssid = \"b\", channel = 6 }]\n";
    fs::write(folder.path().join("case.toml"), case).unwrap();
    fs::write(folder.path().join("typo.toml"), case.replace("tunnel", "tunel")).unwrap();
    for (arguments, says) in [
        (&["--scenario", "macsec-same"][..], &["macsec-same`", "macsec-same-ssid"][..]),
        (&["--scenario", "nowhere.toml"], &["nowhere.toml", "No such file"]),
        (&["--scenario", "case.toml"], &["case.toml", "subnet", "hint: write domain = \"each\""]),
        (&["--scenario", "typo.toml"], &["typo.toml", "unknown field `tunel`"]),
        (&["--rate", "3gbit"], &["3gbit", "1000pps"]),
        (&["--rates", "1000pps"], &["--rates", "--rate"]),
        (&["--change", "scanlist"], &["scanlist", "scan-list"]),
        (&["--trigger", "luck"], &["luck", "cut-silent"]),
        (&["--trial", "10min"], &["a trial of", "2s to 120s"]),
        (&["--scale", "huge"], &["huge", "quick"]),
    ] {
        let output = ran(folder.path(), &[&["roam"], arguments].concat());
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for part in says {
            assert!(said.contains(part), "{arguments:?} does not say `{part}`: {said}");
        }
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    assert_eq!(files_below(folder.path()), ["case.toml", "typo.toml"]);
}

/// A sample as the study records it.
fn sample(scenario: &str, repeat: u32, outage: f64) -> Sample {
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let values = [
        ("outage_ms", outage),
        ("outage_without_keys_ms", outage - 20.0),
        ("up_outage_ms", outage - 50.0),
        ("down_outage_ms", outage),
        ("up_gap_ms", outage - 49.0),
        ("down_gap_ms", outage + 1.0),
        ("down_t1_ms", outage - 20.0),
        ("down_t4_ms", 20.0),
        ("down_unexplained_ms", 1.0),
        ("up_lost", outage - 50.0),
        ("down_lost", outage),
    ];
    Sample {
        study: "roam".to_owned(),
        point: text(&[("scenario", scenario), ("rate", "1000pps"), ("sweep", "paper")]),
        repeat,
        seed: 1,
        at_unix_ms: 1_780_000_000_000,
        outcome: Outcome::Completed,
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        labels: text(&[("down_phases", "[[\"t1\",0.0,300.0],[\"t4\",300.0,320.0]]")]),
        attachments: Vec::new(),
        command: format!("wiretax roam --scenario {scenario}"),
    }
}

/// A folder of results of the paper's three cases.
fn results(folder: &Path) {
    let cases = ["ipsec-different-ssid", "macsec-different-ssid", "macsec-same-ssid"];
    let sweep = json!({ "name": "paper", "scenario": cases, "rate": ["1000pps"], "repeat": 3 });
    let plan = json!({ "roam": { "sweeps": [sweep], "seed": 1, "trial": "6s" } });
    let manifest = Manifest::new(plan, Session::begin(false));
    let mut recorder = Recorder::create(folder, manifest).unwrap();
    for repeat in 0..3 {
        for (case, outage) in cases.iter().zip([1000.0, 850.0, 300.0]) {
            recorder.record(&sample(case, repeat, outage + f64::from(repeat))).unwrap();
        }
    }
    recorder.finish().unwrap();
}

#[test]
fn results_are_an_answer_tables_beside_the_paper_and_json() {
    let folder = tempfile::tempdir().unwrap();
    results(&folder.path().join("r"));
    let output = run(folder.path(), &["report", "r"]);
    assert!(output.status.success(), "{}", talk(&output));
    let text = data(&output);
    for part in [
        "cut off for 1001 ms in ipsec-different-ssid",
        "order holds at 1000pps",
        "t1 discovery",
        "Figure 8",
        "865.2",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let html = fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(
        html.contains("A handoff as it went") && html.contains("Where the time of an outage goes")
    );
    let output = run(folder.path(), &["report", "r", "--json"]);
    let value: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(value["roam"]["rows"].as_array().map(Vec::len), Some(3));
    assert_eq!(value["roam"]["order"][0]["holds"], true);
    assert_eq!(value["roam"]["rows"][2]["down"]["outage_ms"]["value"], 301.0);
}

#[test]
fn results_are_resumed_where_a_guest_is() {
    let folder = tempfile::tempdir().unwrap();
    results(&folder.path().join("r"));
    let before = fs::read(folder.path().join("r/samples.jsonl")).unwrap();
    let output = ran(folder.path(), &["roam", "--resume", "r"]);
    assert_eq!(output.status.code(), Some(3), "{}", talk(&output));
    assert!(talk(&output).contains("guest fetch --with daemons"), "{}", talk(&output));
    assert_eq!(fs::read(folder.path().join("r/samples.jsonl")).unwrap(), before);
    // Another plan is not that of the folder.
    let output = ran(folder.path(), &["handshake", "--resume", "r"]);
    assert!(talk(&output).contains("was not measured by `wiretax handshake`"), "{}", talk(&output));
}
