//! Entry points for fuzzing: any bytes in; a panic or a hang is the finding.

use std::hint::black_box;
use std::time::Duration;

use units::Time;
use wire::tcp::{Flags, OptionList, Repr};
use wire::{ipv4, tcp};

use crate::{
    HandOut, KeyLog, Limits, LinkType, Output, StreamFact, StreamLimits, Streams, Tracker,
};

/// Connections that are followed at most.
const CONNECTIONS: usize = 8;

fn limits(hand_out: HandOut) -> Limits {
    Limits {
        connections: CONNECTIONS,
        stream_bytes: 4096,
        held_bytes: 8192,
        idle: Duration::from_secs(2),
        linger: Duration::from_millis(100),
        seed: 1,
        hand_out,
    }
}

/// Runs what hands frames to a tracker once in each mode, and checks what must always hold.
fn in_both_modes(mut run: impl FnMut(&mut Tracker)) {
    for hand_out in [HandOut::AtEnd, HandOut::AfterHandshake] {
        let mut tracker = Tracker::new(limits(hand_out));
        run(&mut tracker);
        assert!(tracker.active() <= CONNECTIONS, "more connections than the limit");
        assert!(tracker.counters().add_up(), "a frame is not counted, or twice");
        tracker.close();
        assert!(tracker.counters().add_up() && tracker.active() == 0, "something is left");
        let mut due = 0u64;
        let (mut records, mut endings) = (0, 0);
        while let Some(output) = tracker.poll_output() {
            match output {
                Output::Connection(connection) => {
                    black_box(connection.handshake_time());
                    records += 1;
                    due += u64::from(connection.goes_on);
                }
                Output::Ending(_) => endings += 1,
            }
        }
        assert_eq!(records, tracker.counters().connections, "one record a connection");
        assert_eq!(endings, due, "one ending a connection that goes on");
    }
}

/// Any bytes as a run of frames: each a link type's byte, a time step of two bytes, a length of
/// two bytes, and the frame.
pub fn tracker(bytes: &[u8]) {
    in_both_modes(|tracker| {
        let mut reader = wire::Reader::new("fuzz input", bytes);
        let mut at = Time::ZERO;
        let mut next = || {
            let link = reader.u8().ok()?;
            let step = reader.u16().ok()?;
            Some((link, step, reader.vec16().ok()?))
        };
        while let Some((link, step, frame)) = next() {
            at += Duration::from_micros(u64::from(step) * 10);
            let kinds = LinkType::ALL;
            let link = kinds.get(usize::from(link) % kinds.len()).copied();
            let link = link.unwrap_or(LinkType::Ethernet);
            tracker.handle_packet(at, link, frame, frame.len());
        }
    });
}

/// Any bytes as IP fragments between two ends: each a byte of which bit 0 says IPv6, bit 1 that
/// more follow, and the rest which datagram it is of; an offset of one byte, a time step of one
/// byte and a length of one byte, and the payload.
pub fn fragments(bytes: &[u8]) {
    in_both_modes(|tracker| {
        let mut reader = wire::Reader::new("fuzz input", bytes);
        let mut at = Time::ZERO;
        let mut next = || {
            let (control, offset, step) = (reader.u8().ok()?, reader.u8().ok()?, reader.u8().ok()?);
            Some((control, offset, step, reader.vec8().ok()?))
        };
        while let Some((control, offset, step, payload)) = next() {
            at += Duration::from_millis(u64::from(step) * 100);
            let frame = fragment(control, offset, payload);
            tracker.handle_packet(at, LinkType::RawIp, &frame, frame.len());
        }
    });
}

fn fragment(control: u8, offset: u8, payload: &[u8]) -> Vec<u8> {
    let (more, id) = (control >> 1 & 1, control >> 2 & 7);
    let len = payload.len() as u16;
    let mut frame = if control & 1 == 0 {
        let [a, b] = len.saturating_add(20).to_be_bytes();
        // Of two protocols: UDP, and IPv4 in IPv4.
        let protocol = if control & 0x40 == 0 { 17 } else { 4 };
        vec![0x45, 0, a, b, 0, id, more << 5, offset, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
    } else {
        let [a, b] = len.saturating_add(8).to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, a, b, 44, 64];
        header.resize(40, 1);
        let [c, d] = (u16::from(offset) << 3 | u16::from(more)).to_be_bytes();
        let protocol = if control & 0x40 == 0 { 17 } else { 60 };
        header.extend([protocol, 0, c, d, 0, 0, 0, id]);
        header
    };
    frame.extend_from_slice(payload);
    frame
}

/// Any bytes as segments of one TCP connection: each a byte for direction and flags, a sequence
/// number and an acknowledgment of two bytes each near the streams' beginnings, a length of one
/// byte, and the payload. Bit 6 of the first byte lengthens the payload by zeros to that of an
/// envelope.
pub fn tcp_streams(bytes: &[u8]) {
    in_both_modes(|tracker| {
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
    });
}

/// Any bytes as segments of one TCP connection, as [`tcp_streams`] has them, read to its end: with
/// secrets for the client random of 32 equal bytes, whichever it is.
pub fn streams(bytes: &[u8]) {
    const HELD: usize = 16 << 10;
    let limits = StreamLimits { connections: 2, held_bytes: HELD, secrets: 4, seed: 1 };
    let mut streams = Streams::new(limits);
    let mut reader = wire::Reader::new("fuzz input", bytes);
    let Ok(random) = reader.u8() else { return };
    let random = format!("{random:02x}").repeat(32);
    for (label, bytes) in [
        ("CLIENT_RANDOM", 48),
        ("CLIENT_EARLY_TRAFFIC_SECRET", 32),
        ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 32),
        ("SERVER_HANDSHAKE_TRAFFIC_SECRET", 32),
        ("CLIENT_TRAFFIC_SECRET_0", 32),
        ("SERVER_TRAFFIC_SECRET_0", 32),
    ] {
        streams.add_keys(format!("{label} {random} {}\n", "07".repeat(bytes)).as_bytes());
    }
    let mut at = Time::ZERO;
    let mut next = || {
        let control = reader.u8().ok()?;
        let (sequence, ack) = (reader.u16().ok()?, reader.u16().ok()?);
        Some((control, sequence, ack, reader.vec8().ok()?))
    };
    let (mut began, mut ended, mut sent, mut told) = (0, 0, 0, 0);
    let mut drain = |streams: &mut Streams| {
        while let Some(event) = streams.poll_event() {
            match event.fact {
                StreamFact::Began { .. } => began += 1,
                StreamFact::Ended(_) => ended += 1,
                StreamFact::Data { bytes, .. } => told += bytes.len(),
                _ => {}
            }
        }
        (began, ended, told)
    };
    while let Some((control, sequence, ack, payload)) = next() {
        at += Duration::from_micros(100);
        sent += payload.len();
        let frame = segment(control, u32::from(sequence), u32::from(ack), payload);
        streams.handle_packet(at, LinkType::RawIp, &frame);
        assert!(streams.held_bytes() <= HELD, "more is held than the limit");
        drain(&mut streams);
    }
    streams.close();
    let (began, ended, told) = drain(&mut streams);
    assert_eq!((began, streams.held_bytes()), (ended, 0), "what began has ended");
    assert!(told <= sent, "more was told than was sent");
}

/// Any bytes as UDP payloads between two ports, each behind a direction and a length of two bytes.
pub fn quic_datagrams(bytes: &[u8]) {
    in_both_modes(|tracker| {
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
    });
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
