//! `wiretax compare` and `wiretax observe tickets` on records of `wiretax observe`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{data, run, talk};

/// 2026-11-21T13:00:00Z, in nanoseconds.
const START: u64 = 1_795_266_000_000_000_000;
const MINUTE: u64 = 60_000_000_000;

/// Records of an hour, one each second: the handshake takes so long, and every so many fail.
fn hour(from: u64, ms: f64, fails: u64) -> String {
    let mut text = String::new();
    for number in 0..3600_u64 {
        // Spread evenly over a fifth, in an order that has no meaning.
        let took = ms * (1.0 + 0.2 * ((number * 7919 % 3600) as f64 / 3600.0));
        let failed = number % fails == 0;
        let class = match (failed, number % 3) {
            (true, _) => "failed",
            (false, 0) => "resumed",
            (false, _) => "full",
        };
        let (version, time) = match failed {
            true => ("null".to_owned(), "null".to_owned()),
            false => ("\"TLS 1.3\"".to_owned(), ((took * 1e6) as u64).to_string()),
        };
        writeln!(
            text,
            r#"{{"kind":"connection","schema":1,"run":"{from}","number":{number},"client":"192.0.{}.{}","client_network":"192.0.{}.0/24","sni":"www.example","transport":"tcp","version":{version},"class":"{class}","psk_offered":{},"first_frame":{},"tls_handshake":{time},"round_trip":20000000,"uncertain":[]}}"#,
            number % 4,
            number % 200,
            number % 4,
            class == "resumed",
            from + number * 1_000_000_000,
        )
        .unwrap();
    }
    text
}

fn in_folder(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
}

fn worse(output: &std::process::Output) -> Vec<Value> {
    let compared: Value = serde_json::from_str(&data(output)).unwrap();
    let changes = compared["changes"].as_array().unwrap().iter();
    changes.filter(|change| change["verdict"] == "slower").cloned().collect()
}

#[test]
fn a_deployment_is_held_up_by_what_got_worse() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    in_folder(folder, "before.json", &hour(START, 20.0, 50));
    in_folder(folder, "same.json", &hour(START + 60 * MINUTE, 20.0, 50));
    in_folder(folder, "slower.json", &hour(START + 60 * MINUTE, 26.0, 50));
    in_folder(folder, "failing.json", &hour(START + 60 * MINUTE, 20.0, 10));
    for (after, code, said) in [
        ("same.json", 0, "0 worse, 0 better"),
        ("slower.json", 1, "0 better"),
        ("failing.json", 1, "0 better"),
    ] {
        let output = run(folder, &["compare", "before.json", after]);
        assert_eq!(output.status.code(), Some(code), "{}{}", data(&output), talk(&output));
        assert!(talk(&output).contains(said), "{after}: {}", talk(&output));
    }
    let output = run(folder, &["compare", "before.json", "slower.json"]);
    for wanted in ["time, all", "time, TLS 1.3, full", "time, from 192.0.2.0/24", "slower"] {
        assert!(data(&output).contains(wanted), "{wanted}: {}", data(&output));
    }
    let slower = worse(&run(folder, &["compare", "before.json", "slower.json", "--json"]));
    assert!(slower.iter().all(|change| change["measure"] == "time"), "{slower:?}");
    let all = slower.iter().find(|change| change["group"]["by"] == "all").unwrap();
    assert!((all["shift"]["value"].as_f64().unwrap() - 6.6).abs() < 0.2, "{all}");
    let failing = worse(&run(folder, &["compare", "before.json", "failing.json", "--json"]));
    assert!(failing.iter().all(|change| change["measure"] == "failure"), "{failing:?}");
    // Back again it is better, and a change that is small enough does not count.
    let back = run(folder, &["compare", "slower.json", "before.json"]);
    assert!(back.status.success() && talk(&back).contains("0 worse"), "{}", talk(&back));
    let few = ["compare", "before.json", "slower.json", "--threshold", "50%"];
    assert!(run(folder, &few).status.success());
}

