//! DTLS beside QUIC: told apart, counted, passed over; and a QUIC connection whose record leaves.

use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use tracker::{HandOut, Limits, LinkType, Output, Tracker, Transport};
use units::Time;
use wire::quic::frame::put_crypto;
use wire::quic::{LongRepr, PacketType, Version};
use wire::tls::{ClientHelloRepr, Extension, ExtensionKind, ServerHelloRepr, body};

const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const SCID: [u8; 8] = [0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];

fn tracker() -> Tracker {
    Tracker::new(Limits { hand_out: HandOut::AfterHandshake, ..Limits::default() })
}

fn send(tracker: &mut Tracker, millis: u64, from_client: bool, payload: &[u8]) {
    let (from, to) = if from_client { (50_000, 443) } else { (443, 50_000) };
    let mut packet =
        crate::common::wrap::ipv4(17, &crate::common::wrap::datagram(from, to, payload));
    if !from_client {
        let (head, tail) = packet.split_at_mut(16);
        head[12..].swap_with_slice(&mut tail[..4]);
    }
    tracker.handle_packet(Time::from_millis(millis), LinkType::RawIp, &packet, packet.len());
}

/// A record of DTLS 1.2's header.
fn dtls(content_type: u8, epoch: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![content_type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, 1];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn dtls_is_counted_and_passed_over() {
    let mut tracker = tracker();
    let hello = [&[1, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 60][..], &[7; 60]].concat();
    send(&mut tracker, 1, true, &dtls(22, 0, &hello));
    send(&mut tracker, 2, false, &dtls(22, 0, &[2; 60]));
    send(&mut tracker, 3, true, &[dtls(20, 0, &[1]), dtls(22, 1, &[9; 40])].concat());
    send(&mut tracker, 4, true, &dtls(23, 1, &[9; 400]));
    // DTLS 1.3's unified header has nothing to be told by, and is no QUIC either.
    send(&mut tracker, 5, true, &[0x2f; 60]);
    let counters = tracker.counters();
    assert_eq!((counters.dtls, counters.dtls_handshakes, counters.stray), (4, 1, 1));
    assert!(counters.add_up() && tracker.active() == 0);
}

fn initial(side: Side, message: &[u8]) -> Vec<u8> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap();
    let keys = suite.keys(&DCID, side, rustls::quic::Version::V1).local;
    let mut frames = Vec::new();
    put_crypto(0, message, &mut frames).unwrap();
    frames.resize(1100, 0);
    let (destination, source): (&[u8], &[u8]) =
        if side == Side::Client { (&DCID, &[]) } else { (&[], &SCID) };
    let mut packet = long(PacketType::Initial, destination, source, 4 + frames.len() + 16);
    let offset = packet.len();
    packet.extend([0, 0, 0, 1]);
    let tag = keys.packet.encrypt_in_place(1, &packet, &mut frames).unwrap();
    packet.extend([&frames[..], tag.as_ref()].concat());
    let (head, tail) = packet.split_at_mut(offset + 4);
    let (first, rest) = head.split_first_mut().unwrap();
    keys.header.encrypt_in_place(&tail[..16], first, &mut rest[offset - 1..][..4]).unwrap();
    packet
}

/// A long header.
fn long(kind: PacketType, destination: &[u8], source: &[u8], protected_len: usize) -> Vec<u8> {
    let version = Version::V1;
    let repr = LongRepr {
        kind,
        version,
        destination,
        source,
        token: &[],
        packet_number_len: 4,
        protected_len,
    };
    let mut out = vec![0; repr.buffer_len().unwrap()];
    repr.emit(&mut out).unwrap();
    out
}

fn handshake(len: usize) -> Vec<u8> {
    let mut packet = long(PacketType::Handshake, &SCID, &[], len);
    packet.extend(vec![0x55; len]);
    packet
}

fn client_hello() -> Vec<u8> {
    let bodies = [
        (0, body::server_name("example.org")),
        (43, body::supported_versions(&[0x0304])),
        (51, body::key_shares(&[(0x001d, &[7; 32])])),
    ];
    let extension = |(kind, data): &(u16, Vec<u8>)| (ExtensionKind(*kind), data.clone());
    let bodies: Vec<_> = bodies.iter().map(extension).collect();
    let repr = ClientHelloRepr {
        legacy_version: 0x0303,
        random: [1; 32],
        session_id: &[],
        cipher_suites: vec![0x1301],
        extensions: bodies.iter().map(|(kind, data)| Extension { kind: *kind, data }).collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    message
}

fn server_hello() -> Vec<u8> {
    let share = body::key_share(0x001d, &[3; 32]);
    let repr = ServerHelloRepr {
        legacy_version: 0x0303,
        random: [5; 32],
        session_id: &[],
        cipher_suite: 0x1301,
        extensions: vec![
            Extension { kind: ExtensionKind(43), data: &[3, 4] },
            Extension { kind: ExtensionKind(51), data: &share },
        ],
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    message
}

#[test]
fn a_quic_record_leaves_after_the_first_answer_and_dtls_between_its_ports_is_no_part_of_it() {
    let mut t = tracker();
    send(&mut t, 0, true, &initial(Side::Client, &client_hello()));
    send(&mut t, 20, false, &initial(Side::Server, &server_hello()));
    send(&mut t, 20, false, &handshake(900));
    send(&mut t, 21, true, &handshake(4 + 16 + 40));
    send(&mut t, 21, true, &[0x41; 60]);
    assert_eq!(t.poll_output(), None);
    send(&mut t, 40, true, &dtls(23, 1, &[9; 400]));
    send(&mut t, 41, false, &[0x42; 600]);
    let Some(Output::Connection(c)) = t.poll_output() else { panic!("a record") };
    assert!(c.goes_on && c.transport == Transport::Quic);
    let tls = c.tls.as_ref().unwrap();
    assert_eq!(tls.server_name.as_deref(), Some("example.org"));
    assert_eq!(tls.client_finished, Some(Time::from_millis(21)));
    assert_eq!(
        (c.client_data, c.server_data),
        (Some(Time::from_millis(21)), Some(Time::from_millis(41)))
    );
    for at in 50..60 {
        send(&mut t, at, true, &[0x41; 60]);
    }
    assert_eq!((t.counters().dtls, t.counters().stray, t.counters().followed), (1, 0, 16));
    // It never ends visibly: silence does it.
    send(&mut t, 400_000, true, &dtls(23, 1, &[9; 400]));
    let Some(Output::Ending(ending)) = t.poll_output() else { panic!("an ending") };
    assert_eq!((ending.up.frames, ending.last_frame), (13, Time::from_millis(59)));
    assert!(t.counters().add_up());
}
