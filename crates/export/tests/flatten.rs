//! Rows of real captures, which tshark and decryption have judged (`proto/tracker/tests`).

use std::fs::File;

use export::{Addresses, Anonymiser, EndingRow, Flattener, JsonLines, Key, Names, Prefixes, Row};
use pcap_file::pcap::PcapReader;
use tracker::{Connection, End, Ending, Limits, LinkType, Tracker, Traffic};
use units::Time;

/// The connections in a capture, with times since the epoch.
fn connections(name: &str) -> Vec<Connection> {
    let path = format!("{}/../proto/tracker/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut tracker = Tracker::new(Limits::default());
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let at = Time::ZERO + packet.timestamp;
        let len = packet.orig_len as usize;
        tracker.handle_packet(at, LinkType::Ethernet, &packet.data, len);
    }
    tracker.finish()
}

fn rows(name: &str, anonymiser: Anonymiser) -> Vec<Row> {
    let flattener = Flattener::new("r", anonymiser.networks());
    let row = |mut connection| {
        anonymiser.hide(&mut connection);
        flattener.connection(&connection)
    };
    connections(name).into_iter().map(row).collect()
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// Microseconds after `row`'s SYN.
fn us(row: &Row, micros: u64) -> Option<u64> {
    Some(row.syn.unwrap() + micros * 1_000)
}

#[test]
fn tls_1_2_with_ecdhe() {
    let rows = rows("ecdhe.pcap", Anonymiser::none());
    let [row] = &rows[..] else { panic!("one connection") };
    // tshark: frame.time_epoch of frame 1.
    assert_eq!(row.syn, Some(1_398_529_018_654_077_000));
    assert_eq!(row.first_frame, 1_398_529_018_654_077_000);
    assert_eq!((row.syn_ack, row.ack), (us(row, 24_199), us(row, 24_352)));
    assert_eq!((row.client_hello, row.server_hello), (us(row, 24_750), us(row, 55_995)));
    assert_eq!((row.server_flight_end, row.client_finished), (us(row, 57_270), us(row, 60_711)));
    assert_eq!((row.client_data, row.server_data), (us(row, 1_437_806), us(row, 1_462_409)));
    assert_eq!((row.handshake, row.tls_handshake), (Some(60_711_000), Some(35_961_000)));
    assert_eq!((row.think, row.hello_to_data), (Some(1_377_095_000), Some(1_413_056_000)));
    assert_eq!(row.round_trip, Some(24_352_000));
    assert_eq!(row.tls_round_trips, Some(0.035_961 / 0.024_352));
    assert_eq!((row.version.as_deref(), row.version_number), (Some("TLS 1.2"), Some(0x0303)));
    assert_eq!(row.class.as_deref(), Some("full"));
    assert_eq!((row.ticket_offered, row.ticket_accepted), (Some(false), Some(false)));
    assert_eq!((row.transport.as_str(), row.ended.as_str()), ("tcp", "fin"));
    assert_eq!((row.retransmitted_up, row.retransmitted_down), (Some(1), Some(0)));
    assert_eq!((row.psk_offered, row.early_data.as_deref()), (Some(false), Some("not_offered")));
    assert!(row.uncertain.is_empty() && row.roles_known && !row.dropped);
}

#[test]
fn drafts_alerts_and_connections_without_tls() {
    let rows = rows("tls13draft23-chrome67.0.3368.0-canary.pcap", Anonymiser::none());
    let [row, idle] = &rows[..] else { panic!("two connections") };
    assert_eq!(row.version.as_deref(), Some("TLS 1.3 draft 23"));
    assert_eq!(row.version_number, Some(0x7f17));
    let offered = texts(&["TLS 1.3 draft 23", "TLS 1.2", "TLS 1.1", "TLS 1.0"]);
    assert_eq!(row.versions_offered, offered);
    assert_eq!(row.sni.as_deref(), Some("tls13.crypto.mozilla.org"));
    assert_eq!((row.client_hello_bytes, row.client_data, row.think), (Some(512), None, None));
    // Not known is not the same as no.
    assert_eq!(
        (idle.class.as_deref(), idle.psk_offered, idle.resumption.as_deref()),
        (None, None, None)
    );
    assert_eq!((idle.tls_handshake, idle.ticket_offered), (None, None));

    let rows = self::rows("tls-early-alert.pcap", Anonymiser::none());
    let [row] = &rows[..] else { panic!("one connection") };
    assert_eq!(row.alert.as_deref(), Some("unrecognized_name"));
    assert_eq!((row.alert_level, row.alert_from.as_deref()), (Some(1), Some("server")));
    assert_eq!(row.alpn_offered, texts(&["h2", "spdy/3.1", "http/1.1"]));
    assert_eq!(row.ended, "open");
}

#[test]
fn seven_modes_are_seven_rows_of_their_class() {
    let rows = rows("openssl-3.0-modes.pcap", Anonymiser::none());
    let facts: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
            (row.number, text(&row.class), text(&row.resumption), text(&row.early_data))
        })
        .collect();
    let expected = [
        ("full", "none", "not_offered"),
        ("resumed", "psk", "not_offered"),
        ("zero_rtt", "psk", "accepted"),
        ("hello_retry", "none", "not_offered"),
        ("full", "none", "not_offered"),
        ("resumed", "ticket", "not_offered"),
        ("full", "none", "not_offered"),
    ];
    let expected = expected.iter().enumerate().map(|(number, (class, resumption, early))| {
        (number as u64, class.to_string(), resumption.to_string(), early.to_string())
    });
    assert_eq!(facts, expected.collect::<Vec<_>>());
    assert_eq!(rows[2].think, Some(0));
    assert_eq!(rows[3].hello_retry_request, Some(true));
    assert_eq!(rows[5].ticket_accepted, Some(true));
}

