//! Encrypted Client Hello (RFC 9849): what it makes of the hello's size, what it costs where a server's key has changed, and
//! where a server does not have it. The clients are rustls' and AWS-LC's, the server with ECH is AWS-LC's.

use tls::ech::{Answer, Client, ClientLibrary, Connection, Keys, Offer, Server};
use tls::{Error, Group, Identity, KeyType, Library, PeerError};

use crate::common::{NAME, Setup};

/// The name that the hello shows outside.
const PUBLIC: &str = "public.test";
/// What fits the SYN of a cookie-less Fast Open at an MTU of 1500 bytes.
const SYN_PAYLOAD: usize = 1420;

fn identity() -> Identity {
    Identity::generate(KeyType::EcdsaP256, 1, &[NAME, PUBLIC]).unwrap()
}

fn client(library: ClientLibrary, groups: &[Group], identity: &Identity) -> Client {
    Client { library, groups: groups.to_vec(), roots: identity.roots() }
}

fn sealed(keys: &Keys) -> Offer {
    Offer::Sealed(keys.config_list().to_vec())
}

/// Who wrote, in order.
fn directions(connection: &Connection) -> Vec<bool> {
    connection.flights.iter().map(|flight| flight.from_client).collect()
}

#[test]
fn an_encrypted_hello_is_about_twice_as_long_and_with_a_hybrid_share_fits_no_syn() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    for library in ClientLibrary::ALL {
        for group in Group::ALL {
            let client = client(*library, &[*group], &identity);
            let len = |offer: &Offer| client.hello_len(NAME, offer).unwrap();
            let (plain, ech) = (len(&Offer::Nothing), len(&sealed(&keys)));
            let placeholder = len(&Offer::Placeholder);
            println!(
                "{library}, {group}: {plain} bytes, {ech} with ECH, {placeholder} with a placeholder"
            );
            // The inner hello, padded, its tag, and the key that it is sealed to.
            assert!(ech > plain + 100, "{library}, {group}");
            assert!(placeholder > plain + 100, "{library}, {group}");
            if *group != Group::X25519MlKem768 {
                assert!(ech <= SYN_PAYLOAD, "{library}, {group}");
            }
        }
    }
}

#[test]
fn a_name_that_is_hidden_does_not_show_by_the_hello_s_length() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    for library in ClientLibrary::ALL {
        let client = client(*library, &[Group::X25519], &identity);
        let len = |name: &str, offer: &Offer| client.hello_len(name, offer).unwrap();
        let (short, long) = ("a.test", "a-name-that-is-rather-longer-than-the-other-one.test");
        assert_eq!(len(short, &sealed(&keys)), len(long, &sealed(&keys)), "{library}");
        let plain = len(long, &Offer::Nothing) - len(short, &Offer::Nothing);
        assert_eq!(plain, long.len() - short.len(), "{library}");
    }
}

#[test]
fn the_server_sees_the_inner_name_and_no_round_trip_is_added() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    let server = Server::new(&identity, Some(&keys)).unwrap();
    for library in ClientLibrary::ALL {
        for groups in [&[Group::X25519][..], &[Group::X25519MlKem768, Group::X25519]] {
            let client = client(*library, groups, &identity);
            let plain = client.connect(NAME, &Offer::Nothing, &server).unwrap();
            let with = client.connect(NAME, &sealed(&keys), &server).unwrap();
            assert_eq!((&plain.answer, plain.opened), (&Answer::NotOffered, false), "{library}");
            assert_eq!((&with.answer, with.opened), (&Answer::Accepted, true), "{library}");
            for connection in [&plain, &with] {
                assert_eq!(connection.server_name.as_deref(), Some(NAME), "{library}");
                assert_eq!(connection.round_trips, 1, "{library}");
                assert_eq!(directions(connection), [true, false, true], "{library}");
            }
            // All that is added is in the hello: what the server sends shows nothing. A signature of ECDSA is a byte or
            // two longer or shorter from one to the next.
            assert!(with.bytes(false).abs_diff(plain.bytes(false)) <= 4, "{library}");
            let added = with.hello - plain.hello;
            assert_eq!(with.bytes(true), plain.bytes(true) + added, "{library}");
        }
    }
}

#[test]
fn a_placeholder_is_no_ech_and_costs_bytes_alone() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    for keys in [None, Some(&keys)] {
        let server = Server::new(&identity, keys).unwrap();
        for library in ClientLibrary::ALL {
            let client = client(*library, &[Group::X25519], &identity);
            let with = client.connect(NAME, &Offer::Placeholder, &server).unwrap();
            assert_eq!((&with.answer, with.opened), (&Answer::NotOffered, false), "{library}");
            assert_eq!(with.server_name.as_deref(), Some(NAME), "{library}");
            assert_eq!((with.round_trips, with.flights.len()), (1, 3), "{library}");
        }
    }
}

