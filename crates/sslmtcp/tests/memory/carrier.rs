//! The carriage in memory, without TCP: what is in the SYN, what answers it, after how many flights
//! what may happen.

use crate::common::{Ends, REQUEST, RESPONSE, SYN_ROOM, SynFate, Wire, plan, take};
use sslmtcp::testing::{Script, ScriptedEngine};
use sslmtcp::{Carrier, CarrierError, Embedding, Plan, envelope, padding};
use std::time::Duration;
use tls::{EarlyData, KeyType, Library, Version};
use units::Time;

fn library_pairs() -> impl Iterator<Item = (Library, Library)> {
    Library::ALL.iter().flat_map(|&client| Library::ALL.iter().map(move |&server| (client, server)))
}

fn ends(embedding: Embedding) -> Ends {
    let key_type = match embedding {
        Embedding::Paper => KeyType::Rsa2048,
        _ => KeyType::EcdsaP256,
    };
    Ends::new(embedding, Library::Rustls, Library::Rustls, key_type, 1)
}

fn with_request(embedding: Embedding) -> Plan {
    Plan { request: REQUEST.to_vec(), ..plan(embedding) }
}

#[test]
fn tls13_is_ready_after_one_round_trip() {
    for (client, server) in library_pairs() {
        for chain in 1..=3 {
            let ends = Ends::new(Embedding::Tls13, client, server, KeyType::EcdsaP256, chain);
            let mut wire = ends.wire(with_request(Embedding::Tls13), None);
            assert!((1200..1205).contains(&wire.syn.len()), "{client}: {}", wire.syn.len());
            wire.run().unwrap();
            // SYN, SYN-ACK; then Finished and request in one flight.
            assert_eq!((wire.ready, wire.requested, wire.responded), (Some(2), Some(3), Some(4)));
            assert_eq!(wire.at_server, REQUEST);
            assert_eq!(wire.client.facts().version, Some(Version::Tls13));
        }
    }
}

#[test]
fn paper_is_ready_after_two_round_trips_in_envelopes() {
    let mut wire = ends(Embedding::Paper).wire(with_request(Embedding::Paper), None);
    wire.run().unwrap();
    assert_eq!((wire.ready, wire.requested, wire.responded), (Some(4), Some(5), Some(6)));
    assert_eq!(wire.syn.len(), envelope::MIN_LEN);
    for (at, enveloped) in [(0, true), (1, true), (2, true), (3, false), (4, false)] {
        let flight = &wire.flights[at].1;
        assert_eq!(envelope::begins(flight), Some(enveloped), "flight {at}");
        assert!(!enveloped || flight.len() >= envelope::MIN_LEN);
    }
    assert_eq!(wire.client.facts().group, None, "RSA key exchange");
    assert_eq!(wire.at_server, REQUEST);
}

#[test]
fn zero_rtt_is_ready_at_once_and_answered_in_the_syn_ack() {
    for (client, server) in library_pairs() {
        let ends = Ends::new(Embedding::ZeroRtt, client, server, KeyType::EcdsaP256, 1);
        let ticket = ends.ticket();
        let plan = Plan { early_data: REQUEST.to_vec(), ..plan(Embedding::ZeroRtt) };
        let mut wire = ends.wire(plan, Some(&ticket));
        assert!((1200..1205).contains(&wire.syn.len()), "{client}: {}", wire.syn.len());
        wire.run().unwrap();
        assert_eq!((wire.ready, wire.requested, wire.responded), (Some(0), Some(1), Some(2)));
        assert_eq!(wire.server.facts().early_data, EarlyData::Accepted);
        assert!(!wire.client.is_handshaking() && !wire.server.is_handshaking());
    }
}

