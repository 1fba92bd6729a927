//! What a client offers beyond the pinned choices, and what it notes of a failed handshake.

use std::sync::Arc;

use tls::{
    Client, ClientConfig, Error, Group, Identity, KeyType, Library, NamedGroup, Offer, PeerError,
    Server, ServerConfig, Session, Trust, Version, Witness, named_group,
};

use crate::common::NAME;

fn group(name: &str) -> NamedGroup {
    named_group(name).unwrap()
}

fn run(client: &ClientConfig, server: &ServerConfig) -> (Box<dyn Session>, Result<(), Error>) {
    let mut here = Client::new(client).unwrap().start(None).unwrap();
    let mut there = Server::new(server).unwrap().accept().unwrap();
    for _ in 0..6 {
        let mut flight = Vec::new();
        here.write_tls(&mut flight).unwrap();
        let refused = there.read_tls(&flight);
        flight.clear();
        there.write_tls(&mut flight).unwrap();
        if let Err(error) = here.read_tls(&flight) {
            return (here, Err(error));
        }
        if refused.is_err() || !here.is_handshaking() {
            break;
        }
    }
    (here, Ok(()))
}

fn server(library: Library) -> ServerConfig {
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap());
    ServerConfig::new(library, identity)
}

#[test]
fn usual_and_everything_offer_the_groups_that_are_wanted() {
    let everything = |groups| Offer::Everything { groups, old_versions: false };
    for (library, offer) in [
        (Library::Rustls, Offer::Usual(vec![group("p384"), group("p256")])),
        (Library::OpenSsl, Offer::Usual(vec![group("p384"), group("p256")])),
        (Library::OpenSsl, Offer::Browser(vec![group("p384"), group("p256")])),
        (Library::OpenSsl, everything(vec![group("p521"), group("p256")])),
    ] {
        let witness = Witness::default();
        let config = ClientConfig { offer, ..ClientConfig::new(library, NAME, Trust::Insecure) };
        let config = ClientConfig { witness: Some(witness.clone()), ..config };
        let (session, ended) = run(&config, &server(Library::Rustls));
        ended.unwrap();
        let choice = session.server_choice().unwrap();
        assert_eq!((choice.group, choice.hello_retry_request), (Some(group("p256")), true));
        assert_eq!(session.facts().group, Some(Group::Secp256r1));
        assert_eq!(witness.notes().chain.len(), 1, "{library}");
    }
}

#[test]
fn a_browsers_offer_has_two_key_shares() {
    let groups = ["x25519mlkem768", "x25519", "p256"].map(group).to_vec();
    let config = ClientConfig::new(Library::OpenSsl, NAME, Trust::Insecure);
    let config = ClientConfig { offer: Offer::Browser(groups), ..config };
    let (session, ended) = run(&config, &server(Library::Rustls));
    ended.unwrap();
    let facts = session.facts();
    assert_eq!(facts.key_shares, [Group::X25519MlKem768, Group::X25519]);
    assert_eq!((facts.group, facts.hello_retry_request), (Some(Group::X25519), false));
}

#[test]
fn the_chain_is_noted_though_it_is_refused() {
    for library in Library::ALL {
        let stranger = Identity::generate(KeyType::EcdsaP256, 1, &["other.test"]).unwrap();
        let witness = Witness::default();
        let config = ClientConfig {
            witness: Some(witness.clone()),
            ..ClientConfig::new(*library, NAME, Trust::Roots(stranger.roots()))
        };
        let (_, ended) = run(&config, &server(Library::Rustls));
        assert!(matches!(ended, Err(Error::Certificate(_))), "{ended:?}");
        let notes = witness.notes();
        assert!(!notes.asked_for_certificate);
        if *library == Library::Rustls {
            assert_eq!(notes.chain.len(), 1);
        }
    }
}

#[test]
fn rustls_offers_no_group_that_it_lacks() {
    let offer = Offer::Usual(vec![group("p521")]);
    let config =
        ClientConfig { offer, ..ClientConfig::new(Library::Rustls, NAME, Trust::Insecure) };
    assert!(matches!(Client::new(&config), Err(Error::Caller(_))));
}

#[test]
fn a_promised_ticket_is_seen_in_tls_1_2() {
    for tickets in [true, false] {
        let mut server = server(Library::OpenSsl);
        server.versions = vec![Version::Tls12];
        server.tickets = tickets;
        let client = ClientConfig::new(Library::Rustls, NAME, Trust::Insecure);
        let client = ClientConfig { versions: vec![Version::Tls12], ..client };
        let (session, ended) = run(&client, &server);
        ended.unwrap();
        assert_eq!(session.server_choice().unwrap().session_ticket, tickets);
    }
}

#[test]
fn an_alert_is_said_in_words() {
    let error = Error::from(PeerError::Alert { code: 40, name: "handshake_failure" });
    assert_eq!(error.to_string(), "the peer refused: alert handshake_failure (40)");
}
