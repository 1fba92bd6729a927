//! Bytes that no TLS peer sends: neither side panics, hangs or grows.

use crate::common::{Setup, library_pairs};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tls::{Error, KeyType, Library, Session, Version};

/// A session that has read and written what a real peer made it, up to `flights` flights.
fn session_after(
    library: Library,
    version: Version,
    is_client: bool,
    flights: usize,
) -> Box<dyn Session> {
    let setup = Setup::new(library, library, version, KeyType::EcdsaP256).early(version);
    let endpoints = setup.endpoints();
    let mut client = endpoints.client.start(None).unwrap();
    let mut server = endpoints.server.accept().unwrap();
    for flight_number in 0..flights {
        let mut flight = Vec::new();
        if flight_number % 2 == 0 {
            client.write_tls(&mut flight).unwrap();
            server.read_tls(&flight).unwrap();
        } else {
            server.write_tls(&mut flight).unwrap();
            client.read_tls(&flight).unwrap();
        }
    }
    if is_client { client } else { server }
}

trait Early {
    fn early(self, version: Version) -> Self;
}

impl Early for Setup {
    fn early(self, version: Version) -> Self {
        if version == Version::Tls13 { self.early_data(1000) } else { self }
    }
}

/// Every call on a session that was fed `bytes`; what it says stays consistent.
fn feed(session: &mut dyn Session, bytes: &[u8], chunk: usize) {
    let mut failed = None;
    let mut out = Vec::new();
    for part in bytes.chunks(chunk.max(1)) {
        match session.read_tls(part) {
            Ok(()) if failed.is_some() => panic!("an error is final"),
            Ok(()) => {}
            Err(error) => {
                assert!(!matches!(error, Error::Caller(_)), "{error}");
                failed = Some(error);
            }
        }
        let _ = session.write_tls(&mut out);
        let _ = session.receive(&mut out);
        let _ = session.facts();
        let _ = session.take_ticket();
        let _ = session.early_data_room();
    }
    session.close();
    let _ = session.write_tls(&mut out);
    assert!(session.send(b"x").is_err());
    assert!(out.len() < bytes.len() + (1 << 16), "{} bytes", out.len());
}

fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut record = vec![kind, 3, 3];
    record.extend_from_slice(&u16::try_from(payload.len()).unwrap().to_be_bytes());
    record.extend_from_slice(payload);
    record
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let raw = proptest::collection::vec(any::<u8>(), 0..600);
    let payload = proptest::collection::vec(any::<u8>(), 0..300);
    let framed = proptest::collection::vec((20_u8..25, payload), 1..4)
        .prop_map(|records| records.iter().flat_map(|(kind, body)| record(*kind, body)).collect());
    prop_oneof![raw, framed]
}

fn cases() -> impl Strategy<Value = (Library, Version, bool, usize)> {
    (
        proptest::sample::select(Library::ALL),
        proptest::sample::select(Version::ALL),
        any::<bool>(),
        0..5_usize,
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn garbage_never_panics(
        (library, version, is_client, flights) in cases(),
        bytes in bytes(),
        chunk in 1_usize..64,
    ) {
        let mut session = session_after(library, version, is_client, flights);
        feed(session.as_mut(), &bytes, chunk);
    }

    #[test]
    fn a_changed_byte_never_panics_and_is_never_believed(
        (library, version, is_client, _) in cases(),
        at in any::<proptest::sample::Index>(),
        change in 1_u8..=255,
        chunk in 1_usize..2000,
    ) {
        let setup = Setup::new(library, library, version, KeyType::EcdsaP256).early(version);
        let endpoints = setup.endpoints();
        let mut client = endpoints.client.start(None).unwrap();
        let mut server = endpoints.server.accept().unwrap();
        let mut flight = Vec::new();
        client.write_tls(&mut flight).unwrap();
        if is_client {
            server.read_tls(&flight).unwrap();
            flight.clear();
            server.write_tls(&mut flight).unwrap();
        }
        let at = at.index(flight.len());
        flight[at] ^= change;
        let victim = if is_client { client.as_mut() } else { server.as_mut() };
        let mut failed = false;
        for part in flight.chunks(chunk) {
            failed |= victim.read_tls(part).is_err();
        }
        // Only the Finished messages prove the transcript, and the other side's has not come.
        prop_assert!(!victim.may_send() || failed || record_headers(&flight, at));
        feed(victim, &flight, chunk);
    }
}

/// Whether the byte is in the version field of a record header, which receivers ignore (RFC 8446 §5.1).
fn record_headers(flight: &[u8], at: usize) -> bool {
    let mut start = 0;
    while let Some(&[high, low]) = flight.get(start + 3..start + 5) {
        if (start + 1..start + 3).contains(&at) {
            return true;
        }
        start += 5 + usize::from(u16::from_be_bytes([high, low]));
    }
    false
}

#[test]
fn a_stream_of_empty_and_huge_records_ends() {
    for (library, _) in library_pairs() {
        for is_client in [true, false] {
            for kind in 20..24 {
                let mut session = session_after(library, Version::Tls13, is_client, 1);
                feed(session.as_mut(), &record(kind, &[]).repeat(4000), 4096);
                let mut session = session_after(library, Version::Tls13, is_client, 1);
                feed(session.as_mut(), &record(kind, &[1; 16384]).repeat(20), 16384);
            }
        }
    }
}

#[test]
fn a_hello_in_pieces_of_one_byte_is_read() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            let endpoints = setup.endpoints();
            let mut client = endpoints.client.start(None).unwrap();
            let mut server = endpoints.server.accept().unwrap();
            let mut flight = Vec::new();
            for _ in 0..3 {
                flight.clear();
                client.write_tls(&mut flight).unwrap();
                for byte in &flight {
                    server.read_tls(&[*byte]).unwrap();
                }
                flight.clear();
                server.write_tls(&mut flight).unwrap();
                for byte in &flight {
                    client.read_tls(&[*byte]).unwrap();
                }
            }
            assert!(client.may_send() && server.may_send());
            assert_eq!(client.facts().client_hello_len, server.facts().client_hello_len);
        }
    }
}
