//! Entry points for fuzzing: any bytes in; a panic or a hang is the finding.

use std::hint::black_box;
use std::time::Duration;

use units::Time;
use wire::tcp::{Flags, OptionList, Repr};
use wire::{ipv4, tcp};

use crate::{KeyLog, Limits, LinkType, Tracker};

fn limits() -> Limits {
    Limits {
        connections: 8,
        stream_bytes: 4096,
        held_bytes: 8192,
        idle: Duration::from_secs(2),
        linger: Duration::from_millis(100),
        seed: 1,
        ..Limits::default()
    }
}

fn drain(mut tracker: Tracker) {
    while let Some(connection) = tracker.poll_connection() {
        black_box(connection.handshake_time());
    }
    assert!(tracker.active() <= 8, "more connections than the limit");
    black_box(tracker.finish().len());
}

/// Any bytes as a run of frames: each a link type's byte, a time step of two bytes, a length of
/// two bytes, and the frame.
pub fn tracker(bytes: &[u8]) {
    let mut tracker = Tracker::new(limits());
    let mut reader = wire::Reader::new("fuzz input", bytes);
    let mut at = Time::ZERO;
    let mut next = || {
        let link = reader.u8().ok()?;
        let step = reader.u16().ok()?;
        Some((link, step, reader.vec16().ok()?))
    };
    while let Some((link, step, frame)) = next() {
        at += Duration::from_micros(u64::from(step) * 10);
        let link = if link & 1 == 0 { LinkType::Ethernet } else { LinkType::RawIp };
        tracker.handle_packet(at, link, frame, frame.len());
    }
    drain(tracker);
}

/// Any bytes as segments of one TCP connection: each a byte for direction and flags, a sequence
/// number and an acknowledgment of two bytes each near the streams' beginnings, a length of one
/// byte, and the payload. Bit 6 of the first byte lengthens the payload by zeros to that of an
/// envelope.
pub fn tcp_streams(bytes: &[u8]) {
    let mut tracker = Tracker::new(limits());
    let mut reader = wire::Reader::new("fuzz input", bytes);
    let mut at = Time::ZERO;
    let mut next = || {
        let control = reader.u8().ok()?;
        let (sequence, ack) = (reader.u16().ok()?, reader.u16().ok()?);
        Some((control, sequence, ack, reader.vec8().ok()?))
    };
    while let Some((control, sequence, ack, payload)) = next() {
        at += Duration::from_micros(100);
        let mut padded = payload.to_vec();
        if control & 0x40 != 0 {
            padded.resize(1024, 0);
        }
        let frame = segment(control, u32::from(sequence), u32::from(ack), &padded);
        tracker.handle_packet(at, LinkType::RawIp, &frame, frame.len());
    }
    drain(tracker);
}

/// Any bytes as UDP payloads between two ports, each behind a direction and a length of two bytes.
pub fn quic_datagrams(bytes: &[u8]) {
    let mut tracker = Tracker::new(limits());
    let mut reader = wire::Reader::new("fuzz input", bytes);
    let mut next = || Some((reader.u8().ok()?, reader.vec16().ok()?));
    while let Some((direction, payload)) = next() {
        let (mut from, mut to) = ([127, 0, 0, 1], [127, 0, 0, 2]);
        let mut ports = (50_000, 443);
        if direction & 1 == 1 {
            std::mem::swap(&mut from, &mut to);
            ports = (443, 50_000);
        }
        let udp = wire::udp::Repr { source_port: ports.0, destination_port: ports.1 };
        let mut frame = vec![0; ipv4::HEADER_LEN + udp.buffer_len(payload.len())];
        let ip = ip_header(from, to, wire::udp::PROTOCOL, frame.len() - ipv4::HEADER_LEN);
        if let Some((header, body)) = frame.split_at_mut_checked(ipv4::HEADER_LEN)
            && ip.emit(header).is_ok()
            && udp.emit(from.into(), to.into(), payload, body).is_ok()
        {
            tracker.handle_packet(Time::ZERO, LinkType::RawIp, &frame, frame.len());
        }
    }
    drain(tracker);
}

/// Any bytes as the lines of a key log.
pub fn key_log(bytes: &[u8]) {
    let mut log = KeyLog::new(4);
    log.read(bytes);
    assert!(log.connections() <= 4, "more connections than the limit");
    black_box(log.counters());
}

fn ip_header(from: [u8; 4], to: [u8; 4], protocol: u8, payload_len: usize) -> ipv4::Repr {
    ipv4::Repr {
        source: from.into(),
        destination: to.into(),
        protocol,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len,
    }
}

fn segment(control: u8, sequence: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
    let (mut from, mut to) = ([127, 0, 0, 1], [127, 0, 0, 2]);
    let mut ports = (50_000, 443);
    if control & 0x80 != 0 {
        std::mem::swap(&mut from, &mut to);
        ports = (443, 50_000);
    }
    let repr = Repr {
        source_port: ports.0,
        destination_port: ports.1,
        // Close to the wrap, so that it is crossed.
        sequence: sequence.wrapping_sub(0x8000),
        acknowledgment: (control & 0x10 != 0).then_some(ack.wrapping_sub(0x8000)),
        flags: Flags(control & 0x07),
        window: 0xffff,
        options: OptionList::default(),
    };
    let mut frame = vec![0; ipv4::HEADER_LEN + repr.buffer_len(payload.len())];
    let ip = ip_header(from, to, tcp::PROTOCOL, frame.len() - ipv4::HEADER_LEN);
    if let Some((header, body)) = frame.split_at_mut_checked(ipv4::HEADER_LEN) {
        let emitted =
            ip.emit(header).and_then(|()| repr.emit(from.into(), to.into(), payload, body));
        black_box(emitted.is_ok());
    }
    frame
}
