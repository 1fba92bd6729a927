//! Reads the vector captures.
#![allow(dead_code)] // Each test program uses a part.

pub mod wrap;

use pcap_file::pcap::PcapReader;
use tracker::{Connection, Limits, LinkType, Tracker};
use units::Time;

/// A frame: its time since the first one, its bytes, its length on the link.
pub type Frame = (Time, Vec<u8>, usize);

/// The frames of a capture in `tests/data`.
pub fn frames(name: &str) -> Vec<Frame> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    // Tests may read files; the crate may not.
    #[allow(clippy::disallowed_methods)]
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut reader = PcapReader::new(file).expect("a pcap file");
    let mut frames: Vec<Frame> = Vec::new();
    let mut start = None;
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a whole packet");
        let at = packet.timestamp - *start.get_or_insert(packet.timestamp);
        let at = Time::ZERO + at;
        frames.push((at, packet.data.into_owned(), packet.orig_len as usize));
    }
    frames
}

/// The connections in frames.
pub fn observe(frames: &[Frame]) -> Vec<Connection> {
    let mut tracker = Tracker::new(Limits::default());
    for (at, bytes, len) in frames {
        tracker.handle_packet(*at, LinkType::Ethernet, bytes, *len);
    }
    tracker.finish()
}
