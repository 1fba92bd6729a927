//! `wiretax sequence` on a capture whose every window is known: HTTP/2 in clear.

use std::path::Path;

use crate::support::{data, run, talk};
use lab_test::Pcap;
use serde_json::Value;

const SYN: u8 = 2;
const ACK: u8 = 16;

/// A capture of IPv4 without a link header, a packet a millisecond.
struct Capture {
    pcap: Pcap,
    packets: u64,
    /// The next byte of client and server.
    next: [u32; 2],
}

impl Capture {
    fn new() -> Capture {
        let mut capture = Capture { pcap: Pcap::new(Pcap::IP), packets: 0, next: [100, 200] };
        capture.packet(0, SYN, &[]);
        capture.packet(1, SYN | ACK, &[]);
        capture
    }

    /// RFC 791 §3.1, RFC 9293 §3.1; the checksums are not looked at.
    fn packet(&mut self, side: usize, flags: u8, payload: &[u8]) {
        let (addresses, ports) = ([1, 2], [40_000_u16, 8080]);
        let length = 40 + payload.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([10, 0, 0, addresses[side], 10, 0, 0, addresses[1 - side]]);
        packet.extend(ports[side].to_be_bytes());
        packet.extend(ports[1 - side].to_be_bytes());
        packet.extend(self.next[side].to_be_bytes());
        packet.extend(self.next[1 - side].to_be_bytes());
        packet.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        self.pcap.push(1_000_000_000 + self.packets * 1_000_000, &packet);
        self.packets += 1;
        self.next[side] += payload.len() as u32 + u32::from(flags & SYN != 0);
    }

    /// A frame of HTTP/2 (RFC 9113 §4.1).
    fn frame(&mut self, side: usize, kind: u8, flags: u8, stream: u8, payload: &[u8]) {
        let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
        let header = [a, b, c, kind, flags, 0, 0, 0, stream];
        self.packet(side, ACK, &[&header[..], payload].concat());
    }
}

/// A response of 90 frames of 1000 bytes, through windows of 20,000 that are given back at half.
fn download(folder: &Path) -> String {
    let mut capture = Capture::new();
    capture.packet(0, ACK, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    capture.frame(0, 4, 0, 0, &[0, 4, 0, 0, 0x4e, 0x20]);
    capture.frame(0, 1, 5, 1, &[0x82]);
    capture.frame(1, 4, 0, 0, &[]);
    for number in 1..=90 {
        capture.frame(1, 0, u8::from(number == 90), 1, &[7; 1000]);
        if number % 10 == 0 && number < 90 {
            capture.frame(0, 8, 0, 1, &10_000_u32.to_be_bytes());
            capture.frame(0, 8, 0, 0, &10_000_u32.to_be_bytes());
        }
    }
    let file = folder.join("download.pcap");
    std::fs::write(&file, capture.pcap.as_bytes()).unwrap();
    file.display().to_string()
}

#[test]
fn a_screen_has_the_windows_and_the_ladder() {
    let folder = tempfile::tempdir().unwrap();
    let file = download(folder.path());
    let output = run(folder.path(), &["sequence", &file]);
    let text = data(&output);
    assert!(output.status.success() && talk(&output).is_empty(), "{}", talk(&output));
    for said in [
        "Connection 1: 10.0.0.1:40000 to 10.0.0.2:8080, h2 in clear",
        "client announces 20,000 bytes per stream (start 65,535 bytes), 65,535 bytes for the connection",
        "WINDOW_UPDATE after 10,000 bytes of a stream (0.500 of its window, 8 times)",
        "server sends 90,000 bytes in 90 DATA frames of at most 1,000 bytes, 0 bytes before SETTINGS",
        "smallest window left: 10,000 bytes of stream 1",
        "never within one frame of a shut window",
        "DATA 1, 10 frames, 1,000 bytes each  [left: stream 10,000 bytes, connection 55,535 bytes]",
        "WINDOW_UPDATE 1 +10,000",
        "SETTINGS INITIAL_WINDOW_SIZE 20,000 bytes",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    assert!(text.lines().count() <= 48, "{text}");
    let all = data(&run(folder.path(), &["sequence", &file, "--all"]));
    assert_eq!(
        all.lines().filter(|line| line.contains("DATA 1, 1,000 bytes")).count(),
        90,
        "{all}"
    );
}

#[test]
fn json_has_events_and_windows() {
    let folder = tempfile::tempdir().unwrap();
    let file = download(folder.path());
    let read = |arguments: &[&str]| -> Value {
        let output = run(folder.path(), &[&["sequence", &file, "--json"], arguments].concat());
        assert!(output.status.success(), "{}", talk(&output));
        serde_json::from_str(&data(&output)).unwrap()
    };
    let (folded, all) = (read(&[]), read(&["--all", "--connection", "1"]));
    let windows = &folded["connections"][0]["server_sends"];
    assert_eq!(windows, &all["connections"][0]["server_sends"]);
    assert_eq!(
        (&windows["announced_bytes"], &windows["data_frames"]),
        (&20_000.into(), &90.into())
    );
    assert_eq!(windows["stream_updates"]["median_share"], 0.5);
    let count = |chart: &Value| chart["connections"][0]["events"].as_array().unwrap().len();
    assert_eq!((count(&folded), count(&all)), (3 + 9 + 16, 3 + 90 + 16));
    let first = &folded["connections"][0]["events"][0];
    assert_eq!((&first["frame"], &first["from_client"]), (&"SETTINGS".into(), &true.into()));
    assert_eq!(first["stream_window"], 20_000);
}

#[test]
fn a_connection_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = download(folder.path());
    for number in ["0", "2"] {
        let output = run(folder.path(), &["sequence", &file, "--connection", number]);
        assert_eq!(output.status.code(), Some(2));
        assert!(talk(&output).contains("the numbers are 1 to 1"), "{}", talk(&output));
    }
}
