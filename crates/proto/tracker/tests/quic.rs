//! QUIC connections: the packets of RFC 9001 Appendix A, and conversations under real Initial keys.

use std::net::Ipv4Addr;

use rustls::Side;
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{DirectionalKeys, Keys};
use tracker::{
    Class, Connection, EarlyData, HandOut, Limits, LinkType, Resumption, Tracker, Transport,
    Uncertain,
};
use units::Time;
use wire::quic::frame::put_crypto;
use wire::quic::{LongRepr, PacketType, Version};
use wire::tls::{
    ClientHelloRepr, Extension, ExtensionKind, HELLO_RETRY_REQUEST_RANDOM, ServerHelloRepr, body,
};
use wire::{ipv4, udp};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// RFC 9001 §A: the client's first Destination Connection ID.
const DCID: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
const SCID: [u8; 8] = [0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn keys(version: Version, dcid: &[u8]) -> Keys {
    let version = match version {
        Version::V2 => rustls::quic::Version::V2,
        version if matches!(version.draft(), Some(29..=32)) => rustls::quic::Version::V1Draft,
        _ => rustls::quic::Version::V1,
    };
    TLS13_AES_128_GCM_SHA256.tls13().unwrap().quic_suite().unwrap().keys(
        dcid,
        Side::Client,
        version,
    )
}

/// A packet under given keys.
fn seal(keys: &DirectionalKeys, repr: LongRepr<'_>, number: u32, frames: &[u8]) -> Vec<u8> {
    let number_len = repr.packet_number_len;
    let repr = LongRepr { protected_len: number_len + frames.len() + 16, ..repr };
    let mut header = vec![0; repr.buffer_len().unwrap()];
    repr.emit(&mut header).unwrap();
    let offset = header.len();
    header.extend(&number.to_be_bytes()[4 - number_len..]);
    let mut payload = frames.to_vec();
    let tag = keys.packet.encrypt_in_place(number.into(), &header, &mut payload).unwrap();
    let mut packet = [header, payload, tag.as_ref().to_vec()].concat();
    let (head, tail) = packet.split_at_mut(offset + 4);
    let (first, rest) = head.split_first_mut().unwrap();
    keys.header
        .encrypt_in_place(&tail[..16], first, &mut rest[offset - 1..][..number_len])
        .unwrap();
    packet
}

fn long<'a>(
    kind: PacketType,
    version: Version,
    destination: &'a [u8],
    source: &'a [u8],
) -> LongRepr<'a> {
    LongRepr {
        kind,
        version,
        destination,
        source,
        token: &[],
        packet_number_len: 4,
        protected_len: 0,
    }
}

struct Talk {
    tracker: Tracker,
    at: Time,
}

fn talk() -> Talk {
    Talk { tracker: Tracker::new(Limits::default()), at: Time::ZERO }
}

impl Talk {
    /// A datagram from the client (0) or the server (1).
    fn send(&mut self, millis: u64, side: usize, datagram: &[u8]) -> &mut Self {
        self.at = Time::from_millis(millis);
        let (source, destination) = if side == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let ports = if side == 0 { (50_000, 443) } else { (443, 50_000) };
        let repr = udp::Repr { source_port: ports.0, destination_port: ports.1 };
        let udp_len = repr.buffer_len(datagram.len());
        let ip = ipv4::Repr {
            source,
            destination,
            protocol: 17,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: udp_len,
        };
        let mut frame = vec![0; 20 + udp_len];
        ip.emit(&mut frame).unwrap();
        repr.emit(source.into(), destination.into(), datagram, &mut frame[20..]).unwrap();
        self.tracker.handle_packet(self.at, LinkType::RawIp, &frame, frame.len());
        self
    }

    fn finish(self) -> Connection {
        let mut all = self.tracker.finish();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }
}

fn ms(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}

/// RFC 9001 §A.2: the client's CRYPTO frame.
const RFC_CRYPTO: &str = "
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400
    0d0010000e0403050306030203080408050806002d00020101001c0002400100
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
    75300901100f088394c8f03e51570806048000ffff";

/// RFC 9001 §A.3: the server's Initial packet.
const RFC_SERVER: &str = "
    cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a
    5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3
    dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84
    022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4
    2158407dd074ee";