#[test]
fn two_times_of_one_file_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = hour(START, 20.0, 50) + &hour(START + 60 * MINUTE, 26.0, 50);
    in_folder(folder, "day.json", &text);
    let of = |before: &str, after: &str| {
        run(folder, &["compare", "day.json", "--before", before, "--after", after])
    };
    let output = of("..2026-11-21T14:00", "2026-11-21T14:00..");
    assert_eq!(output.status.code(), Some(1), "{}{}", data(&output), talk(&output));
    assert!(data(&output).contains("3600 handshakes before, 3600 after"), "{}", data(&output));
    let output = of("..2026-11-21T13:30", "2026-11-21T13:30..2026-11-21T14:00");
    assert_eq!(output.status.code(), Some(0), "{}{}", data(&output), talk(&output));
    let output = of("..2026-11-20", "2026-11-21..");
    assert_eq!(output.status.code(), Some(5), "{}", talk(&output));
    assert!(talk(&output).contains("no TLS handshake within ..2026-11-20T00:00:00Z"));
    for (arguments, said) in [
        (&["compare", "day.json", "--before", "..2026-11-21"][..], "--after"),
        (&["compare", "day.json", "--before", "noon..", "--after", ".."], "`noon` is not a time"),
        (&["compare", "day.json"], "AFTER"),
    ] {
        let output = run(folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(talk(&output).contains(said), "{arguments:?}: {}", talk(&output));
    }
}

#[test]
fn what_are_no_records_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    let capture = captures.join("tls1.2.pcap").display().to_string();
    in_folder(folder, "hour.json", &hour(START, 20.0, 50));
    in_folder(folder, "text", "so long");
    let observed = run(folder, &["observe", &capture, "--parquet", "few"]);
    assert!(observed.status.success(), "{}", talk(&observed));
    for (before, after, code, said) in [
        ("hour.json", capture.as_str(), 2, "is a capture, not the records of one"),
        ("hour.json", "text", 2, "holds no records"),
        ("hour.json", "nowhere", 2, "nowhere"),
        ("hour.json", "few", 5, "nothing can be compared"),
    ] {
        let output = run(folder, &["compare", before, after]);
        assert_eq!(output.status.code(), Some(code), "{after}: {}", talk(&output));
        assert!(talk(&output).contains(said), "{after}: {}", talk(&output));
        assert!(data(&output).is_empty() && talk(&output).contains("hint: ") || after == "nowhere");
    }
    let output = run(folder, &["compare", "hour.json", "hour.json", "--value", "ready_ms"]);
    assert_eq!(output.status.code(), Some(2), "{}", talk(&output));
    assert!(talk(&output).contains("choose from tls_handshake_ms"), "{}", talk(&output));
}

#[test]
fn clients_that_come_back_name_a_lifetime_for_tickets() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Each client comes every 200 seconds.
    in_folder(folder, "hour.json", &hour(START, 20.0, 50));
    let output = run(folder, &["observe", "tickets", "hour.json"]);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(data(&output).starts_with("Let tickets live 5 min (300 s): "), "{}", data(&output));
    let output = run(folder, &["observe", "tickets", "hour.json", "--json"]);
    let answer: Value = serde_json::from_str(&data(&output)).unwrap();
    assert_eq!(answer["advice"]["lifetime_s"], 300, "{answer}");
    assert_eq!(answer["lifetimes"].as_array().unwrap().len(), 12);
    let none = run(folder, &["observe", "tickets", "hour.json", "--time", "..2026-11-21"]);
    assert_eq!(none.status.code(), Some(5), "{}", talk(&none));
    // The same from a capture, of which there are too few.
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    let capture = captures.join("openssl-3.0-modes.pcap").display().to_string();
    let output = run(folder, &["observe", &capture, "--tickets"]);
    assert!(output.status.success(), "{}", talk(&output));
    assert!(data(&output).contains("No lifetime can be named"), "{}", data(&output));
}

#[test]
fn any_number_of_threads_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    let mut arguments = vec!["observe".to_owned()];
    for name in ["tls1.2.pcap", "openssl-3.0-modes.pcap", "tls-early-alert.pcap"] {
        arguments.push(captures.join(name).display().to_string());
    }
    let on = |threads: &str| {
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.extend(["--threads", threads]);
        let output = run(folder.path(), &arguments);
        assert!(output.status.success(), "{}", talk(&output));
        data(&output)
    };
    assert_eq!(on("1"), on("2"));
    assert_eq!(on("1"), on("5"));
}
