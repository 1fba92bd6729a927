//! What several threads make of a capture is what one makes of it.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capture::{Event, Merge, Source};
use study::Watcher;
use tracker::Counters;

use crate::reading::{Reading, SinkOptions};

/// JSON lines that can be looked at afterwards.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stops after so many looks.
struct Patience(Cell<usize>);

impl Watcher for Patience {
    fn progress(&mut self, _step: &str, _done: Duration, _total: Duration) {}

    fn interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }

    fn warning(&mut self, what: &str, _remedy: Option<&str>) {
        panic!("{what}");
    }

    fn note(&mut self, _what: &str) {}
}

/// The records of files, without the name of the run, and what was counted.
fn records(files: &[PathBuf], threads: usize, looks: usize) -> (Vec<String>, Counters, u64) {
    let lines = Lines::default();
    let options = SinkOptions { json: Some(Box::new(lines.clone())), ..SinkOptions::default() };
    let mut reading = Reading::open(options, 1_000_000, threads).unwrap();
    reading.files(&mut Merge::open(files).unwrap(), &mut Patience(Cell::new(looks))).unwrap();
    let read = reading.finish().unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let without_run = |line: &str| {
        let at = line.find("\"run\":\"").unwrap();
        format!("{}{}", &line[..at], &line[at + 25..])
    };
    (text.lines().map(without_run).collect(), read.counters, read.sinks.digest.connections())
}

fn captures() -> Vec<PathBuf> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/proto/tracker/tests/data");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "pcap")).collect();
    files.sort();
    assert!(files.len() >= 5);
    files
}

fn are_the_same(files: &[PathBuf]) -> Counters {
    let (one, counters, connections) = records(files, 1, usize::MAX);
    assert!(counters.add_up(), "{counters:?}");
    let mut sorted = one.clone();
    sorted.sort();
    for threads in [2, 3, 8] {
        let (many, of_many, also) = records(files, threads, usize::MAX);
        assert_eq!(of_many, counters, "{files:?} on {threads}");
        assert_eq!(also, connections);
        let mut many_sorted = many.clone();
        many_sorted.sort();
        assert_eq!(many_sorted, sorted, "{files:?} on {threads}");
    }
    counters
}

#[test]
fn every_capture_gives_the_same_records_on_any_number_of_threads() {
    let files = captures();
    for file in &files {
        are_the_same(std::slice::from_ref(file));
    }
    let counters = are_the_same(&files);
    assert!(counters.connections >= 8, "{counters:?}");
}

/// A captured frame: its time in nanoseconds, its bytes and its length on the link.
type Captured = (u64, Vec<u8>, usize);

/// Makes a hello in a TCP segment one of another handshake, not the same seen behind an address translation.
fn change_random(bytes: &mut [u8], by: u8) {
    let data_offset = bytes.get(46).map_or(0, |byte| usize::from(byte >> 4) * 4);
    let tcp = bytes.get(23) == Some(&6);
    if let Some([22, 3, _, _, _, 1 | 2, rest @ ..]) = bytes.get_mut(34 + data_offset..)
        && let Some(byte) = rest.get_mut(5 + 8).filter(|_| tcp)
    {
        *byte ^= by;
    }
}

