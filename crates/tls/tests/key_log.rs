//! The key log of either library holds the lines of draft-ietf-tls-keylogfile, the same on both sides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{Setup, library_pairs};
use tls::{KeyLog, KeyType, Library, Version};

type Lines = Arc<Mutex<Vec<String>>>;

fn sink() -> (KeyLog, Lines) {
    let lines = Lines::default();
    let kept = Arc::clone(&lines);
    (KeyLog::new(move |line| kept.lock().unwrap().push(line.to_owned())), lines)
}

/// Label to (client random, secret) of the lines.
fn secrets(lines: &Lines) -> BTreeMap<String, (String, String)> {
    let lines = core::mem::take(&mut *lines.lock().unwrap());
    let parse = |line: &String| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [label, random, secret] = fields[..] else { panic!("{} fields", fields.len()) };
        assert_eq!(random.len(), 64);
        assert!(secret.len() >= 64 && secret.bytes().all(|digit| digit.is_ascii_hexdigit()));
        (label.to_owned(), (random.to_lowercase(), secret.to_lowercase()))
    };
    lines.iter().map(parse).collect()
}

#[test]
fn both_sides_log_the_same_secrets() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let what = format!("{client} to {server}, {version}");
            let mut setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            if version == Version::Tls13 {
                setup = setup.early_data(1000);
            }
            let (log, at_client) = sink();
            setup.client.key_log = Some(log);
            let (log, at_server) = sink();
            setup.server.key_log = Some(log);
            let endpoints = setup.endpoints();
            let full = endpoints.exchange(None);
            let (ours, theirs) = (secrets(&at_client), secrets(&at_server));
            let wanted: &[&str] = match version {
                Version::Tls12 => &["CLIENT_RANDOM"],
                Version::Tls13 => &[
                    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                    "CLIENT_TRAFFIC_SECRET_0",
                    "SERVER_TRAFFIC_SECRET_0",
                ],
            };
            for &label in wanted {
                assert!(ours.contains_key(label), "{what}: {label}");
                assert_eq!(ours.get(label), theirs.get(label), "{what}: {label}");
            }
            endpoints.exchange(full.ticket.as_ref());
            let early = "CLIENT_EARLY_TRAFFIC_SECRET";
            let (ours, theirs) = (secrets(&at_client), secrets(&at_server));
            assert_eq!(ours.contains_key(early), version == Version::Tls13, "{what}");
            assert_eq!(ours.get(early), theirs.get(early), "{what}");
        }
    }
}

#[test]
fn a_key_log_shows_nothing_of_itself() {
    let (log, _) = sink();
    assert_eq!(format!("{log:?}"), "KeyLog");
    let mut setup =
        Setup::new(Library::Rustls, Library::OpenSsl, Version::Tls13, KeyType::EcdsaP256);
    setup.client.key_log = Some(log);
    assert!(format!("{:?}", setup.client).contains("KeyLog"));
}