#[test]
fn data_behind_early_data_keep_their_place() {
    for (client, server) in library_pairs() {
        let mut ends = Ends::new(Embedding::ZeroRtt, client, server, KeyType::EcdsaP256, 1);
        for restart in [false, true] {
            let ticket = ends.ticket();
            if restart {
                ends.restart_server();
            }
            let early = plan(Embedding::ZeroRtt);
            let early = Plan { early_data: b"one ".to_vec(), request: b"two ".to_vec(), ..early };
            let mut wire = ends.wire(early, Some(&ticket));
            assert_eq!(wire.client.send(Time::ZERO, b"three"), Ok(5));
            wire.run().unwrap();
            assert_eq!(wire.at_server, b"one two three");
            let wanted = if restart { EarlyData::Rejected } else { EarlyData::Accepted };
            assert_eq!(wire.client.facts().early_data, wanted);
            assert_eq!(wire.server.facts().early_data, wanted);
            // A rejection costs the one round trip of tls13.
            let requested = if restart { 3 } else { 1 };
            assert!(wire.requested.is_none_or(|at| at >= requested));
        }
    }
}

#[test]
fn a_replayed_syn_is_not_served_twice() {
    for (client, server) in library_pairs() {
        let ends = Ends::new(Embedding::ZeroRtt, client, server, KeyType::EcdsaP256, 1);
        let ticket = ends.ticket();
        let plan = Plan { early_data: REQUEST.to_vec(), ..plan(Embedding::ZeroRtt) };
        let syn = ends.wire(plan, Some(&ticket)).syn;
        let served = || {
            let mut carrier = Carrier::server(ends.server.accept().unwrap(), 1224);
            carrier.read(Time::ZERO, &syn).unwrap();
            let mut data = Vec::new();
            carrier.receive(&mut data).unwrap();
            (data, carrier.facts().early_data, carrier.is_ready())
        };
        assert_eq!(served(), (REQUEST.to_vec(), EarlyData::Accepted, true), "{server}");
        for _ in 0..3 {
            assert_eq!(served(), (Vec::new(), EarlyData::Rejected, false), "{server}");
        }
    }
}

#[test]
fn a_refused_syn_costs_no_more_than_ordinary_tls() {
    for (embedding, ready) in
        [(Embedding::Paper, 6), (Embedding::Tls13, 4), (Embedding::ZeroRtt, 0)]
    {
        let ends = ends(embedding);
        let ticket = (embedding == Embedding::ZeroRtt).then(|| ends.ticket());
        let first = Plan { early_data: REQUEST.to_vec(), ..plan(embedding) };
        let mut wire = ends.wire(first, ticket.as_ref());
        wire.fate = SynFate::Refused;
        wire.run().unwrap();
        assert_eq!(wire.ready, Some(ready), "{embedding}");
        assert_eq!(wire.at_client, RESPONSE);
        // The hello goes as TLS wrote it: in as few records as it can.
        let hello = &wire.flights[2].1;
        assert!(hello.len() < 1000 && hello[0] == 22, "{embedding}: {}", hello.len());
    }
}

#[test]
fn an_ordinary_peer_is_served_on_the_same_port() {
    for embedding in [Embedding::None, Embedding::Tls13] {
        let mut wire = ends(Embedding::Tls13).wire(with_request(embedding), None);
        wire.run().unwrap();
        let first = if embedding == Embedding::None { 4 } else { 2 };
        assert_eq!(wire.ready, Some(first));
    }
}

#[test]
fn the_longest_first_flights_fit() {
    let chain = 3;
    let server = Library::OpenSsl;
    let ends = Ends::new(Embedding::Paper, server, server, KeyType::Rsa4096, chain);
    let mut wire = ends.wire(with_request(Embedding::Paper), None);
    wire.run().unwrap();
    assert_eq!(wire.at_client, RESPONSE);
    let answer = wire.flights[1].1.len();
    println!("paper, RSA-4096, chain of {chain}: {answer} bytes");
    assert!((3 * 1024..2 + envelope::MAX_PAYLOAD).contains(&answer), "{answer}");
}

#[test]
fn a_fast_open_server_that_takes_the_envelope_is_reported() {
    let ends = ends(Embedding::Paper);
    let mut client =
        Carrier::client(Time::ZERO, ends.client.start(None).unwrap(), plan(Embedding::Paper))
            .unwrap();
    let syn = client.syn();
    // It knows TLS only.
    let mut plain = Carrier::server(ends.server.accept().unwrap(), 0);
    assert!(plain.read(Time::ZERO, &syn).is_err());
    let alert = take(&mut plain);
    client.syn_answered(Time::ZERO, true).unwrap();
    assert!(client.awaits_envelope());
    assert_eq!(client.read_end(), Err(CarrierError::PlainPeer));
    let reported =
        if alert.is_empty() { client.read_end() } else { client.read(Time::ZERO, &alert) };
    assert_eq!(reported, Err(CarrierError::PlainPeer));
}

