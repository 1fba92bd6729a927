//! Exact round trips of every profile, with real TLS and with the scripted engine.

use std::time::Duration;

use linkmodel::{Middlebox, Path};
use sslmtcp::testing::{Script, ScriptedEngine};
use sslmtcp::{Embedding, Plan};
use tcp::SynData;
use tls::{EarlyData, KeyType, Library};
use units::Time;

use super::host::{Host, Opening, World};
use crate::common::{Ends, RESPONSE, Tls, plan};

pub const REQUEST: &[u8] = b"request\n";
const RTT: u64 = 100;

fn rtt() -> Path {
    Path::symmetric(Duration::from_millis(RTT).into())
}

fn ms(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}

/// An opening whose request is early data where the profile has it.
pub fn opening<E>(at: Time, engine: E, embedding: Embedding) -> Opening<E> {
    let early = embedding == Embedding::ZeroRtt;
    let early_data = if early { REQUEST.to_vec() } else { Vec::new() };
    let request = if early { Vec::new() } else { REQUEST.to_vec() };
    Opening { at, engine, plan: Plan { early_data, ..plan(embedding) }, request }
}

fn scripted(
    path: &Path,
    script: Script,
    embedding: Embedding,
    times: usize,
) -> World<ScriptedEngine> {
    let openings = (0..times).map(|count| {
        let script = Script { salt: 1 + count as u64, ..script };
        let at = Time::from_millis(5000 * count as u64);
        opening(at, ScriptedEngine::client(script), embedding)
    });
    let client = Host::client(openings.collect(), RESPONSE);
    let server = Host::server(Box::new(move || ScriptedEngine::server(script)), RESPONSE);
    World::new(1, path, client, server)
}

/// When the first connection was ready and had its response's first byte, in ms.
fn times<E: sslmtcp::Engine>(world: &World<E>) -> (Option<Time>, Option<Time>) {
    let talk = &world.clients()[0];
    assert_eq!((&talk.error, &talk.got[..]), (&None, RESPONSE));
    assert_eq!((&world.servers()[0].error, &world.servers()[0].got[..]), (&None, REQUEST));
    (talk.ready, talk.first_byte)
}

const SCRIPTED: [(Embedding, Script, u64, u64); 6] = [
    (Embedding::None, Script::tls12_rsa(0), 3, 4),
    (Embedding::Paper, Script::tls12_rsa(0), 2, 3),
    (Embedding::None, Script::tls13(0), 2, 3),
    (Embedding::Tls13, Script::tls13(0), 1, 2),
    (Embedding::ZeroRtt, Script::resumed(0), 0, 1),
    (Embedding::ZeroRtt, Script { takes_early: false, ..Script::resumed(0) }, 0, 2),
];

#[test]
fn round_trips_are_whole() {
    for (embedding, script, ready, answered) in SCRIPTED {
        let mut world = scripted(&rtt(), script, embedding, 1);
        world.run(600);
        assert_eq!(times(&world), (ms(ready * RTT), ms(answered * RTT)), "{embedding}");
    }
}

#[test]
fn round_trips_with_real_tls_are_the_same() {
    for (client, server) in
        [(Library::Rustls, Library::OpenSsl), (Library::OpenSsl, Library::Rustls)]
    {
        for (embedding, ready, answered) in [
            (Embedding::None, 2, 3),
            (Embedding::Paper, 2, 3),
            (Embedding::Tls13, 1, 2),
            (Embedding::ZeroRtt, 0, 1),
        ] {
            for chain in 1..=3 {
                let key_type = match embedding {
                    Embedding::Paper => KeyType::Rsa2048,
                    _ => KeyType::EcdsaP256,
                };
                let ends = Ends::new(embedding, client, server, key_type, chain);
                let ticket = (embedding == Embedding::ZeroRtt).then(|| ends.ticket());
                let engine: Tls = ends.client.start(ticket.as_ref()).unwrap();
                let first = opening(Time::ZERO, engine, embedding);
                let tls = ends.server.clone();
                let accept = Box::new(move || tls.accept().unwrap());
                let (client, server) =
                    (Host::client(vec![first], RESPONSE), Host::server(accept, RESPONSE));
                let mut world = World::new(1, &rtt(), client, server);
                world.run(600);
                let name = format!("{embedding}, chain of {chain}");
                assert_eq!(times(&world), (ms(ready * RTT), ms(answered * RTT)), "{name}");
                let facts = world.clients()[0].carrier.facts();
                let early = embedding == Embedding::ZeroRtt;
                assert_eq!(facts.early_data == EarlyData::Accepted, early, "{name}");
            }
        }
    }
}

