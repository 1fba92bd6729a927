//! Seeded sweeps over bad paths: every connection ends, and both sides agree on what was said.

use std::time::Duration;

use linkmodel::Path;
use sslmtcp::Embedding;
use sslmtcp::testing::{Script, ScriptedEngine};
use units::{Probability, Time};

use super::host::{Host, Talk, World};
use super::profiles::{REQUEST, opening};
use crate::common::RESPONSE;

fn bad(loss: f64) -> Path {
    let mut path = Path::symmetric(Duration::from_millis(20).into());
    for link in [&mut path.forward, &mut path.backward] {
        let chance = |p: f64| Probability::new(p).expect("a probability");
        link.loss = chance(loss).into();
        link.reorder = chance(0.1).into();
        link.duplicate = chance(0.1);
    }
    path
}

/// As connect_ssl() and the listener have it: a peer that is gone without a word is not waited for
/// for ever.
const PATIENCE: Duration = Duration::from_secs(100);

#[test]
fn every_connection_ends_and_both_sides_agree() {
    let mut talks = 0;
    for (seed, loss) in [0.0, 0.02, 0.1, 0.3].into_iter().enumerate() {
        for (place, (embedding, script)) in [
            (Embedding::None, Script::tls13(0)),
            (Embedding::Paper, Script::tls12_rsa(0)),
            (Embedding::Tls13, Script { server_flight: 4000, ..Script::tls13(0) }),
            (Embedding::ZeroRtt, Script::resumed(0)),
        ]
        .into_iter()
        .enumerate()
        {
            let openings = (0..100).map(|count| {
                let script = Script { salt: count + 1, ..script };
                opening(Time::from_millis(50 * count), ScriptedEngine::client(script), embedding)
            });
            let client = Host::client(openings.collect(), RESPONSE);
            let server = Host::server(Box::new(move || ScriptedEngine::server(script)), RESPONSE);
            let (client, server) = (client.patient(PATIENCE), server.patient(PATIENCE));
            let seed = (10 * seed + place) as u64;
            let mut world = World::new(seed, &bad(loss), client, server);
            world.run(100_000);
            talks += judge(&world, &format!("{embedding}, loss {loss}, seed {seed}"), loss);
        }
    }
    assert!(talks > 1000, "{talks} connections came about");
}

/// How many came about.
fn judge(world: &World<ScriptedEngine>, name: &str, loss: f64) -> usize {
    let mut whole = 0;
    for talk in world.clients() {
        let salt = talk.carrier.engine().salt();
        let server = world.servers().iter().find(|server| server.carrier.engine().salt() == salt);
        let endpoint = &world.sim.node(world.client).endpoint;
        let info = (endpoint.info(talk.id), endpoint.readable(talk.id));
        assert!(
            talk.closed.is_some(),
            "{name}: client {salt} hangs: {talk:?}, {info:?}; {}",
            reported(world, server)
        );
        if talk.got == RESPONSE && talk.error.is_none() {
            let server = server.unwrap_or_else(|| panic!("{name}: an answer by nobody"));
            assert_eq!(server.got, REQUEST, "{name}");
            whole += 1;
        } else {
            assert!(loss > 0.0, "{name}: {:?} {:?}", talk.closed, talk.error);
            assert!(talk.got.is_empty() || RESPONSE.starts_with(&talk.got), "{name}");
        }
    }
    for talk in world.servers() {
        assert!(talk.closed.is_some(), "{name}: a server hangs: {talk:?}");
        assert!(talk.carrier.engine().hellos() <= 1, "{name}");
        assert!(talk.got.is_empty() || talk.got == REQUEST, "{name}");
    }
    whole
}

/// What is known of the server's side.
fn reported(world: &World<ScriptedEngine>, server: Option<&Talk<ScriptedEngine>>) -> String {
    let endpoint = &world.sim.node(world.server).endpoint;
    let info = server.map(|talk| (endpoint.info(talk.id), talk.closed));
    format!("server: {server:?}, {info:?}")
}
