//! What the harness relies on, for each of the rustls drivers and between them.

#[allow(dead_code, reason = "each test file uses a part")]
mod common;

use common::{Context, Key, NAME, Pair, Pins, by_name, drivers, identity, new_identity};
use rustls_shim::abi;

const TLS12: u32 = 0x0303;
const TLS13: u32 = 0x0304;
const X25519: u32 = 29;
const P256: u32 = 23;
const HYBRID: u32 = 0x11ec;

fn pins(version: u32, key: Key, group: u32, cipher: usize) -> Pins {
    let cipher = match (version, key) {
        (TLS13, _) => [0x1301, 0x1302, 0x1303][cipher],
        (_, Key::EcdsaP256) => [0xc02b, 0xc02c, 0xcca9][cipher],
        _ => [0xc02f, 0xc030, 0xcca8][cipher],
    };
    Pins { version, cipher, group, signature: identity(key).signature }
}

fn default(version: u32) -> Pins {
    pins(version, Key::EcdsaP256, X25519, 0)
}

/// A full handshake, then two resumed ones, each from the newest session.
fn full_then_resumed(client: &Context, server: &Context, pins: Pins) {
    let what = format!("{} to {} {pins:x?}", client.driver.name, server.driver.name);
    let mut session = None;
    for round in 0..3 {
        let mut pair = Pair::new(client, server, session.as_ref()).unwrap();
        pair.handshake().unwrap_or_else(|error| panic!("{what}: round {round}: {error}"));
        pair.exchange().unwrap_or_else(|error| panic!("{what}: round {round}: {error}"));
        let resumed = round > 0;
        assert_eq!(pair.resumed_on_the_wire(), resumed, "{what}: round {round}: the wire");
        for conn in [&mut pair.client, &mut pair.server] {
            let facts = conn.facts();
            assert_eq!((facts.version, facts.cipher), (pins.version, pins.cipher), "{what}");
            assert_eq!(
                facts.resumed,
                u32::from(resumed),
                "{what}: round {round}: {}",
                conn.driver.name
            );
            let group = if resumed && pins.version == TLS12 { 0 } else { pins.group };
            // A library that is not ours may tell the group of the session.
            assert!(
                facts.group == group || resumed && !conn.driver.name.starts_with("rustls"),
                "{what}: {facts:x?}"
            );
        }
        let fresh = pair.client.take_session();
        // A TLS 1.2 ticket may be used again where no new one comes (RFC 5077 §3.3).
        assert!(
            fresh.is_some() || resumed && pins.version == TLS12,
            "{what}: round {round}: no session"
        );
        session = fresh.or(session);
        assert!(pair.client.take_session().is_none(), "{what}: the same session twice");
        assert!(pair.server.take_session().is_none(), "{what}: a server gave a session");
    }
}