#[test]
fn a_flight_beyond_three_times_the_syn_costs_a_round_trip() {
    // Of the budget, 3 x (1200 + 60) bytes, TCP keeps 180 for SYN-ACKs sent again, and three
    // segments have 164 bytes of headers.
    for (flight, ready) in [(3436, 1), (3437, 2), (9000, 2)] {
        let script = Script { server_flight: flight, ..Script::tls13(0) };
        let mut world = scripted(&rtt(), script, Embedding::Tls13, 1);
        world.run(600);
        assert_eq!(times(&world).0, ms(ready * RTT), "{flight}");
    }
}

#[test]
fn an_answer_that_takes_its_time_delays_by_just_that() {
    let script = Script { answer_takes: Duration::from_millis(30), ..Script::tls13(0) };
    let mut world = scripted(&rtt(), script, Embedding::Tls13, 1);
    world.run(600);
    assert_eq!(times(&world), (ms(130), ms(230)));
    // Longer than TCP's patience: the SYN-ACK goes bare, the answer behind it.
    let script = Script { answer_takes: Duration::from_millis(500), ..Script::tls12_rsa(0) };
    let mut world = scripted(&rtt(), script, Embedding::Paper, 1);
    world.run(600);
    assert_eq!(times(&world).0, ms(700));
    assert_eq!(world.servers()[0].carrier.engine().hellos(), 1);
}

#[test]
fn a_lost_syn_costs_its_timeout_and_falls_back() {
    for (embedding, script, sequential) in
        [(Embedding::Paper, Script::tls12_rsa(0), 3), (Embedding::Tls13, Script::tls13(0), 2)]
    {
        let mut world = scripted(&rtt(), script, embedding, 1);
        world.sim.node_mut(world.client).lose = vec![0];
        world.run(600);
        // RFC 6298 §2.1: 1 s; then a bare SYN (RFC 7413 §4.1.3.1), TCP and TLS in sequence.
        assert_eq!(times(&world).0, ms(1000 + sequential * RTT), "{embedding}");
        assert_eq!(world.clients()[0].syn_data, SynData::Refused);
    }
}

#[test]
fn a_lost_syn_ack_is_sent_again_and_nothing_is_begun_twice() {
    for (embedding, script, ready, _) in SCRIPTED {
        let mut world = scripted(&rtt(), script, embedding, 1);
        let lost = (0..1 + script.server_flight / 1000).collect();
        world.sim.node_mut(world.server).lose = lost;
        world.run(600);
        let (at, _) = times(&world);
        if ready > 0 {
            assert!(at > ms(1000), "{embedding}: {at:?}");
        }
        assert_eq!(world.servers().len(), 1, "{embedding}");
        assert_eq!(world.servers()[0].carrier.engine().hellos(), 1, "{embedding}");
    }
}

#[test]
fn middleboxes_cost_what_is_known() {
    for (middlebox, first, second, fates) in [
        (Middlebox::DropSynData, 1200, 200, [SynData::Refused, SynData::BlackHole]),
        (Middlebox::StripSynData, 200, 200, [SynData::Refused, SynData::Refused]),
    ] {
        let mut path = rtt();
        path.forward.middlebox = middlebox;
        path.backward.middlebox = middlebox;
        let mut world = scripted(&path, Script::tls13(0), Embedding::Tls13, 2);
        world.run(600);
        let clients = world.clients();
        assert_eq!(clients[0].ready, ms(first), "{middlebox}");
        assert_eq!(clients[1].ready, ms(5000 + second), "{middlebox}");
        assert_eq!([clients[0].syn_data, clients[1].syn_data], fates);
        assert!(clients.iter().all(|talk| talk.got == RESPONSE));
    }
}
