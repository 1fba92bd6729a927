//! Connections over QUIC on loopback, client and server in one runtime.

use std::time::Duration;

use crate::common::*;
use conn::{
    ClientPlan, ClientTransport, Failure, Outcome, Running, Server, ServerPlan, ServerRecord,
    ServerTransport, connect,
};
use fault::{Explain, Fault};
use tls::{EarlyData, Group, Library, Ticket, Version};

fn serve(change: impl FnOnce(&mut tls::ServerConfig)) -> Running {
    let mut config = server_config(Library::Rustls, Version::Tls13);
    change(&mut config);
    serve_over(ServerTransport::quic(config))
}

fn serve_over(transport: ServerTransport) -> Running {
    let plan = ServerPlan { response: vec![b'r'; 100], ..ServerPlan::new(transport) };
    Server::bind(loopback(), plan).unwrap().spawn()
}

fn client() -> tls::quic::Client {
    tls::quic::client_config(&client_config(Library::Rustls, Version::Tls13)).unwrap()
}

fn over(client: &tls::quic::Client) -> ClientTransport {
    ClientTransport::Quic { tls: client.clone() }
}

fn plan(server: &Running, client: &tls::quic::Client) -> ClientPlan {
    let new = ClientPlan::new(server.address(), over(client));
    ClientPlan { response_len: 100, timeout: PATIENCE, ..new }
}

async fn exchange(server: &Running, plan: ClientPlan) -> (Outcome, ServerRecord) {
    let outcome = connect(plan).await.unwrap();
    let record = server.log().wait_for(outcome.local, PATIENCE).await.expect("a record");
    assert_eq!(record.error, None);
    let timeline = &outcome.timeline;
    assert_eq!(outcome.response, [b'r'; 100]);
    assert!(timeline.started.unwrap() <= record.accepted);
    assert!(timeline.hello_sent.unwrap() <= record.hello_received.unwrap());
    assert!(timeline.request_sent.unwrap() <= record.request_received.unwrap());
    assert!(record.response_sent.unwrap() <= timeline.first_response_byte.unwrap());
    assert!(timeline.handshake_complete.unwrap() <= record.handshake_complete.unwrap());
    let (ours, theirs) = (outcome.facts.as_ref().unwrap(), record.facts.as_ref().unwrap());
    assert_eq!(ours.cipher_suite, theirs.cipher_suite);
    assert_eq!(ours.group, theirs.group);
    assert_eq!(ours.resumed, theirs.resumed);
    assert_eq!(ours.early_data, theirs.early_data);
    assert_eq!(ours.hello_retry_request, theirs.hello_retry_request);
    assert_eq!(ours.client_hello_len, theirs.client_hello_len);
    assert_eq!(ours.server_name.as_deref(), Some(NAME));
    (outcome, record)
}

async fn prime(server: &Running, client: &tls::quic::Client) -> (Outcome, Ticket) {
    let plan = ClientPlan { await_ticket: Some(PATIENCE), ..plan(server, client) };
    let (mut outcome, _) = exchange(server, plan).await;
    assert!(!outcome.resumed());
    let ticket = outcome.tickets.pop().expect("a ticket");
    (outcome, ticket)
}

#[tokio::test]
async fn one_round_trip_handshake() {
    let (server, client) = (serve(|_| {}), client());
    let (outcome, record) = exchange(&server, plan(&server, &client)).await;
    assert_in_order(&outcome.timeline);
    assert_eq!(outcome.timeline.connected, None);
    assert!(!record.early_request && !outcome.early_request);
    let facts = outcome.facts.unwrap();
    assert_eq!(facts.group, Some(Group::X25519));
    assert_eq!((facts.resumed, facts.early_data), (false, EarlyData::NotOffered));
    assert_eq!(outcome.chain, identity().chain_der());
    assert_eq!(facts.certificates, outcome.chain.len());
    let quic = outcome.quic.unwrap();
    assert_eq!(quic.packets_lost, 0);
    // Initial packets fill datagrams of 1200 bytes (RFC 9000 §14.1), and no probe is larger.
    assert!(quic.bytes_sent >= 1200);
    assert!(quic.bytes_sent <= 1200 * quic.datagrams_sent);
}

#[tokio::test]
async fn a_ticket_resumes_without_early_data() {
    let (server, client) = (serve(|tls| tls.max_early_data = 1), client());
    let (primed, ticket) = prime(&server, &client).await;
    assert!(primed.quic.unwrap().ticket_allows_early_data);
    let plan = ClientPlan { ticket: Some(ticket), ..plan(&server, &client) };
    let (outcome, _) = exchange(&server, plan).await;
    assert_in_order(&outcome.timeline);
    assert!(outcome.resumed() && outcome.chain.is_empty());
    assert_eq!(outcome.facts.unwrap().early_data, EarlyData::NotOffered);
}

#[tokio::test]
async fn zero_rtt_is_accepted_and_answered_before_finished() {
    let (server, client) = (serve(|tls| tls.max_early_data = 1), client());
    let (_, ticket) = prime(&server, &client).await;
    let resuming = ClientPlan { ticket: Some(ticket), ..plan(&server, &client) };
    let plan = ClientPlan { early_data: true, ..resuming };
    let (outcome, record) = exchange(&server, plan).await;
    assert!(outcome.resumed() && outcome.early_data_accepted());
    assert!(outcome.timeline.ready < outcome.timeline.handshake_complete);
    assert_eq!(outcome.timeline.request_resent, None);
    assert!(record.early_request);
    assert!(record.response_sent <= record.handshake_complete);
}