#[test]
fn the_packets_of_rfc_9001() {
    let mut frames = hex(RFC_CRYPTO);
    frames.resize(1162, 0);
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let client = seal(&keys(Version::V1, &DCID).local, repr, 2, &frames);
    // The packet as RFC 9001 §A.2 prints it: its beginning and its tag.
    assert_eq!(client.len(), 1200);
    let begin = "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11";
    assert_eq!(client[..32], hex(begin));
    assert_eq!(client[1184..], hex("e221af44860018ab0856972e194cd934"));

    let mut t = talk();
    t.send(0, 0, &client).send(20, 1, &hex(RFC_SERVER));
    let c = t.finish();
    let (quic, tls) = (c.quic.unwrap(), c.tls.unwrap());
    assert_eq!((c.transport, quic.version, quic.undecryptable), (Transport::Quic, 1, 0));
    assert_eq!((quic.client_initial, quic.server_initial), (ms(0), ms(20)));
    assert_eq!(tls.server_name.as_deref(), Some("example.com"));
    assert_eq!((tls.alpn_offered, tls.client_hello_len), (vec!["alpn".to_owned()], 241));
    assert_eq!((tls.client_hello, tls.server_hello_end), (ms(0), ms(20)));
    assert_eq!(tls.cipher_suite.unwrap().to_string(), "TLS_AES_128_GCM_SHA256");
    assert_eq!((tls.version.unwrap().0, tls.group.unwrap().0), (0x0304, 0x001d));
}

fn client_hello(psk: bool) -> Vec<u8> {
    let mut bodies = vec![
        (0, body::server_name("example.org")),
        (43, body::supported_versions(&[0x0304])),
        (51, body::key_shares(&[(0x11ec, &[7; 1216])])),
        (45, body::psk_dhe_ke()),
    ];
    if psk {
        bodies.push((42, vec![]));
        bodies.push((41, body::pre_shared_key(&[9; 60], 5, &[8; 32])));
    }
    let repr = ClientHelloRepr {
        legacy_version: 0x0303,
        random: [1; 32],
        session_id: &[],
        cipher_suites: vec![0x1301],
        extensions: bodies
            .iter()
            .map(|(kind, data)| Extension { kind: ExtensionKind(*kind), data })
            .collect(),
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    message
}

fn server_hello(psk: bool, random: [u8; 32]) -> Vec<u8> {
    let share = body::key_share(0x001d, &[3; 32]);
    let mut extensions = vec![
        Extension { kind: ExtensionKind(43), data: &[3, 4] },
        Extension { kind: ExtensionKind(51), data: &share },
    ];
    if psk {
        extensions.push(Extension { kind: ExtensionKind(41), data: &[0, 0] });
    }
    let repr = ServerHelloRepr {
        legacy_version: 0x0303,
        random,
        session_id: &[],
        cipher_suite: 0x1301,
        extensions,
    };
    let mut message = vec![0; repr.buffer_len()];
    repr.emit(&mut message).unwrap();
    message
}

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    put_crypto(offset, data, &mut frames).unwrap();
    frames
}

/// A packet that only has a length: Handshake and 0-RTT packets are not opened.
fn opaque(kind: PacketType, version: Version, protected_len: usize) -> Vec<u8> {
    let repr = LongRepr { protected_len, ..long(kind, version, &SCID, &[]) };
    let mut bytes = vec![0x55; repr.buffer_len().unwrap() + protected_len];
    repr.emit(&mut bytes).unwrap();
    bytes
}

fn short(len: usize) -> Vec<u8> {
    vec![0x4f; len]
}

/// A hello in two Initials that arrive the wrong way round, in one version, with early data or not.
fn conversation(version: Version, early: bool, psk_accepted: bool) -> Connection {
    let keys = keys(version, &DCID);
    let hello = client_hello(early);
    let (one, two) = hello.split_at(1100);
    let repr = long(PacketType::Initial, version, &DCID, &[]);
    let mut t = talk();
    let mut second = seal(&keys.local, repr, 1, &crypto(1100, two));
    if early {
        second.extend(opaque(PacketType::ZeroRtt, version, 60));
    }
    t.send(0, 0, &second).send(1, 0, &seal(&keys.local, repr, 0, &crypto(0, one)));
    let repr = long(PacketType::Initial, version, &[], &SCID);
    let mut flight = seal(&keys.remote, repr, 0, &crypto(0, &server_hello(psk_accepted, [5; 32])));
    flight.extend(opaque(PacketType::Handshake, version, 700));
    flight.extend(short(40));
    t.send(20, 1, &flight);
    // An acknowledgment alone, then the Finished with the request behind it.
    t.send(21, 0, &opaque(PacketType::Handshake, version, 25));
    let finished = opaque(PacketType::Handshake, version, 60);
    t.send(22, 0, &[finished, short(45)].concat()).send(42, 1, &short(90));
    t.finish()
}