#[test]
fn nothing_of_a_hidden_address_or_name_is_in_any_line() {
    let name = "tls13draft23-chrome67.0.3368.0-canary.pcap";
    let plain = rows(name, Anonymiser::none());
    let anonymiser =
        Anonymiser::new(Addresses::Hash, Names::Hash, &Key::from_bytes([7; 32])).unwrap();
    let hidden = rows(name, anonymiser);
    let mut text = Vec::new();
    let mut lines = JsonLines::new(&mut text);
    for row in &hidden {
        let _ = lines.write(row).unwrap();
    }
    let _ = lines.flush().unwrap();
    let text = String::from_utf8(text).unwrap();
    for (row, hidden) in plain.iter().zip(&hidden) {
        for secret in [&row.client, &row.server, row.sni.as_ref().unwrap_or(&row.client)] {
            assert!(!text.contains(secret.as_str()), "{secret}");
        }
        assert!(!text.contains(row.client_network.trim_end_matches("0/24")));
        assert_eq!((row.client_port, row.server_port), (hidden.client_port, hidden.server_port));
        assert_eq!((row.tls_handshake, &row.ja3), (hidden.tls_handshake, &hidden.ja3));
    }
    assert_eq!(hidden[0].client, hidden[1].client);
}

#[test]
fn an_ending_says_which_connection_of_which_run() {
    let ending = Ending {
        number: 9,
        last_frame: Time::from_millis(5),
        up: Traffic { frames: 1, bytes: 2 },
        down: Traffic { frames: 3, bytes: 4 },
        end: End::Reset,
        dropped: true,
    };
    assert_eq!(
        Flattener::new("run", Prefixes::default()).ending(&ending),
        EndingRow {
            run: "run".to_owned(),
            number: 9,
            last_frame: 5_000_000,
            frames_up: 1,
            bytes_up: 2,
            frames_down: 3,
            bytes_down: 4,
            ended: "reset".to_owned(),
            dropped: true,
        }
    );
}