/// The frames of the captures, each capture many times between other addresses and at other times.
fn copies() -> Vec<Captured> {
    let mut all: Vec<Captured> = Vec::new();
    for (number, file) in captures().iter().enumerate() {
        let mut source = Source::open(file).unwrap();
        let mut frames: Vec<Captured> = Vec::new();
        while let Some(event) = source.next().unwrap() {
            let Event::Frame(frame) = event else { continue };
            if frame.link == 1 {
                frames.push((frame.at.as_nanos(), frame.bytes.to_vec(), frame.original_len));
            }
        }
        let Some(first) = frames.iter().map(|(at, ..)| *at).min() else { continue };
        for copy in 0..60_u64 {
            // Some begin long after all others have fallen silent, some in the same millisecond.
            let silence = if copy % 20 == 19 { 400_000_000_000 * (copy / 20 + 1) } else { 0 };
            let begin = 1_000_000_000_000 + silence + copy * 370_000 + number as u64 * 90_000;
            for (at, bytes, len) in &frames {
                let mut bytes = bytes.clone();
                if bytes.get(12..15) == Some(&[8, 0, 0x45]) && bytes.len() >= 34 {
                    bytes[28] ^= copy as u8;
                    bytes[32] ^= copy as u8;
                    change_random(&mut bytes, copy as u8);
                }
                all.push((begin + (at - first), bytes, *len));
            }
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    all
}

/// Two fragments of an IPv4 packet in Ethernet, if it is long enough.
fn fragments(bytes: &[u8]) -> Option<[Vec<u8>; 2]> {
    let is_whole = bytes.get(12..15)? == [8, 0, 0x45] && bytes.get(20)? & 0x3f == 0;
    let total = usize::from(u16::from_be_bytes([*bytes.get(16)?, *bytes.get(17)?]));
    let payload = bytes.get(34..14 + total).filter(|payload| is_whole && payload.len() > 160)?;
    let cut = 80;
    let part = |offset: usize, data: &[u8], more: u8| {
        let mut part = bytes[..34].to_vec();
        part[16..18].copy_from_slice(&(20 + data.len() as u16).to_be_bytes());
        part[20..22].copy_from_slice(&[more, (offset / 8) as u8]);
        part.extend_from_slice(data);
        part
    };
    Some([part(0, &payload[..cut], 0x20), part(cut, &payload[cut..], 0)])
}

fn write(path: &Path, frames: &[Captured]) {
    let mut pcap = lab_test::Pcap::new(lab_test::Pcap::ETHERNET);
    for (at, frame, len) in frames {
        pcap.push_cut(*at, frame, (*len).max(frame.len()));
    }
    std::fs::write(path, pcap.as_bytes()).unwrap();
}

/// A segment again with something odd in its headers: resets, ends, no length, an impossible one.
fn odd(mut bytes: Vec<u8>, kind: usize) -> Vec<u8> {
    const ODD: [(usize, u8); 8] = [
        (47, 0x14),
        (47, 0x11),
        (47, 0x02),
        (17, 0),
        (46, 0x40),
        (46, 0xf0),
        (14, 0x46),
        (38, 0x7f),
    ];
    let (at, value) = ODD[kind % ODD.len()];
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
    bytes
}

/// Copies with some frames in fragments, late or twice, some that are nothing and some that are odd.
fn disturbed() -> Vec<Captured> {
    let mut frames: Vec<Captured> = Vec::new();
    for (number, (at, bytes, len)) in copies().into_iter().enumerate() {
        match (number % 11, fragments(&bytes)) {
            (3, Some([first, second])) => {
                for part in [first, second] {
                    let len = part.len();
                    frames.push((at, part, len));
                }
            }
            // The rest of it never comes.
            (5, Some([first, _])) if number % 5 == 0 => frames.push((at, first, len)),
            (7, _) => frames.push((at - 2_500_000, bytes, len)),
            (8, _) if number % 4 == 0 => {
                frames.push((at, odd(bytes.clone(), number / 44), len));
                frames.push((at, bytes, len));
            }
            (9, _) if number % 3 == 0 => {
                frames.push((at, vec![number as u8; 60], 60));
                frames.push((at, bytes, len));
            }
            _ => frames.push((at, bytes, len)),
        }
    }
    frames
}

#[test]
fn fragments_late_frames_and_silences_are_the_same_too() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.pcap");
    write(&plain, &copies());
    let counters = are_the_same(std::slice::from_ref(&plain));
    assert!(counters.connections > 300, "{counters:?}");
    let disturbed = disturbed();
    let (all, odd) = (folder.path().join("all.pcap"), folder.path().join("odd.pcap"));
    write(&all, &disturbed);
    let counters = are_the_same(&[all]);
    assert!(counters.reassembled > 50 && counters.fragments_dropped.total() > 0, "{counters:?}");
    assert!(counters.other > 50, "{counters:?}");
    // Two captures whose frames alternate.
    write(&odd, &disturbed.into_iter().step_by(2).collect::<Vec<_>>());
    are_the_same(&[plain, odd]);
}

#[test]
fn connections_have_the_numbers_of_one_thread_in_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.pcap");
    write(&path, &copies());
    let (many, ..) = records(&[path], 4, usize::MAX);
    let value = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let mut connections: Vec<(u64, u64)> = many
        .iter()
        .map(value)
        .filter(|line| line["kind"] == "connection")
        .map(|line| (line["number"].as_u64().unwrap(), line["first_frame"].as_u64().unwrap()))
        .collect();
    connections.sort_unstable();
    for (expected, (number, _)) in connections.iter().enumerate() {
        assert_eq!(*number, expected as u64);
    }
    assert!(connections.is_sorted_by_key(|(_, at)| *at));
}

#[test]
fn who_interrupts_keeps_what_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.pcap");
    write(&path, &copies());
    let (all, counters, _) = records(std::slice::from_ref(&path), 2, usize::MAX);
    let (some, of_some, _) = records(&[path], 2, 2);
    assert!(!some.is_empty() && some.len() <= all.len());
    assert!(of_some.frames <= counters.frames && of_some.add_up());
}

#[test]
fn a_capture_that_is_damaged_gives_what_was_whole_and_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.pcap");
    write(&path, &copies());
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes.truncate(half);
    // A record that cannot be.
    bytes.extend([0xff; 64]);
    std::fs::write(&path, bytes).unwrap();
    let mut said = Vec::new();
    for threads in [1, 4] {
        let lines = Lines::default();
        let options = SinkOptions { json: Some(Box::new(lines.clone())), ..SinkOptions::default() };
        let mut reading = Reading::open(options, 1000, threads).unwrap();
        let mut merge = Merge::open(std::slice::from_ref(&path)).unwrap();
        let result = reading.files(&mut merge, &mut Patience(Cell::new(usize::MAX)));
        let counters = reading.finish().unwrap().counters;
        said.push((result.map_err(|problem| problem.to_string()), counters.connections));
        assert!(!lines.0.lock().unwrap().is_empty());
    }
    assert_eq!(said[0], said[1]);
}