#[test]
fn a_full_handshake_in_both_versions() {
    for version in [Version::V1, Version::V2, Version(0xff00_001d), Version(0xff00_0022)] {
        let c = conversation(version, false, false);
        let (quic, tls) = (c.quic.unwrap(), c.tls.unwrap());
        assert_eq!((quic.version, quic.undecryptable), (version.0, 0));
        assert_eq!((tls.client_hello, tls.client_hello_end), (ms(1), ms(1)));
        assert_eq!(tls.server_name.as_deref(), Some("example.org"));
        assert!(tls.ja4.unwrap().starts_with("q13d") && tls.ja3.is_some());
        assert_eq!(
            (tls.legacy_version.map(|v| v.0), tls.certificate_requested),
            (Some(0x303), None)
        );
        assert_eq!((quic.client_handshake, tls.client_finished), (ms(21), ms(22)));
        assert_eq!((quic.client_one_rtt, quic.server_one_rtt), (ms(22), ms(20)));
        assert_eq!((c.client_data, c.server_data), (ms(22), ms(42)));
        assert_eq!((tls.early_data, tls.resumption), (EarlyData::NotOffered, Resumption::None));
        assert_eq!(c.uncertain, [Uncertain::QuicData]);
        assert_eq!((c.up.frames, c.down.frames), (4, 2));
    }
}

#[test]
fn early_data_is_likely_at_best_and_rejected_without_the_psk() {
    for (accepted, expected) in [(true, EarlyData::Likely), (false, EarlyData::Rejected)] {
        let c = conversation(Version::V1, true, accepted);
        let (quic, tls) = (c.quic.unwrap(), c.tls.unwrap());
        assert_eq!((quic.zero_rtt, quic.zero_rtt_packets), (ms(0), 1));
        assert_eq!((tls.psk_offered, tls.psk_accepted, tls.early_data), (true, accepted, expected));
        assert_eq!(c.client_data, if accepted { ms(0) } else { ms(22) });
        assert_eq!(c.uncertain.contains(&Uncertain::QuicEarlyData), accepted);
        assert_eq!(quic.server_one_rtt_before_finished, 1);
    }
}

#[test]
fn after_a_retry_the_keys_come_from_the_new_identifier() {
    let hello = client_hello(false);
    let (first, again) = (keys(Version::V1, &DCID), keys(Version::V1, &SCID));
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let mut t = talk();
    t.send(0, 0, &seal(&first.local, repr, 0, &crypto(0, &hello)));
    let mut retry = vec![0xf0, 0, 0, 0, 1, 0, 8];
    retry.extend(SCID);
    retry.extend(b"token");
    retry.extend([0; 16]);
    t.send(20, 1, &retry);
    // RFC 9000 §17.2.5.2: another one changes nothing; neither does the first Initial, late.
    let other = [&[0xf0, 0, 0, 0, 1, 0, 8][..], &[7; 8], b"other", &[0; 16]].concat();
    t.send(20, 1, &other);
    t.send(20, 0, &seal(&first.local, repr, 0, &crypto(0, &hello)));
    let repr = LongRepr { token: b"token", ..long(PacketType::Initial, Version::V1, &SCID, &[]) };
    t.send(21, 0, &seal(&again.local, repr, 1, &crypto(0, &hello)));
    let repr = long(PacketType::Initial, Version::V1, &[], &[9; 8]);
    t.send(40, 1, &seal(&again.remote, repr, 0, &crypto(0, &server_hello(false, [5; 32]))));
    let c = t.finish();
    let (quic, tls) = (c.quic.unwrap(), c.tls.unwrap());
    assert_eq!((quic.retry, quic.undecryptable), (ms(20), 0));
    assert_eq!((tls.server_hello, tls.client_hello_end), (ms(40), ms(0)));
}