#[test]
fn an_old_key_costs_a_whole_handshake_more_and_the_server_gives_the_new_one() {
    let identity = identity();
    let (old, new) = (Keys::generate(PUBLIC, 1).unwrap(), Keys::generate(PUBLIC, 2).unwrap());
    // The same number, too: then the server tries its key and fails.
    let twin = Keys::generate(PUBLIC, 2).unwrap();
    let server = Server::new(&identity, Some(&new)).unwrap();
    for library in ClientLibrary::ALL {
        for old in [&old, &twin] {
            let client = client(*library, &[Group::X25519], &identity);
            let first = client.connect(NAME, &sealed(old), &server).unwrap();
            // RFC 9849 §6.1.6: the client authenticates the public name, then ends the connection.
            assert!(!first.opened, "{library}");
            assert_eq!(first.server_name.as_deref(), Some(PUBLIC), "{library}");
            assert_eq!((first.round_trips, directions(&first)), (1, vec![true, false, true]));
            let Answer::Rejected(Some(list)) = first.answer else { panic!("{library}: {first:?}") };
            assert_eq!(list, new.config_list(), "{library}");
            let second = client.connect(NAME, &Offer::Sealed(list), &server).unwrap();
            assert_eq!((&second.answer, second.opened), (&Answer::Accepted, true), "{library}");
            assert_eq!(second.server_name.as_deref(), Some(NAME), "{library}");
            assert_eq!((second.round_trips, second.flights.len()), (1, 3), "{library}");
        }
    }
}

#[test]
fn a_server_that_has_dropped_ech_says_so_by_giving_nothing() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    let server = Server::new(&identity, None).unwrap();
    for library in ClientLibrary::ALL {
        let client = client(*library, &[Group::X25519], &identity);
        let first = client.connect(NAME, &sealed(&keys), &server).unwrap();
        assert_eq!(first.answer, Answer::Rejected(None), "{library}");
        assert_eq!(first.round_trips, 1, "{library}");
    }
}

/// A stranger on the path could else take ECH away by rejecting it.
#[test]
fn a_rejection_counts_only_from_a_server_with_the_public_name() {
    let keys = Keys::generate("elsewhere.test", 1).unwrap();
    let identity = identity();
    let server = Server::new(&identity, None).unwrap();
    for library in ClientLibrary::ALL {
        let client = client(*library, &[Group::X25519], &identity);
        let error = client.connect(NAME, &sealed(&keys), &server).unwrap_err();
        assert!(matches!(error, Error::Certificate(_) | Error::AwsLc { .. }), "{library}: {error}");
    }
}

#[test]
fn damaged_configurations_are_one_clear_error() {
    let (identity, keys) = (identity(), Keys::generate(PUBLIC, 1).unwrap());
    let list = keys.config_list();
    // Its key is of P-256, which is no kind that clients here know.
    let mut other = list.to_vec();
    other[8] = 0x10;
    for library in ClientLibrary::ALL {
        let client = client(*library, &[Group::X25519], &identity);
        let start = |list: &[u8]| client.start(NAME, &Offer::Sealed(list.to_vec())).map(drop);
        assert_eq!(start(list), Ok(()), "{library}");
        for garbled in [&list[..list.len() - 1], &[], b"no list at all"] {
            let error = start(garbled).unwrap_err();
            assert!(matches!(error, Error::Peer(PeerError::Misbehaved(_))), "{library}: {error}");
            assert!(error.to_string().contains("ECHConfigList"), "{library}: {error}");
        }
        let error = start(&other).unwrap_err();
        assert!(matches!(error, Error::Peer(PeerError::Incompatible(_))), "{library}: {error}");
        let error = client.start("192.0.2.1", &Offer::Nothing).map(drop).unwrap_err();
        assert!(matches!(error, Error::Caller(_)), "{library}: {error}");
    }
    assert!(Keys::generate("no name", 1).is_err());
}

/// The libraries without ECH: a client finds no more than at a server that has dropped it.
#[test]
fn servers_of_the_other_libraries_do_not_know_it() {
    let keys = Keys::generate(PUBLIC, 1).unwrap();
    for &library in Library::ALL {
        let setup = Setup::new(Library::Rustls, library, tls::Version::Tls13, KeyType::EcdsaP256);
        let mut config = setup.server.clone();
        config.identity = std::sync::Arc::new(identity());
        let server = tls::Server::new(&config).unwrap();
        for &with in ClientLibrary::ALL {
            let client = client(with, &[Group::X25519], &config.identity);
            for (offer, answer) in [
                (sealed(&keys), Answer::Rejected(None)),
                (Offer::Placeholder, Answer::NotOffered),
                (Offer::Nothing, Answer::NotOffered),
            ] {
                let (mut here, mut there) =
                    (client.start(NAME, &offer).unwrap(), server.accept().unwrap());
                let mut flight = Vec::new();
                here.write_tls(&mut flight).unwrap();
                there.read_tls(&flight).unwrap();
                flight.clear();
                there.write_tls(&mut flight).unwrap();
                here.read_tls(&flight).unwrap();
                // One round trip, and then a second handshake if it was rejected.
                assert_eq!(here.answer(), Some(answer), "{with} to {library}");
            }
        }
    }
}
