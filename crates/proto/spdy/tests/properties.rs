//! What holds for any cut of the bytes and any windows.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use spdy::{Config, Event, FlowControl, Priority, Role, Session, StreamId, Version};

use crate::common::{Pair, Peer, events, get, ok};

/// Events with the pieces of data of a stream joined: where frames of data are cut is no matter.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = vec![];
    for event in events {
        match (joined.last_mut(), event) {
            (
                Some(Event::Data { stream: last, data: before, fin: end }),
                Event::Data { stream, data, fin },
            ) if *last == stream && !*end => {
                *before = Bytes::from([before.as_ref(), data.as_ref()].concat());
                *end = fin;
            }
            (_, event) => joined.push(event),
        }
    }
    joined
}

/// A conversation's bytes: requests with bodies, and what does not belong there.
fn conversation(bodies: &[Vec<u8>], junk: &[u8]) -> Vec<u8> {
    let mut client = Session::new(Role::Client, Version::V3_1, Config::default()).unwrap();
    for (number, body) in bodies.iter().enumerate() {
        let priority = Priority::new(number as u8 % 8).unwrap();
        let stream = client.open(&get(&format!("/{number}")), priority, body.is_empty()).unwrap();
        if !body.is_empty() {
            client.write(stream, &mut Bytes::from(body.clone()), true).unwrap();
        }
        client.ping(units::Time::ZERO).unwrap();
    }
    let mut out = vec![];
    while client.write_to(&mut out, 3000) > 0 {}
    out.extend_from_slice(junk);
    out
}

/// A session that carries a body each way on each stream until all is there.
struct Carried {
    pair: Pair,
    /// What each side has to send yet, and what came.
    up: BTreeMap<StreamId, (Bytes, Vec<u8>)>,
    down: BTreeMap<StreamId, (Bytes, Vec<u8>)>,
    ended: usize,
}

impl Carried {
    fn events(&mut self, events: Vec<Event>, at_server: bool) {
        for event in events {
            match event {
                Event::Opened { stream, .. } => {
                    self.pair.server.reply(stream, &ok(), false).unwrap();
                }
                Event::Data { stream, data, fin } => {
                    let (side, bodies) = match at_server {
                        true => (&mut self.pair.server, &mut self.up),
                        false => (&mut self.pair.client, &mut self.down),
                    };
                    bodies.get_mut(&stream).unwrap().1.extend_from_slice(&data);
                    side.consume(stream, data.len());
                    self.ended += usize::from(fin);
                }
                Event::Settings { .. } | Event::Reply { .. } | Event::Writable { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn write(&mut self) {
        for (side, bodies) in
            [(&mut self.pair.client, &mut self.up), (&mut self.pair.server, &mut self.down)]
        {
            for (stream, (rest, _)) in bodies {
                // Refused before the reply and after the end.
                let _ = side.write(*stream, rest, true);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_events(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..4000), 1..5),
        junk in proptest::collection::vec(any::<u8>(), 0..20),
        cuts in proptest::collection::vec(1usize..3000, 1..40),
    ) {
        let bytes = conversation(&bodies, &junk);
        let whole = Peer::server().bytes(&bytes);
        let (mut server, mut rest, mut cut) = (Peer::server(), &bytes[..], vec![]);
        for length in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at(length.min(rest.len()));
            cut.extend(server.bytes(piece));
            rest = later;
        }
        let (whole, cut) = (joined(whole), joined(cut));
        prop_assert_eq!(whole, cut);
    }

    #[test]
    fn any_bodies_arrive_whole_under_any_windows(
        bodies in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..8000), proptest::collection::vec(any::<u8>(), 0..8000), 0u8..8),
            1..6,
        ),
        windows in (1u32..20_000, 1u32..20_000),
        divisors in (1u32..20, 1u32..20),
        old: bool, max_frame in 1usize..10_000, send_queue in 1usize..10_000, limit in 600usize..40_000,
    ) {
        let version = if old { Version::V3 } else { Version::V3_1 };
        let config = |stream_window, update_divisor| Config {
            flow: FlowControl { stream_window, session_window: 0, update_divisor },
            max_frame,
            send_queue,
            ..Config::default()
        };
        let (client, server) = (config(windows.0, divisors.0), config(windows.1, divisors.1));
        let mut carried = Carried {
            pair: Pair::new(version, &client, &server), up: BTreeMap::new(), down: BTreeMap::new(), ended: 0,
        };
        for (up, down, priority) in &bodies {
            let priority = Priority::new(*priority).unwrap();
            let stream = carried.pair.client.open(&get("/"), priority, false).unwrap();
            carried.up.insert(stream, (Bytes::from(up.clone()), vec![]));
            carried.down.insert(stream, (Bytes::from(down.clone()), vec![]));
        }
        for round in 0.. {
            prop_assert!(round < 50_000, "it does not end");
            carried.write();
            let events = carried.pair.reach_server(limit);
            carried.events(events, true);
            let events = carried.pair.reach_client(limit);
            carried.events(events, false);
            if carried.ended == 2 * bodies.len() {
                break;
            }
        }
        let streams: Vec<_> = carried.up.keys().copied().collect();
        for (stream, (up, down, _)) in streams.iter().zip(&bodies) {
            prop_assert!(carried.up[stream].1 == *up && carried.down[stream].1 == *down);
        }
        prop_assert_eq!(carried.pair.client.open_streams() + carried.pair.server.open_streams(), 0);
        prop_assert_eq!(events(&mut carried.pair.client), vec![]);
    }
}