#[tokio::test]
async fn rejected_zero_rtt_is_sent_again_after_the_handshake() {
    let first = serve(|tls| tls.max_early_data = 1);
    let second = serve(|tls| tls.max_early_data = 1);
    let client = client();
    let (_, ticket) = prime(&first, &client).await;
    let resuming = ClientPlan { ticket: Some(ticket), ..plan(&second, &client) };
    let plan = ClientPlan { early_data: true, ..resuming };
    let (outcome, record) = exchange(&second, plan).await;
    let timeline = outcome.timeline;
    assert!(outcome.early_request && !outcome.early_data_accepted() && !outcome.resumed());
    assert_eq!(outcome.facts.unwrap().early_data, EarlyData::Rejected);
    assert!(timeline.request_sent < timeline.request_resent);
    assert!(timeline.request_resent <= timeline.first_response_byte);
    assert!(!record.early_request);
}

#[tokio::test]
async fn hello_retry_request_and_retry() {
    let server = serve(|tls| tls.groups = vec![Group::Secp256r1]);
    let groups = vec![Group::X25519, Group::Secp256r1];
    let config = client_config(Library::Rustls, Version::Tls13);
    let client = tls::quic::client_config(&tls::ClientConfig { groups, ..config }).unwrap();
    let (outcome, _) = exchange(&server, plan(&server, &client)).await;
    let facts = outcome.facts.unwrap();
    assert!(facts.hello_retry_request);
    assert_eq!(facts.key_shares, [Group::X25519]);
    assert_eq!(facts.group, Some(Group::Secp256r1));

    let tls = Box::new(server_config(Library::Rustls, Version::Tls13));
    let validating = serve_over(ServerTransport::Quic { tls, retry: true });
    let client = self::client();
    let (outcome, _) = exchange(&validating, plan(&validating, &client)).await;
    assert!(!outcome.facts.unwrap().hello_retry_request);
}

#[tokio::test]
async fn think_time_and_no_request_at_all() {
    let (server, client) = (serve(|_| {}), client());
    let think = Duration::from_millis(20);
    let (outcome, record) = exchange(&server, ClientPlan { think, ..plan(&server, &client) }).await;
    assert!(outcome.timeline.think_time().unwrap() >= think);
    assert!(record.handshake_complete < record.request_received);

    let outcome =
        connect(ClientPlan { request: Vec::new(), ..plan(&server, &client) }).await.unwrap();
    let record = server.log().wait_for(outcome.local, PATIENCE).await.unwrap();
    assert_eq!((record.error, record.request_received), (None, None));
    assert!(record.handshake_complete.is_some());
}

#[tokio::test]
async fn a_silent_port_times_out() {
    let silent = std::net::UdpSocket::bind(loopback()).unwrap();
    let client = client();
    let timeout = Duration::from_millis(40);
    let new = ClientPlan::new(silent.local_addr().unwrap(), over(&client));
    let failure = connect(ClientPlan { timeout, ..new }).await.unwrap_err();
    let Failure::TimedOut { after, timeline } = failure else { panic!("{failure}") };
    assert_eq!(after, timeout);
    assert!(timeline.hello_sent.is_some() && timeline.ready.is_none(), "{timeline:?}");
}

#[tokio::test]
async fn certificates_and_protocols_that_do_not_fit() {
    let server = serve(|tls| tls.alpn = vec![b"h3".to_vec()]);
    let config = client_config(Library::Rustls, Version::Tls13);
    let alpn = vec![b"h3".to_vec()];
    let fitting = tls::ClientConfig { alpn, ..config };
    let roots = rsa_identity().roots().to_vec();
    let wrong_root = tls::ClientConfig { trust: tls::Trust::Roots(roots), ..fitting.clone() };
    let other_alpn = tls::ClientConfig { alpn: vec![b"smtp".to_vec()], ..fitting.clone() };

    let client = tls::quic::client_config(&fitting).unwrap();
    let (outcome, _) = exchange(&server, plan(&server, &client)).await;
    assert_eq!(outcome.facts.unwrap().alpn.as_deref(), Some(&b"h3"[..]));

    let client = tls::quic::client_config(&wrong_root).unwrap();
    let failure = connect(plan(&server, &client)).await.unwrap_err();
    assert_eq!((failure.name(), failure.fault()), ("certificate", Fault::Peer), "{failure}");

    let client = tls::quic::client_config(&other_alpn).unwrap();
    let failure = connect(plan(&server, &client)).await.unwrap_err();
    let no_protocol = tls::Error::Peer(tls::PeerError::NoApplicationProtocol);
    assert!(matches!(&failure, Failure::Tls(error) if *error == no_protocol), "{failure:?}");
}

#[tokio::test]
async fn a_server_outlives_hostile_datagrams() {
    let (server, client) = (serve(|_| {}), client());
    let socket = tokio::net::UdpSocket::bind(loopback()).await.unwrap();
    let long_header = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 1194]].concat();
    for datagram in [&b""[..], b"x", &[0; 1200], &[0xff; 1200], &long_header, &[0x40; 30]] {
        socket.send_to(datagram, server.address()).await.unwrap();
    }
    exchange(&server, plan(&server, &client)).await;
}
