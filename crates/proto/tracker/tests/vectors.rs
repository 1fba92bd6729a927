//! Captures of real sessions (see `data/COPYING`): every fact was read off with tshark.

use crate::common::{frames, observe};
use proptest::prelude::*;
use tracker::{
    Connection, EarlyData, End, Limits, LinkType, Resumption, TlsFacts, Tracker, Traffic,
};
use units::Time;

fn us(micros: u64) -> Option<Time> {
    Some(Time::from_micros(micros))
}

fn tls(connection: &Connection) -> &TlsFacts {
    connection.tls.as_ref().expect("a TLS handshake")
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// SYN, SYN+ACK, its acknowledgment; ClientHello, ServerHello, end of the server's flight, both
/// Finished; first application data of client and server.
fn times(c: &Connection) -> [Option<Time>; 10] {
    let (tcp, tls) = (c.tcp.as_ref().expect("TCP"), tls(c));
    [
        tcp.syn,
        tcp.syn_ack,
        tcp.handshake_ack,
        tls.client_hello,
        tls.server_hello_end,
        tls.server_flight_end,
        tls.client_finished,
        tls.server_finished,
        c.client_data,
        c.server_data,
    ]
}

fn only(name: &str) -> Connection {
    let mut all = observe(&frames(name));
    assert_eq!(all.len(), 1);
    let connection = all.remove(0);
    assert_eq!(connection.uncertain, []);
    assert!(connection.roles_known && !connection.dropped);
    connection
}

#[test]
fn tls_1_2_with_rsa_key_exchange() {
    let c = only("tls1.2.pcap");
    assert_eq!(c.client.to_string(), "10.0.0.80:56637");
    assert_eq!(c.server.to_string(), "68.233.76.12:443");
    assert_eq!(
        times(&c),
        [
            us(0),
            us(36_663),
            us(36_856),
            us(37_056),
            us(78_141),
            us(79_650),
            us(80_789),
            us(117_843),
            us(3_067_287),
            us(3_256_275),
        ]
    );
    let tls = tls(&c);
    assert_eq!(tls.version.unwrap().to_string(), "TLS 1.2");
    assert_eq!(tls.cipher_suite.unwrap().0, 0x0004);
    assert_eq!((tls.client_hello_len, tls.client_hello_records_len), (317, 322));
    assert_eq!(tls.server_flight_len, 3_927);
    assert_eq!((tls.ticket_offered, tls.tickets), (Some(0), 0));
    assert_eq!(tls.resumption, Resumption::None);
    assert_eq!(
        (c.up, c.down),
        (Traffic { frames: 13, bytes: 1583 }, Traffic { frames: 9, bytes: 6642 })
    );
    assert_eq!(c.down_to_response, Some(Traffic { frames: 7, bytes: 5792 }));
    // The close_notify in frame 20 comes after both sides' data: no longer read.
    assert_eq!(tls.alerts, []);
    assert_eq!(c.end, End::Fin);
}

#[test]
fn tls_1_2_with_ecdhe_a_ticket_and_a_retransmission() {
    let c = only("ecdhe.pcap");
    assert_eq!(
        times(&c),
        [
            us(0),
            us(24_199),
            us(24_352),
            us(24_750),
            us(55_995),
            us(57_270),
            us(60_711),
            us(89_875),
            us(1_437_806),
            us(1_462_409),
        ]
    );
    assert_eq!(tls(&c).cipher_suite.unwrap().0, 0xc014);
    assert_eq!(tls(&c).tickets, 1);
    let tcp = c.tcp.as_ref().unwrap();
    // Frame 26 sends frame 23's data and frame 24's FIN again.
    assert_eq!((tcp.client_retransmitted, tcp.server_retransmitted), (1, 0));
    assert_eq!(tcp.server_round_trip().unwrap().as_micros(), 24_199);
    assert_eq!(c.handshake_time().unwrap().as_micros(), 60_711);
}

#[test]
fn a_warning_before_the_server_hello_and_false_start() {
    let c = only("tls-early-alert.pcap");
    assert_eq!(
        times(&c),
        [
            us(0),
            us(73_958),
            us(74_088),
            us(74_337),
            us(150_887),
            us(151_725),
            us(155_895),
            us(228_976),
            us(158_107),
            us(231_780),
        ]
    );
    let tls = tls(&c);
    let [alert] = tls.alerts[..] else { panic!("one alert") };
    assert_eq!((alert.level, alert.description), (Some(1), Some(112)));
    assert_eq!((alert.name, alert.from_client), (Some("unrecognized_name"), false));
    assert_eq!(tls.server_name.as_deref(), Some("jeffbryner.com"));
    assert_eq!(tls.alpn_offered, ["h2", "spdy/3.1", "http/1.1"]);
    assert_eq!(tls.cipher_suite.unwrap().to_string(), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    assert_eq!(c.end, End::Open);
}

#[test]
fn tls_1_3_with_an_accepted_psk() {
    let c = only("tls13_psk_succesfull.pcap");
    assert_eq!(
        times(&c),
        [
            us(0),
            us(33_966),
            us(34_016),
            us(34_721),
            us(68_707),
            us(68_707),
            us(69_157),
            us(68_707),
            us(1_673_193),
            us(3_242_703),
        ]
    );
    let tls = tls(&c);
    assert_eq!(texts(&tls.versions_offered), ["TLS 1.3", "TLS 1.2", "TLS 1.1", "TLS 1.0"]);
    assert_eq!(tls.cipher_suite.unwrap().to_string(), "TLS_CHACHA20_POLY1305_SHA256");
    assert!(tls.psk_offered && tls.psk_accepted);
    assert_eq!((tls.resumption, tls.early_data), (Resumption::Psk, EarlyData::NotOffered));
    assert_eq!((tls.group.unwrap().0, texts(&tls.key_shares)), (0x1d, vec!["x25519".to_owned()]));
    // Frame 9: a ticket of 234 bytes before any request.
    assert_eq!((tls.tickets, tls.server_flight_len), (1, 225));
    // SYN+ACK, ACK and data of 74 and more bytes: the bytes are those on the link.
    assert_eq!(c.down, Traffic { frames: 9, bytes: 1158 });
    assert_eq!(c.tcp.as_ref().unwrap().client_payload_bytes, 520);
}

#[test]
fn draft_23_and_a_connection_without_data() {
    let all = observe(&frames("tls13draft23-chrome67.0.3368.0-canary.pcap"));
    let [c, idle] = &all[..] else { panic!("two connections") };
    let times = times(c);
    assert_eq!(times[3..8], [us(138_232), us(309_762), us(309_764), us(310_304), us(309_764)]);
    // The client sent FIN right after its Finished; the server's 19 bytes are close_notify.
    assert_eq!((c.client_data, c.server_data), (None, None));
    let tls = tls(c);
    let offered = texts(&tls.versions_offered);
    assert_eq!(offered, ["TLS 1.3 draft 23", "TLS 1.2", "TLS 1.1", "TLS 1.0"]);
    assert_eq!(tls.version.unwrap().draft(), Some(23));
    assert_eq!(tls.server_name.as_deref(), Some("tls13.crypto.mozilla.org"));
    assert_eq!(texts(&tls.groups), ["x25519", "secp256r1", "secp384r1"]);
    assert_eq!(tls.client_hello_len, 512);
    assert_eq!(c.uncertain, []);
    assert_eq!((idle.tls.as_ref(), idle.client_data, idle.end), (None, None, End::Fin));
    assert_eq!(idle.tcp.as_ref().unwrap().syn_ack, us(309_758));
}

#[test]
fn draft_19_full_then_with_early_data() {
    let all = observe(&frames("tls-13draft19-early-data.pcap"));
    let [full, early] = &all[..] else { panic!("two connections") };
    assert_eq!(tls(full).version.unwrap().draft(), Some(19));
    assert_eq!(tls(full).client_finished, us(338_547));
    assert_eq!((full.client_data, full.server_data), (None, None));
    assert_eq!((tls(full).tickets, tls(full).early_data), (1, EarlyData::NotOffered));

    let tls = tls(early);
    assert!(tls.psk_offered && tls.psk_accepted);
    assert_eq!(tls.early_data, EarlyData::Accepted);
    assert_eq!((tls.early_data_records, tls.early_data_bytes), (1, 57));
    // Frame 27 the early data, 28 the server's flight, 30 its half-RTT answer, 32 EndOfEarlyData
    // and the client's Finished.
    assert_eq!((early.client_data, early.server_data), (us(4_940_280), us(5_114_007)));
    assert_eq!((tls.server_flight_end, tls.client_finished), (us(4_941_280), us(5_114_089)));
    assert_eq!(tls.cipher_suite.unwrap().0, 0x1302);
    assert_eq!((early.uncertain.len(), full.uncertain.len()), (0, 0));
}

/// What tshark shows of a connection in `openssl-3.0-modes.pcap` once it has decrypted it with the
/// session's keys: HelloRetryRequest, ServerHello, client's and server's Finished, first
/// application data of client and server, in microseconds.
struct Truth {
    retry: Option<u64>,
    times: [u64; 5],
    resumption: Resumption,
    early_data: EarlyData,
    tickets: u32,
}

#[test]
fn openssl_in_seven_modes_as_decryption_shows_them() {
    let plain = |retry, times, resumption, tickets| Truth {
        retry,
        times,
        resumption,
        early_data: EarlyData::NotOffered,
        tickets,
    };
    let none = Resumption::None;
    let truth = [
        plain(None, [1_678, 2_681, 1_678, 2_776, 2_848], none, 2),
        plain(None, [1_206_029, 1_210_893, 1_206_029, 1_211_020, 1_766_243], Resumption::Psk, 1),
        Truth {
            retry: None,
            times: [2_403_144, 2_403_379, 2_403_144, 2_402_855, 2_469_171],
            resumption: Resumption::Psk,
            early_data: EarlyData::Accepted,
            tickets: 1,
        },
        plain(Some(3_646_082), [3_651_877, 3_652_838, 3_651_877, 3_652_927, 3_653_145], none, 2),
        plain(None, [5_012_576, 5_013_505, 5_013_758, 5_013_940, 5_014_041], none, 1),
        plain(None, [6_104_495, 6_104_707, 6_104_495, 6_104_790, 6_104_861], Resumption::Ticket, 0),
        plain(None, [7_352_841, 7_353_541, 7_356_091, 7_356_206, 7_356_275], none, 0),
    ];
    let all = observe(&frames("openssl-3.0-modes.pcap"));
    assert_eq!(all.len(), truth.len());
    for (c, truth) in all.iter().zip(&truth) {
        let tls = tls(c);
        let times = [
            tls.server_hello_end,
            tls.client_finished,
            tls.server_finished,
            c.client_data,
            c.server_data,
        ];
        assert_eq!(times, truth.times.map(us), "{}", c.client);
        assert_eq!(tls.hello_retry_request, truth.retry.and_then(us));
        assert_eq!((tls.resumption, tls.early_data), (truth.resumption, truth.early_data));
        assert_eq!((tls.tickets, &c.uncertain), (truth.tickets, &vec![]));
    }
}

const NAMES: [&str; 7] = [
    "openssl-3.0-modes.pcap",
    "ecdhe.pcap",
    "tls-13draft19-early-data.pcap",
    "tls-early-alert.pcap",
    "tls1.2.pcap",
    "tls13_psk_succesfull.pcap",
    "tls13draft23-chrome67.0.3368.0-canary.pcap",
];

#[test]
fn every_frame_cut_at_every_length_does_no_harm() {
    for name in NAMES {
        let frames = frames(name);
        for cut in 0..1600 {
            let mut tracker = Tracker::new(Limits::default());
            for (at, bytes, len) in &frames {
                let kept = &bytes[..cut.min(bytes.len())];
                tracker.handle_packet(*at, LinkType::Ethernet, kept, *len);
            }
            assert!(tracker.finish().len() <= 7, "{name} cut at {cut}");
        }
    }
}

#[test]
fn a_capture_that_begins_anywhere_does_no_harm() {
    for name in NAMES {
        let frames = frames(name);
        for begin in 0..frames.len() {
            for connection in observe(&frames[begin..]) {
                assert!(connection.up.frames + connection.down.frames > 0);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bits_do_no_harm(
        name in 0usize..7,
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 0u8..8), 1..40),
    ) {
        let mut frames = frames(NAMES[name]);
        for (frame, byte, bit) in flips {
            let frame = frame.get_mut(&mut frames[..]);
            let at = byte.index(frame.1.len());
            frame.1[at] ^= 1 << bit;
        }
        let limits = Limits { connections: 2, ..Limits::default() };
        let mut tracker = Tracker::new(limits);
        for (at, bytes, len) in &frames {
            tracker.handle_packet(*at, LinkType::Ethernet, bytes, *len);
            prop_assert!(tracker.active() <= 2);
        }
        for connection in tracker.finish() {
            prop_assert!(serde_json::to_string(&connection).is_ok());
        }
    }

    /// The order in which segments of a window arrive changes times, not facts.
    #[test]
    fn swapped_frames_give_the_same_facts(name in 0usize..7, swaps in proptest::collection::vec(5usize..16, 1..3)) {
        let original = frames(NAMES[name]);
        let mut swapped = original.clone();
        for at in swaps {
            // Only neighbours from one side, so that what depends on both sides' order stays.
            if at + 1 < swapped.len() && swapped[at].1[26..30] == swapped[at + 1].1[26..30]
                && swapped[at].1[34..36] == swapped[at + 1].1[34..36]
            {
                let (a, b) = (swapped[at].1.clone(), swapped[at + 1].1.clone());
                (swapped[at].1, swapped[at + 1].1) = (b, a);
            }
        }
        for (a, b) in observe(&original).iter().zip(&observe(&swapped)) {
            let facts = |c: &Connection| {
                let t = c.tls.as_ref();
                t.map(|t| (t.version, t.cipher_suite, t.early_data, t.psk_accepted, t.client_hello_len))
            };
            prop_assert_eq!(facts(a), facts(b));
            prop_assert_eq!(a.up.frames + a.down.frames, b.up.frames + b.down.frames);
        }
    }
}
