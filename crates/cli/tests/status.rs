//! How commands end: a status of its own for each kind of end, the same in all of them.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use record::{Manifest, Outcome, Recorder, Sample, Session};
use serde_json::json;

use crate::support::{data, run, talk};

/// Runs each line; the status and every text must come.
fn ends(folder: &Path, cases: &[(&str, i32, &str)]) {
    for (line, status, says) in cases {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = run(folder, &arguments);
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(*status), "{line}: {said}{}", data(&output));
        assert!(said.contains(says), "{line} does not say `{says}`: {said}");
        assert!(said.matches("error:").count() <= 1, "{line}: {said}");
    }
}

/// Results of a study with one sample, whose point nobody can read.
fn unreadable(folder: &Path, study: &str) {
    let manifest = Manifest::new(json!({ study: {} }), Session::begin(false));
    let mut recorder = Recorder::create(folder.join(study), manifest).unwrap();
    let sample = Sample {
        study: study.to_owned(),
        point: BTreeMap::new(),
        repeat: 0,
        seed: 1,
        at_unix_ms: 1,
        outcome: Outcome::Completed,
        values: BTreeMap::new(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: String::new(),
    };
    recorder.record(&sample).unwrap();
    recorder.finish().unwrap();
}

#[test]
fn nothing_measured_is_five_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let studies = ["handshake", "link", "roam", "page", "stacks", "haproxy", "observe", "strange"];
    for study in studies {
        unreadable(folder.path(), study);
        ends(folder.path(), &[(&format!("report {study}"), 5, "error:")]);
    }
    // A capture without a frame: magic number, version 2.4, Ethernet.
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    fs::write(folder.path().join("empty.pcap"), &header).unwrap();
    // One segment from the middle of a connection: Ethernet, IPv4, TCP with ACK alone.
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let tcp = [0x9c, 0x40, 1, 0xbb, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
    let frame = [&ethernet[..], &ip, &tcp].concat();
    let record = [1_700_000_000, 0, 54, 54].map(u32::to_le_bytes).concat();
    fs::write(folder.path().join("middle.pcap"), [header, record, frame].concat()).unwrap();
    fs::write(folder.path().join("empty.json"), "").unwrap();
    ends(
        folder.path(),
        &[
            ("observe empty.pcap", 5, "there is no frame"),
            ("observe empty.pcap --json", 5, "there is no frame"),
            ("observe middle.pcap", 5, "no handshake of TCP or QUIC"),
            ("observe middle.pcap --json", 5, "no handshake of TCP or QUIC"),
            (
                "handshake --mode tcp --rtt 200ms --timeout 5ms --repeat 2 --no-calibration --out late",
                5,
                "no connection got a response",
            ),
            ("report late", 5, "no connection got a response"),
            ("compare late late", 5, "no measured cell in common"),
            ("gateway survey merge /dev/null", 5, "no record of a survey"),
            ("gateway survey merge empty.json --json", 5, "no record of a survey"),
        ],
    );
}

#[test]
fn a_device_is_no_file_that_is_read() {
    let folder = tempfile::tempdir().unwrap();
    ends(
        folder.path(),
        &[
            ("page --har /dev/zero", 2, "it is a device"),
            ("gateway survey merge /dev/zero", 2, "it is a device"),
            ("chain /dev/zero", 2, "it is a device"),
            ("handshake --plan /dev/urandom", 2, "it is a device"),
        ],
    );
}

#[test]
fn names_and_addresses_that_cannot_be_are_the_caller_s() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    ends(
        folder.path(),
        &[
            ("probe 127.0.0.1 --name a..b", 2, "neither a DNS name nor an IP address"),
            ("chain --server 127.0.0.1 --name a..b", 2, "neither a DNS name nor an IP address"),
            ("gateway connect --listen 127.0.0.1:0 --to x:1 --name a..b", 2, "neither a DNS name"),
            ("ech --public-name a..b", 2, "not a DNS name"),
            ("ech --name a..b", 2, "not a DNS name"),
            (&format!("load https://{server}/ --name a..b"), 2, "neither a DNS name"),
            (
                &format!("load https://{server}/ --source 192.0.2.1 -n 1"),
                2,
                "not an address of this machine",
            ),
            ("run --scale=--version", 2, "`--version`"),
            ("run --scale huge", 2, "huge"),
        ],
    );
    let said = talk(&run(folder.path(), &["run", "--scale=--version"]));
    assert!(!said.contains("Usage") && said.contains("hint: "), "{said}");
}

#[test]
fn a_probe_without_a_handshake_is_a_bad_answer() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    // Every connection is closed at once.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let line = format!("probe {server} --repeat 1 --timeout 200ms");
    let json = format!("{line} --json --insecure");
    ends(folder.path(), &[(&line, 1, "no answer in TLS"), (&json, 1, "no answer in TLS")]);
}