#[test]
fn an_envelope_needs_a_long_segment() {
    let mut out = Vec::new();
    envelope::encode(&[22, 3, 1, 0, 1, 0], &mut out);
    let ends = ends(Embedding::Paper);
    for (segment, ok) in [(envelope::MIN_SEGMENT - 1, false), (envelope::MIN_SEGMENT, true)] {
        let mut server = Carrier::server(ends.server.accept().unwrap(), segment);
        assert_eq!(server.read(Time::ZERO, &out).is_ok(), ok);
    }
}

#[test]
fn the_clients_finished_waits_for_the_request() {
    for (client, server) in library_pairs() {
        let ends = Ends::new(Embedding::Tls13, client, server, KeyType::EcdsaP256, 1);
        let mut wire = ends.wire(plan(Embedding::Tls13), None);
        wire.server.read(Time::ZERO, &wire.syn).unwrap();
        wire.client.syn_answered(Time::ZERO, true).unwrap();
        wire.client.read(Time::ZERO, &take(&mut wire.server)).unwrap();
        assert!(wire.client.is_holding() && wire.client.outgoing().is_empty());
        wire.client.send(Time::ZERO, REQUEST).unwrap();
        assert!(!wire.client.is_holding());
        wire.server.read(Time::ZERO, &take(&mut wire.client)).unwrap();
        wire.server.receive(&mut wire.at_server).unwrap();
        assert_eq!(wire.at_server, REQUEST, "Finished and request in one flight");
    }
}

#[test]
fn the_end_is_told_from_a_cut() {
    for (client, server) in library_pairs() {
        let ends = Ends::new(Embedding::Tls13, client, server, KeyType::EcdsaP256, 1);
        let mut wire = ends.wire(with_request(Embedding::Tls13), None);
        wire.run().unwrap();
        assert_eq!(wire.client.read_end(), Err(CarrierError::Truncated));
        wire.server.close(Time::ZERO).unwrap();
        wire.client.read(Time::ZERO, &take(&mut wire.server)).unwrap();
        assert!(wire.client.peer_closed());
        assert_eq!(wire.client.read_end(), Ok(()));
        // Half closed: the client may still send (RFC 8446 §6.1).
        wire.client.send(Time::ZERO, b"more").unwrap();
        wire.server.read(Time::ZERO, &take(&mut wire.client)).unwrap();
        assert_eq!(wire.server.receive(&mut wire.at_server).unwrap(), 4);
    }
}

#[test]
fn what_waits_for_tcp_is_bounded() {
    let mut wire = ends(Embedding::Tls13).wire(with_request(Embedding::Tls13), None);
    wire.run().unwrap();
    let chunk = vec![7; 1 << 20];
    let mut taken = 0;
    loop {
        match wire.client.send(Time::ZERO, &chunk).unwrap() {
            0 => break,
            len => taken += len,
        }
    }
    assert!(wire.client.outgoing().len() <= 2 * sslmtcp::SEND_LIMIT);
    assert!(taken >= sslmtcp::SEND_LIMIT - 1024);
    // What TCP took makes room.
    wire.client.consume(32 << 10);
    assert!(wire.client.send(Time::ZERO, &chunk).unwrap() > 30 << 10);
}

/// A peer that takes bytes, never the last of them, has no more held for it than what waits.
#[test]
fn what_tcp_took_is_not_held() {
    let mut wire = ends(Embedding::Tls13).wire(with_request(Embedding::Tls13), None);
    wire.run().unwrap();
    let chunk = vec![7; 64 << 10];
    for _ in 0..100 {
        wire.client.send(Time::ZERO, &chunk).unwrap();
        wire.client.consume(wire.client.outgoing().len() - 1);
    }
    assert!(wire.client.held() <= 4 * sslmtcp::SEND_LIMIT, "{}", wire.client.held());
    wire.client.shrink();
    assert!(wire.client.held() <= 2, "{}", wire.client.held());
}

