//! Sessions resumed at another name of the same server: what the libraries permit on either side.

use std::sync::Arc;

use crate::common::{Exchange, library_pairs};
use tls::{
    CallerError, Client, ClientConfig, Error, Identity, KeyType, Library, Server, ServerConfig,
    Ticket, Trust, Version,
};

const NAMES: [&str; 2] = ["first.test", "second.test"];

/// A client for the first name, and a server with a certificate for both.
fn ends(client: Library, server: Library, version: Version) -> (Client, Server) {
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &NAMES).unwrap());
    let mut config = ClientConfig::new(client, NAMES[0], Trust::Roots(identity.roots()));
    config.versions = vec![version];
    let client = Client::new(&config).unwrap();
    let mut config = ServerConfig::new(server, identity);
    config.versions = vec![version];
    (client, Server::new(&config).unwrap())
}

fn exchange(client: &Client, server: &Server, ticket: Option<&Ticket>) -> Exchange {
    Exchange::run(client.start(ticket).unwrap(), server.accept().unwrap())
}

#[test]
fn clients_offer_a_session_at_another_name_and_the_server_decides() {
    for (library, of_server) in library_pairs() {
        for &version in Version::ALL {
            let what = format!("{version}, {library} to {of_server}");
            let (client, server) = ends(library, of_server, version);
            let first = exchange(&client, &server, None);
            assert_eq!(first.client.server_name.as_deref(), Some(NAMES[0]), "{what}");
            let ticket = first.ticket.expect("a ticket");

            let second = client.with_name(NAMES[1]).unwrap();
            assert_eq!(second.config().server_name, NAMES[1]);
            let crossed = exchange(&second, &server, Some(&ticket));
            assert_eq!(crossed.client.server_name.as_deref(), Some(NAMES[1]), "{what}");
            // RFC 6066 §3 has a server of TLS 1.2 refuse, RFC 8446 §4.6.1 asks the client to know the
            // certificate. rustls refuses in both versions, OpenSSL without a callback for names in none.
            let resumed = of_server == Library::OpenSsl;
            assert_eq!(crossed.client.resumed, resumed, "{what}");
            assert_eq!(crossed.server.resumed, resumed, "{what}");
        }
    }
}

#[test]
fn a_refused_session_of_another_name_ends_in_a_full_handshake_with_the_certificate() {
    let (client, server) = ends(Library::Rustls, Library::Rustls, Version::Tls13);
    let ticket = exchange(&client, &server, None).ticket;
    let crossed = exchange(&client.with_name(NAMES[1]).unwrap(), &server, ticket.as_ref());
    assert_eq!((crossed.client.resumed, crossed.client.certificates), (false, 1));
}

#[test]
fn a_full_handshake_at_the_other_name_verifies_that_name() {
    for &library in Library::ALL {
        let (client, server) = ends(library, Library::OpenSsl, Version::Tls13);
        let done = exchange(&client.with_name(NAMES[1]).unwrap(), &server, None);
        assert!(!done.client.resumed);
        let stranger = client.with_name("third.test").unwrap();
        let mut session = stranger.start(None).unwrap();
        let mut other = server.accept().unwrap();
        let mut flight = Vec::new();
        session.write_tls(&mut flight).unwrap();
        other.read_tls(&flight).unwrap();
        flight.clear();
        other.write_tls(&mut flight).unwrap();
        assert!(session.read_tls(&flight).is_err(), "{library}");
    }
}

#[test]
fn a_name_that_is_none_is_the_callers_fault() {
    for &library in Library::ALL {
        let (client, _) = ends(library, library, Version::Tls13);
        let wrong = client.with_name("not a name").unwrap_err();
        assert!(matches!(wrong, Error::Caller(CallerError::ServerName(_))), "{wrong:?}");
    }
}
