//! `wiretax observe` on captures whose directions have two clocks, and on those that have frames twice.

use std::path::{Path, PathBuf};

use crate::support::{data, run, talk};
use serde_json::Value;

/// A frame: its time in nanoseconds, and its bytes.
type Frame = (u64, Vec<u8>);

/// The frames of one TLS 1.3 connection.
fn frames() -> Vec<Frame> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../proto/tracker/tests/data");
    let bytes = std::fs::read(folder.join("tls13_psk_succesfull.pcap")).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut all, mut at) = (Vec::new(), 24);
    while at < bytes.len() {
        let nanos = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * 1000;
        let end = at + 16 + word(at + 8) as usize;
        all.push((nanos, bytes[at + 16..end].to_vec()));
        at = end;
    }
    all
}

fn is_client(frame: &[u8]) -> bool {
    frame[36..38] == 443_u16.to_be_bytes()
}

fn write(folder: &Path, name: &str, mut frames: Vec<Frame>) -> String {
    frames.sort_by_key(|(at, _)| *at);
    let mut pcap = lab_test::Pcap::new(1);
    for (at, frame) in frames {
        pcap.push(at, &frame);
    }
    let path = folder.join(name);
    std::fs::write(&path, pcap.as_bytes()).unwrap();
    path.display().to_string()
}

/// The connections of `--json`, and what else was said.
fn observed(folder: &Path, files: &[&str]) -> (Vec<Value>, String) {
    let output = run(folder, &[&["observe"], files, &["--json"]].concat());
    assert!(output.status.success(), "{}", talk(&output));
    let lines = data(&output);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (lines.filter(|line| line["kind"] == "connection").collect(), talk(&output))
}

#[test]
fn directions_of_two_clocks_make_one_connection_and_the_difference_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let frames = frames();
    let whole = write(folder.path(), "whole.pcap", frames.clone());
    let (expected, said) = observed(folder.path(), &[&whole]);
    assert_eq!((expected.len(), &*said), (1, ""));
    for (early, name) in [(5_000_000_000, "up.pcap"), (40_000_000, "near.pcap")] {
        let (up, down): (Vec<Frame>, Vec<Frame>) =
            frames.iter().cloned().partition(|(_, frame)| is_client(frame));
        let late = up.into_iter().map(|(at, frame)| (at + early, frame)).collect();
        let (up, down) =
            (write(folder.path(), name, late), write(folder.path(), "down.pcap", down));
        let (rows, said) = observed(folder.path(), &[&up, &down]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        for field in ["class", "uncertain", "version", "round_trip", "handshake", "tls_handshake"] {
            assert_eq!(rows[0][field], expected[0][field], "{field}");
        }
        assert!(said.contains("different clocks") && said.contains("ms too early"), "{said}");
        assert!(said.contains("editcap -t"), "{said}");
    }
}

#[test]
fn frames_twice_and_both_sides_of_a_translation_are_one_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let frames = frames();
    let (expected, _) = observed(folder.path(), &[&write(folder.path(), "a", frames.clone())]);
    // 20 us nearer to the server: the client's frames pass later there, the server's earlier.
    let nearer = |at: u64, frame: &[u8]| if is_client(frame) { at + 20_000 } else { at - 20_000 };
    let routed = |frame: &[u8], client: Option<[u8; 4]>| {
        let mut frame = frame.to_vec();
        frame[..12].fill(2);
        frame[22] -= 1;
        if let Some(address) = client {
            let place = if is_client(&frame) { 26 } else { 30 };
            frame[place..place + 4].copy_from_slice(&address);
        }
        frame
    };
    for (client, wanted) in
        [(None, "captured more than once"), (Some([203, 0, 113, 7]), "address translation")]
    {
        let copies = frames.iter().map(|(at, frame)| (nearer(*at, frame), routed(frame, client)));
        let both = frames.iter().cloned().chain(copies).collect();
        let file = write(folder.path(), "both.pcap", both);
        let (rows, said) = observed(folder.path(), &[&file]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        for field in ["class", "uncertain", "retransmitted_up", "retransmitted_down"] {
            assert_eq!(rows[0][field], expected[0][field], "{field}");
        }
        let round_trip = rows[0]["round_trip"].as_u64().unwrap();
        assert!(round_trip.abs_diff(expected[0]["round_trip"].as_u64().unwrap()) <= 20_000);
        assert!(said.contains(wanted), "{said}");
    }
}