#[test]
fn hello_retry_request_and_a_change_of_version() {
    let hello = client_hello(true);
    let (v1, v2) = (keys(Version::V1, &DCID), keys(Version::V2, &DCID));
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let mut t = talk();
    t.send(0, 0, &seal(&v1.local, repr, 0, &crypto(0, &hello)));
    let retry = server_hello(false, HELLO_RETRY_REQUEST_RANDOM);
    // RFC 9369 §4.1: the server answers in version 2.
    let repr = long(PacketType::Initial, Version::V2, &[], &SCID);
    t.send(20, 1, &seal(&v2.remote, repr, 0, &crypto(0, &retry)));
    let second = client_hello(false);
    let repr = long(PacketType::Initial, Version::V2, &SCID, &[]);
    t.send(21, 0, &seal(&v2.local, repr, 1, &crypto(hello.len() as u64, &second)));
    let repr = long(PacketType::Initial, Version::V2, &[], &SCID);
    let said = crypto(retry.len() as u64, &server_hello(false, [5; 32]));
    t.send(40, 1, &seal(&v2.remote, repr, 1, &said));
    let c = t.finish();
    let (quic, tls) = (c.quic.unwrap(), c.tls.unwrap());
    assert_eq!((quic.version, quic.undecryptable), (1, 0));
    assert_eq!((tls.hello_retry_request, tls.second_client_hello_end), (ms(20), ms(21)));
    assert_eq!((tls.server_hello, tls.early_data), (ms(40), EarlyData::Rejected));
    assert_eq!(tls.second_client_hello_len, Some(second.len() as u32));
}

#[test]
fn a_refusal_shows_its_alert() {
    let keys = keys(Version::V1, &DCID);
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let mut t = talk();
    t.send(0, 0, &seal(&keys.local, repr, 0, &crypto(0, &client_hello(false))));
    // CONNECTION_CLOSE with alert 120, no reason.
    let close = [0x1c, 0x41, 0x78, 0x06, 0x00, 0, 0, 0];
    let repr = long(PacketType::Initial, Version::V1, &[], &SCID);
    t.send(20, 1, &seal(&keys.remote, repr, 0, &close));
    let c = t.finish();
    assert_eq!(c.quic.unwrap().close_code, Some(0x178));
    assert_eq!(c.tls.unwrap().alerts[0].name, Some("no_application_protocol"));
}

#[test]
fn datagrams_that_only_look_like_quic_begin_nothing() {
    let keys = keys(Version::V1, &DCID);
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let mut forged = seal(&keys.local, repr, 0, &crypto(0, &client_hello(false)));
    *forged.last_mut().unwrap() ^= 1;
    let mut t = talk();
    t.send(0, 0, &forged).send(1, 0, &short(80)).send(2, 0, b"dns").send(3, 1, &hex(RFC_SERVER));
    assert_eq!((t.tracker.active(), t.tracker.counters().stray), (0, 4));
}

/// draft-ietf-quic-tls-27 §A.3: the server's Initial, under the salt of drafts 23 to 28.
const DRAFT_27_SERVER: &str = "
    c9ff00001b0008f067a5502a4262b5004074168bf22b7002596f99ae67abf65a
    5852f54f58c37c808682e2e40492d8a3899fb04fc0afe9aabc8767b18a0aa493
    537426373b48d502214dd856d63b78cee37bc664b3fe86d487ac7a77c53038a3
    cd32f0b5004d9f5754c4f7f2d1f35cf3f7116351c92bd8c3a9528d2b6aca20f0
    8047d9f017f0";

/// draft-ietf-quic-tls-29 §A.3.
const DRAFT_29_SERVER: &str = "
    caff00001d0008f067a5502a4262b5004074aaf2f007823a5d3a1207c86ee491
    32824f0465243d082d868b107a38092bc80528664cbf9456ebf27673fb5fa506
    1ab573c9f001b81da028a00d52ab00b15bebaa70640e106cf2acd043e9c6b441
    1c0a79637134d8993701fe779e58c2fe753d14b0564021565ea92e57bc6faf56
    dfc7a40870e6";

/// The hello comes in draft 29, whose keys rustls has; the server chooses the vector's version.
#[test]
fn the_servers_packets_of_the_drafts() {
    let draft_29 = Version(0xff00_001d);
    for (draft, server) in [(27, DRAFT_27_SERVER), (29, DRAFT_29_SERVER)] {
        let repr = long(PacketType::Initial, draft_29, &DCID, &[]);
        let keys = keys(draft_29, &DCID);
        let mut t = talk();
        t.send(0, 0, &seal(&keys.local, repr, 0, &crypto(0, &client_hello(false))));
        // The drafts' texts kept frames of older numbers in it: that it opens is all it shows.
        let mut server = hex(server);
        t.send(20, 1, &server);
        *server.last_mut().unwrap() ^= 1;
        t.send(21, 1, &server);
        let quic = t.finish().quic.unwrap();
        assert_eq!((quic.server_initial, quic.undecryptable), (ms(20), 1), "draft {draft}");
    }
}

