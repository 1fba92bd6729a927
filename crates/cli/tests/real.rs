//! Real TLS libraries and a real HAProxy: built from their sources and measured, as a user does. They are
//! built for minutes, so `make test` leaves these tests out and `.ci/run` runs them:
//! `cargo test -p cli --test it real -- --ignored`.

use std::path::Path;
use std::process::{Command, Output};

use record::{Outcome, Run};

use crate::support::{data, talk, wiretax};

const LIBRARIES: [&str; 2] = ["rustls-ring", "openssl-3.5.5"];

/// The program with a cache that stays between the tests of a build folder.
fn cached(folder: &Path) -> Command {
    let mut command = wiretax(folder);
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command
}

pub(crate) fn succeeds(folder: &Path, arguments: &[&str]) -> Output {
    let output = cached(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}\n{}{}", data(&output), talk(&output));
    output
}

fn build(folder: &Path) {
    build_these(folder, &LIBRARIES);
}

fn build_these(folder: &Path, libraries: &[&str]) {
    succeeds(folder, &[&["drivers", "build"], libraries].concat());
}

/// Every sample is complete, and each library has some with this value, which is what it can be. What a
/// library says of itself is a sample too, without it.
fn measured(folder: &Path, libraries: &[&str], value: &str) {
    let run = Run::open(folder).unwrap();
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}: {:?}", sample.command, sample.labels);
    }
    for library in libraries {
        let of_it = run
            .samples
            .iter()
            .filter(|sample| sample.point.get("library").is_some_and(|name| name == library));
        let values: Vec<f64> =
            of_it.filter_map(|sample| sample.values.get(value).copied()).collect();
        assert!(!values.is_empty() && values.iter().all(|found| *found > 0.0), "{values:?}");
    }
}

#[test]
#[ignore = "builds TLS libraries for minutes: .ci/run runs it"]
fn real_libraries_are_built_measured_and_printed() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let list = data(&succeeds(folder.path(), &["drivers", "list"]));
    for library in LIBRARIES {
        let line = list.lines().find(|line| line.starts_with(library)).unwrap();
        assert!(!line.contains("not built"), "{line}");
    }
    let libraries = LIBRARIES.join(",");
    let sweep =
        ["stacks", "--libraries", &libraries, "--workload", "full,resume", "--threads", "1"];
    let rest =
        ["--wire", "memory", "--version", "tls1.3", "--key", "ecdsa-p256", "--client", "same"];
    let few = ["--repeat", "4", "--ms", "50", "--out", "r"];
    let output = succeeds(folder.path(), &[&sweep[..], &rest, &few].concat());
    measured(&folder.path().join("r"), &LIBRARIES, "server_cpu_us");
    for title in ["OpenSSL 3.5.5", "rustls 0."] {
        assert!(data(&output).contains(title), "{title} is printed: {}", data(&output));
    }
}

#[test]
#[ignore = "builds TLS libraries for minutes: .ci/run runs it"]
fn instructions_are_counted_under_valgrind() {
    if lab_test::program("valgrind").is_none() {
        lab_test::skip!(lab_test::Need::Valgrind, "valgrind is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let libraries = LIBRARIES.join(",");
    let sweep = ["stacks", "--libraries", &libraries, "--workload", "full", "--tool", "callgrind"];
    succeeds(folder.path(), &[&sweep[..], &["--repeat", "1", "--out", "r"]].concat());
    measured(&folder.path().join("r"), &LIBRARIES, "server_instructions");
}

#[test]
#[ignore = "builds HAProxy for minutes: .ci/run runs it"]
fn a_real_haproxy_is_built_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let places = ["--scenario", "full,chain", "--proxies", "2", "--threads", "1"];
    let few = ["--duration", "300ms", "--repeat", "1", "--library", "openssl-3.5.5", "--out", "r"];
    let output = succeeds(folder.path(), &[&["stacks", "haproxy"], &places[..], &few].concat());
    measured(&folder.path().join("r"), &["openssl-3.5.5"], "connections_per_second");
    assert!(data(&output).contains("openssl-3.5.5"), "{}", data(&output));
}

/// HTTP/3 by both ways in which HAProxy has QUIC: the library's interface, and around one that has none.
#[test]
#[ignore = "builds HAProxy for minutes: .ci/run runs it"]
fn a_real_haproxy_answers_over_http3() {
    let libraries = ["awslc-5.12.0", "openssl-3.5.5"];
    let folder = tempfile::tempdir().unwrap();
    build_these(folder.path(), &libraries);
    let names = libraries.join(",");
    let places = ["--scenario", "quic", "--locks", "pthread,light", "--threads", "1"];
    let few = ["--duration", "300ms", "--repeat", "1", "--library", &names, "--out", "r"];
    let output = succeeds(folder.path(), &[&["stacks", "haproxy"], &places[..], &few].concat());
    let results = folder.path().join("r");
    // A run in which HAProxy did not count what the client did, or resumed anything, is no complete one.
    measured(&results, &libraries, "connections_per_second");
    measured(&results, &libraries, "answered_per_connection");
    let run = Run::open(&results).unwrap();
    assert_eq!(run.samples.len(), 4);
    for sample in &run.samples {
        assert_eq!(sample.values["client_resumed_share"], 0.0, "{}", sample.command);
        assert!(!sample.values.contains_key("handshakes_per_connection"), "of TLS over TCP alone");
    }
    assert!(data(&output).contains("over QUIC"), "{}", data(&output));
}
