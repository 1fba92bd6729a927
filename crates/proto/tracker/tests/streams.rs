//! What the application said, out of connections of rustls with itself, and what is said where it cannot
//! be read.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tracker::{StreamFact, StreamLimits, Streams, Unreadable};
use units::Time;
use wire::tcp::{Flags, OptionList};

use crate::pair::{Ends, Lines, Pair, captured, certificate, ends, provider};
use crate::talk::{BASES, Talk, talk};

const SUITES: [u16; 3] = [0x1301, 0x1302, 0x1303];
/// AES-128-GCM, AES-256-GCM and ChaCha20-Poly1305 of TLS 1.2.
const SUITES_12: [u16; 3] = [0xc02b, 0xc02c, 0xcca9];

/// What was read of one connection.
#[derive(Debug, Default, PartialEq)]
struct Said {
    up: Vec<u8>,
    down: Vec<u8>,
    /// When bytes came, each time once.
    up_at: Vec<Time>,
    down_at: Vec<Time>,
    alpn: Vec<Option<String>>,
    name: Option<String>,
    unreadable: Vec<(bool, Unreadable)>,
    ended: usize,
}

fn read<'a>(frames: impl IntoIterator<Item = &'a (Time, Vec<u8>)>, lines: &str) -> Said {
    let mut streams = Streams::new(StreamLimits::default());
    streams.add_keys(lines.as_bytes());
    let mut said = Said::default();
    for (at, frame) in frames {
        streams.handle_packet(*at, tracker::LinkType::Ethernet, frame);
    }
    streams.close();
    assert_eq!(streams.held_bytes(), 0);
    while let Some(event) = streams.poll_event() {
        match event.fact {
            StreamFact::Began { .. } => assert_eq!(event.connection, 0),
            StreamFact::Tls { server_name, .. } => said.name = server_name,
            StreamFact::Alpn(alpn) => said.alpn.push(alpn),
            StreamFact::Data { from_client, bytes } => {
                let (to, times) = match from_client {
                    true => (&mut said.up, &mut said.up_at),
                    false => (&mut said.down, &mut said.down_at),
                };
                to.extend(bytes);
                times.push(event.at);
                times.dedup();
            }
            StreamFact::Unreadable { from_client, why } => said.unreadable.push((from_client, why)),
            StreamFact::Ended(_) => said.ended += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(said.ended, 1);
    said
}

fn lines(ends: &Ends) -> String {
    ends.lines.0.lock().unwrap().clone()
}

/// Two exchanges, of which the second is longer than a record.
fn two_exchanges(ends: &Ends) -> Pair {
    let mut pair = Pair::new(ends);
    pair.run();
    pair.exchange(100, 3000);
    pair.exchange(40_000, 30_000);
    pair
}

fn check(pair: &Pair, lines: &str, alpn: Option<&str>) {
    for segment in [1460, 1, 777, 60_000] {
        let said = read(&captured(&pair.wire, segment, None).frames, lines);
        assert_eq!((said.up.len(), said.down.len()), (40_100, 33_000), "{segment}");
        assert!(said.up.iter().all(|byte| *byte == b'u'));
        assert!(said.down.iter().all(|byte| *byte == b'd'));
        assert_eq!(said.unreadable, []);
        assert_eq!(said.alpn, [alpn.map(str::to_owned)]);
        assert_eq!(said.name.as_deref(), Some("example.org"));
        // Each flight has a time of its own: two up, two down.
        assert_eq!((said.up_at.len(), said.down_at.len()), (2, 2), "{said:?}");
    }
}

#[test]
fn tls_1_3_is_read_under_every_suite() {
    for suite in SUITES {
        let ends = ends(suite, false, true);
        // The second is resumed.
        for _ in 0..2 {
            let pair = two_exchanges(&ends);
            check(&pair, &lines(&ends), Some("h2"));
        }
    }
}

#[test]
fn keys_that_change_are_followed() {
    let ends = ends(0x1302, false, true);
    let mut pair = two_exchanges(&ends);
    pair.client.refresh_traffic_keys().unwrap();
    pair.exchange(10, 20);
    pair.server.refresh_traffic_keys().unwrap();
    pair.exchange(30, 40);
    let said = read(&captured(&pair.wire, 1460, None).frames, &lines(&ends));
    assert_eq!((said.up.len(), said.down.len()), (40_140, 33_060));
    assert_eq!(said.unreadable, []);
}

/// Both under one suite of TLS 1.2.
fn ends_12(suite: u16) -> Ends {
    let lines = Arc::new(Lines::default());
    let versions = [&rustls::version::TLS12];
    let (chain, key) = certificate();
    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    let server = ServerConfig::builder_with_provider(provider(suite));
    let server = server.with_protocol_versions(&versions).unwrap().with_no_client_auth();
    let mut server = server.with_single_cert(chain, key).unwrap();
    server.alpn_protocols = vec![b"spdy/3.1".to_vec()];
    let client = ClientConfig::builder_with_provider(provider(suite));
    let client = client.with_protocol_versions(&versions).unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"spdy/3.1".to_vec()];
    client.key_log = lines.clone();
    Ends { client, server, lines }
}

#[test]
fn tls_1_2_is_read_under_every_suite_with_aead() {
    for suite in SUITES_12 {
        let ends = ends_12(suite);
        for _ in 0..2 {
            let pair = two_exchanges(&ends);
            check(&pair, &lines(&ends), Some("spdy/3.1"));
        }
    }
}

#[test]
fn early_data_count_where_the_server_takes_them() {
    use std::io::Write;
    for (suite, taken) in SUITES.into_iter().flat_map(|suite| [(suite, true), (suite, false)]) {
        let mut ends = ends(suite, false, true);
        ends.server.max_early_data_size = 1000;
        ends.client.enable_early_data = true;
        let mut first = Pair::new(&ends);
        first.run();
        if !taken {
            ends.server.max_early_data_size = 0;
        }
        let mut pair = Pair::new(&ends);
        pair.client.early_data().expect("a ticket").write_all(b"early request").unwrap();
        pair.run();
        pair.exchange(100, 3000);
        let early = if taken { &b"early request"[..] } else { &[] };
        let expected = [early, &[b'u'; 100]].concat();
        for segment in [1460, 1, 77] {
            let frames = captured(&pair.wire, segment, None).frames;
            let said = read(&frames, &lines(&ends));
            assert_eq!((said.up == expected, said.down.len()), (true, 3000), "{suite:x} {taken}");
            assert_eq!(said.unreadable, []);
        }
        // Without the early secret it is not known what they were.
        let without: Vec<String> = lines(&ends)
            .lines()
            .filter(|line| !line.starts_with("CLIENT_EARLY"))
            .map(|line| format!("{line}\n"))
            .collect();
        let said = read(&captured(&pair.wire, 1460, None).frames, &without.concat());
        let unknown: &[_] =
            if taken { &[(true, Unreadable::NoKeys), (false, Unreadable::NoKeys)] } else { &[] };
        assert_eq!(said.unreadable, unknown, "{suite:x}");
    }
}

#[test]
fn keys_that_are_missing_or_wrong_are_said() {
    for ends in [ends(0x1301, false, true), ends_12(0xc02b)] {
        let pair = two_exchanges(&ends);
        let frames = captured(&pair.wire, 1460, None).frames;
        let none = [(true, Unreadable::NoKeys), (false, Unreadable::NoKeys)];
        let said = read(&frames, "");
        assert_eq!((said.unreadable, said.up.len() + said.down.len()), (none.to_vec(), 0));
        // The right randoms with secrets in which a digit differs.
        let wrong: String = lines(&ends)
            .lines()
            .map(|line| {
                let end = if line.ends_with('0') { '1' } else { '0' };
                format!("{}{end}\n", &line[..line.len() - 1])
            })
            .collect();
        let said = read(&frames, &wrong);
        assert!(said.unreadable.iter().all(|(_, why)| *why == Unreadable::Record), "{said:?}");
        assert_eq!((said.unreadable.len(), said.up.len() + said.down.len()), (2, 0));
    }
}

#[test]
fn what_comes_out_of_order_or_twice_is_read_once() {
    let ends = ends(0x1303, false, true);
    let pair = two_exchanges(&ends);
    let frames = captured(&pair.wire, 1000, None).frames;
    let expected = read(&frames, &lines(&ends));
    // The handshake of TCP stays in order; then pairs change places, and every third comes again.
    let (first, rest) = frames.split_at(3);
    let mut mixed = first.to_vec();
    for (number, pair) in rest.chunks(2).enumerate() {
        mixed.extend(pair.iter().rev().cloned());
        if number % 3 == 0 {
            mixed.push(pair[0].clone());
        }
    }
    let said = read(&mixed, &lines(&ends));
    assert_eq!((said.up, said.down), (expected.up, expected.down));
    assert_eq!(said.unreadable, []);
}

#[test]
fn what_is_missing_ends_its_direction_and_not_the_other() {
    let ends = ends(0x1301, false, true);
    let pair = two_exchanges(&ends);
    let frames = captured(&pair.wire, 1000, None).frames;
    let (low, whole) = (frames.len() - 20, read(&frames, &lines(&ends)));
    // The last flight is the server's.
    let lost: Vec<_> =
        frames.iter().enumerate().filter(|(at, _)| *at != low).map(|(_, f)| f.clone()).collect();
    let said = read(&lost, &lines(&ends));
    assert_eq!(said.unreadable, [(false, Unreadable::Missing)]);
    assert_eq!(said.up, whole.up);
    assert!(said.down.len() < whole.down.len() && whole.down.starts_with(&said.down));
}

/// A connection in clear, with data on its SYN of which the server takes so many.
fn with_syn_data(taken: u32) -> Talk {
    let mut t = talk();
    t.raw(0, Flags::SYN, 0, None, b"PRI * ", OptionList::default());
    t.at(10).raw(1, Flags::SYN, 0, Some(1 + taken), &[], OptionList::default());
    t.next = [1 + taken, 1];
    t.at(20).send(0, &b"PRI * HTTP/2.0"[taken as usize..]).at(30).send(1, b"answer");
    t
}

#[test]
fn data_of_a_syn_count_as_far_as_the_server_took_them() {
    assert_eq!(BASES[0], u32::MAX - 100);
    for taken in [0, 4, 6] {
        let said = read(&with_syn_data(taken).frames, "");
        assert_eq!((&said.up[..], &said.down[..]), (&b"PRI * HTTP/2.0"[..], &b"answer"[..]));
        assert_eq!(said.up_at.first(), Some(&Time::from_millis(if taken == 0 { 20 } else { 0 })));
    }
}

#[test]
fn a_connection_that_was_under_way_is_counted_and_not_read() {
    let talk = with_syn_data(0);
    let mut streams = Streams::new(StreamLimits::default());
    for (at, frame) in &talk.frames[1..] {
        streams.handle_packet(*at, tracker::LinkType::Ethernet, frame);
    }
    assert_eq!(streams.poll_event(), None);
    let counters = streams.counters();
    assert_eq!((counters.frames, counters.stray_segments, counters.connections), (3, 3, 0));
}