#[test]
fn every_suite_full_and_resumed_between_all_drivers() {
    for server in drivers() {
        for client in drivers() {
            for key in [Key::EcdsaP256, Key::Rsa2048, Key::Rsa4096] {
                for version in [TLS12, TLS13] {
                    for group in [X25519, P256, HYBRID] {
                        let has = |name: &str| name != "rustls-ring";
                        if group == HYBRID
                            && (version == TLS12 || !has(&client.name) || !has(&server.name))
                        {
                            continue;
                        }
                        for cipher in 0..3 {
                            let pins = pins(version, key, group, cipher);
                            let server = Context::server(server, pins, identity(key));
                            let client = Context::client(client, pins, identity(key));
                            full_then_resumed(&client, &server, pins);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_library_lacks_is_unsupported() {
    let made = |name: &str, pins: Pins, server: bool| {
        Context::new(by_name(name), server, pins, identity(Key::EcdsaP256), NAME, true).map(|_| ())
    };
    for server in [true, false] {
        let (status, why) =
            made("rustls-ring", Pins { group: HYBRID, ..default(TLS13) }, server).unwrap_err();
        assert_eq!(status, abi::UNSUPPORTED);
        assert!(why.contains("group"), "{why}");
        made("rustls-aws-lc-rs", Pins { group: HYBRID, ..default(TLS13) }, server).unwrap();
        for name in ["rustls-aws-lc-rs", "rustls-ring"] {
            for wrong in [
                Pins { version: 0x0302, ..default(TLS12) },
                Pins { cipher: 0x1301, ..default(TLS12) },
                Pins { cipher: 0xc02b, ..default(TLS13) },
                Pins { group: HYBRID, ..default(TLS12) },
                Pins { group: 0xffff, ..default(TLS13) },
                Pins { signature: 0xffff, ..default(TLS13) },
                Pins { signature: 0x0001_0403, ..default(TLS13) },
            ] {
                let (status, why) = made(name, wrong, server).unwrap_err();
                assert_eq!(status, abi::UNSUPPORTED, "{name} {wrong:x?}: {why}");
                assert!(!why.is_empty());
            }
        }
    }
}

#[test]
fn a_wrong_root_and_a_wrong_name_are_refused() {
    for driver in drivers() {
        for version in [TLS12, TLS13] {
            let pins = default(version);
            let server = Context::server(driver, pins, identity(Key::EcdsaP256));
            let stranger = Context::client(driver, pins, &new_identity(Key::EcdsaP256));
            let error = Pair::new(&stranger, &server, None).unwrap().handshake().unwrap_err();
            assert!(error.starts_with(&driver.name), "{error}");
            let misled =
                Context::new(driver, false, pins, identity(Key::EcdsaP256), "other.test", true)
                    .unwrap();
            let error = Pair::new(&misled, &server, None).unwrap().handshake().unwrap_err();
            if driver.name.starts_with("rustls") {
                assert!(error.contains("not valid for name"), "{error}");
            }
            // The same server is good for one who asks rightly.
            let client = Context::client(driver, pins, identity(Key::EcdsaP256));
            Pair::new(&client, &server, None).unwrap().handshake().unwrap();
        }
    }
}

#[test]
fn a_server_issues_exactly_one_ticket_and_only_where_asked() {
    for driver in drivers() {
        for tickets in [true, false] {
            let identity = identity(Key::EcdsaP256);
            let server = Context::new(driver, true, default(TLS13), identity, "", tickets).unwrap();
            let client = Context::client(driver, default(TLS13), identity);
            let mut pair = Pair::new(&client, &server, None).unwrap();
            pair.handshake().unwrap();
            // All that the server says by itself after its flight, in protected records.
            assert_eq!(pair.client.read(&mut [0; 16]).unwrap().0, abi::AGAIN);
            pair.exchange().unwrap();
            assert_eq!(pair.client.take_session().is_some(), tickets, "{}", driver.name);
            if driver.name.starts_with("rustls") {
                let seen = pair.client.from.borrow();
                let mut records = Vec::new();
                let mut rest = &seen.seen[..];
                while let [kind, _, _, high, low, after @ ..] = rest {
                    let len = usize::from(u16::from_be_bytes([*high, *low]));
                    records.push(*kind);
                    rest = &after[len..];
                }
                // ServerHello, ChangeCipherSpec, its flight, [a ticket,] the answer, close_notify.
                let protected = records.iter().filter(|kind| **kind == 23).count();
                assert_eq!(protected, 3 + usize::from(tickets), "{}: {records:?}", driver.name);
            }
        }
        // A client without tickets keeps none.
        for version in [TLS12, TLS13] {
            let server = Context::server(driver, default(version), identity(Key::EcdsaP256));
            let client = Context::new(
                driver,
                false,
                default(version),
                identity(Key::EcdsaP256),
                NAME,
                false,
            )
            .unwrap();
            let mut pair = Pair::new(&client, &server, None).unwrap();
            pair.handshake().unwrap();
            pair.exchange().unwrap();
            assert!(pair.client.take_session().is_none(), "{}", driver.name);
        }
    }
}

#[test]
fn a_session_goes_to_another_context_of_the_same_configuration_only() {
    for driver in drivers().iter().filter(|driver| driver.name.starts_with("rustls")) {
        for version in [TLS12, TLS13] {
            let pins = default(version);
            let identity = identity(Key::EcdsaP256);
            let server = Context::server(driver, pins, identity);
            let first = Context::client(driver, pins, identity);
            let session = || {
                let mut pair = Pair::new(&first, &server, None).unwrap();
                pair.handshake().unwrap();
                pair.exchange().unwrap();
                pair.client.take_session().unwrap()
            };

            let second = Context::client(driver, pins, identity);
            let given = session();
            let mut pair = Pair::new(&second, &server, Some(&given)).unwrap();
            pair.handshake().unwrap();
            assert!(pair.resumed_on_the_wire());
            // RFC 8446 §C.4: a ticket once; RFC 5077 lets it be used again.
            match Pair::new(&second, &server, Some(&given)) {
                Ok(mut again) => {
                    assert_eq!(version, TLS12);
                    again.handshake().unwrap();
                    assert!(again.resumed_on_the_wire());
                }
                Err(error) => {
                    assert_eq!(version, TLS13);
                    assert!(error.contains("newest"), "{error}");
                }
            }

            let other = Context::client(driver, Pins { group: P256, ..pins }, identity);
            let error = Pair::new(&other, &server, Some(&session())).err().unwrap();
            assert!(error.contains("another configuration"), "{error}");

            // Another server context has another key: a full handshake, and no failure.
            let elsewhere = Context::server(driver, pins, identity);
            let mut pair = Pair::new(&first, &elsewhere, Some(&session())).unwrap();
            pair.handshake().unwrap();
            assert!(!pair.resumed_on_the_wire());
            assert_eq!((pair.client.facts().resumed, pair.server.facts().resumed), (0, 0));
        }
    }
}

#[test]
fn an_end_in_order_is_told_from_a_bare_one() {
    for driver in drivers() {
        for version in [TLS12, TLS13] {
            let server = Context::server(driver, default(version), identity(Key::EcdsaP256));
            let client = Context::client(driver, default(version), identity(Key::EcdsaP256));
            let mut bytes = [0; 8];

            let mut pair = Pair::new(&client, &server, None).unwrap();
            pair.handshake().unwrap();
            pair.server.from.borrow_mut().ended = true;
            assert!(pair.server.read(&mut bytes).is_err(), "{}: a bare end", driver.name);

            let mut pair = Pair::new(&client, &server, None).unwrap();
            pair.handshake().unwrap();
            assert_eq!(pair.client.shutdown().unwrap(), abi::OK);
            let sent = pair.server.from.borrow().seen.len();
            if driver.name.starts_with("rustls") {
                assert_eq!(pair.client.shutdown().unwrap(), abi::OK);
            }
            assert_eq!(
                pair.server.from.borrow().seen.len(),
                sent,
                "{}: close_notify twice",
                driver.name
            );
            pair.server.from.borrow_mut().ended = true;
            assert_eq!(pair.server.read(&mut bytes).unwrap().0, abi::CLOSED);

            let mut pair = Pair::new(&client, &server, None).unwrap();
            assert_eq!(pair.client.handshake().unwrap(), abi::AGAIN);
            pair.client.from.borrow_mut().ended = true;
            assert!(pair.client.handshake().is_err(), "{}: an end amid the handshake", driver.name);
        }
    }
}

#[test]
fn a_narrow_transport_takes_a_megabyte_both_ways() {
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    for driver in drivers() {
        for version in [TLS12, TLS13] {
            let server = Context::server(driver, default(version), identity(Key::EcdsaP256));
            let client = Context::client(driver, default(version), identity(Key::EcdsaP256));
            let mut pair = Pair::new(&client, &server, None).unwrap();
            for pipe in [&pair.client.from, &pair.server.from] {
                (pipe.borrow_mut().room, pipe.borrow_mut().piece) = (777, 1);
            }
            pair.handshake().unwrap();
            for pipe in [&pair.client.from, &pair.server.from] {
                (pipe.borrow_mut().room, pipe.borrow_mut().piece) = (5000, 3000);
            }
            for up in [true, false] {
                let (from, to) = if up {
                    (&mut pair.client, &mut pair.server)
                } else {
                    (&mut pair.server, &mut pair.client)
                };
                let (mut sent, mut got) = (0, Vec::new());
                let mut bytes = vec![0; 20_000];
                while got.len() < data.len() {
                    if sent < data.len() {
                        sent += from.write(&data[sent..data.len().min(sent + 40_000)]).unwrap().1;
                    }
                    let (status, len) = to.read(&mut bytes).unwrap();
                    assert!(status == abi::OK && len > 0 || status == abi::AGAIN && len == 0);
                    got.extend_from_slice(&bytes[..len]);
                }
                assert!(got == data && sent == data.len(), "{}", driver.name);
            }
        }
    }
}

#[test]
fn threads_share_a_context() {
    for driver in drivers() {
        for version in [TLS12, TLS13] {
            let server = Context::server(driver, default(version), identity(Key::EcdsaP256));
            let client = Context::client(driver, default(version), identity(Key::EcdsaP256));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            full_then_resumed(&client, &server, default(version));
                        }
                    });
                }
            });
        }
    }
}
