//! Writes a synthetic capture to standard output: many TLS connections, each with the handshake of a
//! real one and then data in full-size or in small packets, interleaved as a busy server sees them.
//! For `scripts/compare-observe.sh`; checksums are not made right.
//!
//! ```text
//! cargo run --release -p capture --example traffic -- full 1000 200 > full.pcap
//! ```
//! Packets (`full` or `small`), connections, and packets of data on each connection.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{BufWriter, Write};

/// Connections under way at once.
const AT_ONCE: usize = 500;
/// Bytes of Ethernet, IPv4 and TCP with timestamps.
const HEADERS: usize = 14 + 20 + 32;

/// A frame of a template: whether the client sent it, and its bytes.
struct Frame {
    up: bool,
    bytes: Vec<u8>,
}

/// The first frames of a real TLS connection over Ethernet and IPv4, up to its first data.
fn template(path: &str, count: usize) -> Vec<Frame> {
    let bytes = std::fs::read(path).unwrap();
    let mut frames = Vec::new();
    let mut at = 24;
    while frames.len() < count {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let mut frame = bytes[at + 16..at + 16 + len].to_vec();
        // No FIN: the connection goes on.
        frame[47] &= !1;
        // The server's port is the lower one.
        let up = frame[34..36] > frame[36..38];
        frames.push(Frame { up, bytes: frame });
        at += 16 + len;
    }
    frames
}

/// One connection: where its next data go.
struct Connection {
    number: usize,
    sent: usize,
    sequence: u32,
    acknowledged: u32,
}

struct Writer<W: Write> {
    out: W,
    micros: u64,
}

impl<W: Write> Writer<W> {
    fn frame(&mut self, bytes: &[u8]) {
        self.micros += 3;
        let (seconds, micros) = (self.micros / 1_000_000, self.micros % 1_000_000);
        for number in [1_700_000_000 + seconds as u32, micros as u32] {
            self.out.write_all(&number.to_le_bytes()).unwrap();
        }
        let len = (bytes.len() as u32).to_le_bytes();
        self.out.write_all(&[len, len].concat()).unwrap();
        self.out.write_all(bytes).unwrap();
    }
}

/// Gives a frame the addresses of a connection.
fn address(frame: &mut [u8], up: bool, number: usize) {
    let [a, b, c] = [(number >> 16) as u8, (number >> 8) as u8, number as u8];
    let port = (1024 + (number * 7) % 60_000) as u16;
    let (ip, at) = if up { (26, 34) } else { (30, 36) };
    frame[ip..ip + 4].copy_from_slice(&[10, a, b, c]);
    frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
}

fn number(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
}

/// Fills a piece of a stream with full-size records of application data.
fn records(payload: &mut [u8], from: usize) {
    const RECORD: usize = 5 + 16_384;
    payload.fill(7);
    for (at, byte) in [23, 3, 3, 0x40, 0].into_iter().enumerate() {
        let place = (RECORD + at - from % RECORD) % RECORD;
        if let Some(to) = payload.get_mut(place) {
            *to = byte;
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, connections, packets] = &arguments[..] else {
        eprintln!("usage: traffic full|small CONNECTIONS PACKETS > FILE");
        std::process::exit(2);
    };
    let (connections, packets): (usize, usize) =
        (connections.parse().unwrap(), packets.parse().unwrap());
    let payload = if size == "full" { 1448 } else { 16 };
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tracker/tests/data/");
    // Up to the server's first application data.
    let template = template(&format!("{data}tls1.2.pcap"), 19);
    let out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut writer = Writer { out, micros: 0 };
    let magic =
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    writer.out.write_all(&magic).unwrap();
    let last = template.iter().rev().find(|frame| !frame.up).unwrap();
    let last_len = last.bytes.len() - HEADERS;
    let mut bulk = last.bytes[..HEADERS].to_vec();
    bulk.resize(HEADERS + payload, 0);
    let total = (bulk.len() - 14) as u16;
    bulk[16..18].copy_from_slice(&total.to_be_bytes());
    let mut ack = template[2].bytes[..HEADERS].to_vec();
    let mut open: Vec<Connection> = Vec::new();
    let mut begun = 0;
    while begun < connections || !open.is_empty() {
        while open.len() < AT_ONCE && begun < connections {
            for frame in &template {
                let mut bytes = frame.bytes.clone();
                address(&mut bytes, frame.up, begun);
                writer.frame(&bytes);
            }
            let sequence = number(&last.bytes, 38).wrapping_add(last_len as u32);
            let acknowledged = number(&last.bytes, 42);
            open.push(Connection { number: begun, sent: 0, sequence, acknowledged });
            begun += 1;
        }
        for connection in &mut open {
            address(&mut bulk, false, connection.number);
            bulk[38..42].copy_from_slice(&connection.sequence.to_be_bytes());
            bulk[42..46].copy_from_slice(&connection.acknowledged.to_be_bytes());
            records(&mut bulk[HEADERS..], connection.sent * payload);
            writer.frame(&bulk);
            connection.sequence = connection.sequence.wrapping_add(payload as u32);
            connection.sent += 1;
            if connection.sent % 8 == 0 {
                address(&mut ack, true, connection.number);
                ack[38..42].copy_from_slice(&connection.acknowledged.to_be_bytes());
                ack[42..46].copy_from_slice(&connection.sequence.to_be_bytes());
                writer.frame(&ack);
            }
        }
        open.retain(|connection| connection.sent < packets);
    }
    writer.out.flush().unwrap();
}