#[test]
fn without_a_server_hello_there_is_a_doubt_and_no_class() {
    let keys = keys(Version::V1, &DCID);
    let repr = long(PacketType::Initial, Version::V1, &DCID, &[]);
    let mut t = talk();
    t.send(0, 0, &seal(&keys.local, repr, 0, &crypto(0, &client_hello(false))));
    // The server's Initial was lost by the capture: what follows looks like a whole handshake.
    t.send(20, 1, &opaque(PacketType::Handshake, Version::V1, 700));
    let finished = opaque(PacketType::Handshake, Version::V1, 60);
    t.send(22, 0, &[finished, short(45)].concat()).send(42, 1, &short(90));
    let c = t.finish();
    assert_eq!(c.class(), None);
    assert!(c.uncertain.contains(&Uncertain::ServerHello), "{:?}", c.uncertain);
    // A close in an Initial is a failure, whatever its code.
    let mut t = talk();
    t.send(0, 0, &seal(&keys.local, repr, 0, &crypto(0, &client_hello(false))));
    let repr = long(PacketType::Initial, Version::V1, &[], &SCID);
    t.send(20, 1, &seal(&keys.remote, repr, 0, &[0x1c, 0x02, 0x06, 0, 0, 0, 0, 0]));
    assert_eq!(t.finish().class(), Some(Class::Failed));
}

#[test]
fn versions_that_are_not_read_are_counted() {
    let initial = |version: u32, len: usize| {
        let mut bytes = vec![0xc3; len];
        bytes[1..5].copy_from_slice(&version.to_be_bytes());
        (bytes[5], bytes[14]) = (8, 0);
        bytes
    };
    let mut t = talk();
    for version in [0xff00_0015, 0xff00_0015, 0x5130_3436, 0x1a2a_3a4a] {
        t.send(0, 0, &initial(version, 1250));
    }
    // Too short for a first datagram, and one of a known version that does not open.
    t.send(0, 0, &initial(0xff00_0015, 1199)).send(0, 0, &initial(1, 1250));
    let counted: Vec<(String, u64)> = t
        .tracker
        .unread_quic()
        .iter()
        .map(|(version, count)| (Version(*version).to_string(), *count))
        .collect();
    let expected = [("negotiation", 1), ("Q046", 1), ("draft 21", 2)];
    assert_eq!(counted, expected.map(|(name, count)| (name.to_owned(), count)));
    let counters = t.tracker.counters();
    assert_eq!((counters.quic_unread, counters.stray), (4, 2));
    assert!(counters.add_up());
}

/// Clients draw their ports: of some hundred connections two have the same one.
#[test]
fn ports_used_again_make_another_connection() {
    for hand_out in [HandOut::AtEnd, HandOut::AfterHandshake] {
        let limits = Limits { hand_out, ..Limits::default() };
        let mut t = Talk { tracker: Tracker::new(limits), at: Time::ZERO };
        for (begin, dcid) in [(0, DCID), (100, [7; 8])] {
            let keys = keys(Version::V1, &dcid);
            let repr = long(PacketType::Initial, Version::V1, &dcid, &[]);
            let first = seal(&keys.local, repr, 0, &crypto(0, &client_hello(false)));
            // Sent again before an answer came.
            t.send(begin, 0, &first).send(begin + 1, 0, &first);
            let repr = long(PacketType::Initial, Version::V1, &[], &SCID);
            let hello = seal(&keys.remote, repr, 0, &crypto(0, &server_hello(false, [5; 32])));
            t.send(begin + 20, 1, &hello);
            // The client's acknowledgment goes to the server's identifier.
            let repr = long(PacketType::Initial, Version::V1, &SCID, &[]);
            t.send(begin + 21, 0, &seal(&keys.local, repr, 1, &[1; 20]));
            let finished = opaque(PacketType::Handshake, Version::V1, 60);
            t.send(begin + 22, 0, &[finished, short(45)].concat());
            t.send(begin + 42, 1, &short(90)).send(begin + 43, 0, &first);
        }
        t.tracker.close();
        let records: Vec<_> = std::iter::from_fn(|| t.tracker.poll_connection()).collect();
        let seen: Vec<_> = records.iter().map(|c| (Some(c.first_frame), c.class())).collect();
        assert_eq!(seen, [(ms(0), Some(Class::Full)), (ms(100), Some(Class::Full))]);
    }
}