#[test]
fn a_pending_answer_takes_its_time_and_is_given_once() {
    let mut script = Script::tls13(7);
    script.answer_takes = Duration::from_millis(5);
    let mut wire = Wire::new(
        ScriptedEngine::client(script),
        ScriptedEngine::server(Script { salt: 0, ..script }),
        with_request(Embedding::Tls13),
    );
    assert!((1200..1205).contains(&wire.syn.len()));
    wire.server.read(Time::ZERO, &wire.syn).unwrap();
    let at = Time::from_millis(5);
    assert_eq!((wire.server.outgoing().len(), wire.server.next_timeout()), (0, Some(at)));
    wire.server.handle_timeout(at).unwrap();
    assert_eq!((wire.server.outgoing().len(), wire.server.next_timeout()), (900, None));
    assert_eq!((wire.server.engine().salt(), wire.server.engine().hellos()), (7, 1));
}

#[test]
fn scripted_engines_follow_every_profile() {
    for (embedding, script, ready) in [
        (Embedding::None, Script::tls12_rsa(1), 6),
        (Embedding::Paper, Script::tls12_rsa(2), 4),
        (Embedding::None, Script::tls13(3), 4),
        (Embedding::Tls13, Script::tls13(4), 2),
        (Embedding::ZeroRtt, Script::resumed(5), 0),
        (Embedding::ZeroRtt, Script { takes_early: false, ..Script::resumed(6) }, 0),
    ] {
        let first = Plan { early_data: REQUEST.to_vec(), ..plan(embedding) };
        let (client, server) = (ScriptedEngine::client(script), ScriptedEngine::server(script));
        let mut wire = Wire::new(client, server, first);
        wire.run().unwrap();
        assert_eq!((wire.ready, &wire.at_client[..]), (Some(ready), RESPONSE), "{embedding}");
    }
}

#[test]
fn a_corrupted_byte_is_noticed_by_the_scripted_engine() {
    let script = Script::tls13(9);
    let mut wire = Wire::new(
        ScriptedEngine::client(script),
        ScriptedEngine::server(script),
        with_request(Embedding::Tls13),
    );
    let last = wire.syn.len() - 1;
    wire.syn[last] ^= 1;
    assert!(matches!(wire.run(), Err(CarrierError::Tls(_))));
}

/// The belief on which the padding stands: both libraries take a ClientHello in as many records as
/// 1200 bytes ask for, and far more.
#[test]
fn hellos_in_many_records_are_taken_by_both_libraries() {
    for (client, server) in library_pairs() {
        let ends = Ends::new(Embedding::Tls13, client, server, KeyType::EcdsaP256, 1);
        for target in [600, 1200, 1420, 5000] {
            let mut session = ends.client.start(None).unwrap();
            let mut hello = Vec::new();
            session.write_tls(&mut hello).unwrap();
            let padded = padding::pad(&hello, target, 1 << 14);
            println!("{client}: {} bytes to {}", hello.len(), padded.len());
            assert!(padded.len() >= target.min(1200));
            let mut other = ends.server.accept().unwrap();
            other.read_tls(&padded).unwrap();
            let mut flight = Vec::new();
            other.write_tls(&mut flight).unwrap();
            session.read_tls(&flight).unwrap();
            assert!(session.may_send(), "{client} to {server}, {target}");
        }
    }
    const { assert!(SYN_ROOM >= padding::TARGET + 4) };
}

#[test]
fn what_a_syn_cannot_hold_follows_or_is_withdrawn() {
    for fate in [SynFate::Taken, SynFate::Refused] {
        let script = Script { client_hello: 1800, ..Script::tls13(3) };
        let (client, server) = (ScriptedEngine::client(script), ScriptedEngine::server(script));
        let mut wire = Wire::new(client, server, with_request(Embedding::Tls13));
        wire.fate = fate;
        assert_eq!((wire.syn.len(), wire.client.outgoing().len()), (SYN_ROOM, 1800 - SYN_ROOM));
        wire.run().unwrap();
        assert_eq!((wire.ready, &wire.at_client[..]), (Some(4), RESPONSE), "{fate:?}");
    }
}
