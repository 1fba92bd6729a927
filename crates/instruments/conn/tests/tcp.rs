//! Connections over the kernel's TCP on loopback, client and server in one runtime.

use crate::common::*;
use conn::{
    ClientPlan, ClientTransport, FastOpen, Outcome, Running, Server, ServerPlan, ServerRecord,
    ServerTransport, SynData, connect,
};
use lab_test::{Need, skip};
use tls::{Client, EarlyData, Group, KeyExchange, Library, Ticket, Version};

fn serve(tls: Option<tls::Server>) -> Running {
    let transport = ServerTransport::Tcp { fast_open: FastOpen::Off, tls };
    let plan = ServerPlan { response: vec![b'r'; 100], ..ServerPlan::new(transport) };
    Server::bind(loopback(), plan).unwrap().spawn()
}

fn over(server: &Running, transport: ClientTransport) -> ClientPlan {
    let response_len = 100;
    ClientPlan {
        response_len,
        timeout: PATIENCE,
        linger: PATIENCE,
        ..ClientPlan::new(server.address(), transport)
    }
}

fn plain(server: &Running) -> ClientPlan {
    over(server, ClientTransport::Tcp { fast_open: FastOpen::Off, tls: None })
}

fn plan(server: &Running, client: &Client) -> ClientPlan {
    over(server, ClientTransport::tls(client))
}

/// Connects, and takes what the server logged of it.
async fn exchange(server: &Running, plan: ClientPlan) -> (Outcome, ServerRecord) {
    let outcome = connect(plan).await.unwrap();
    let record = server.log().wait_for(outcome.local, PATIENCE).await.expect("a record");
    assert_eq!(record.error, None);
    assert_agreement(&outcome, &record);
    (outcome, record)
}

/// The server's view and the client's are of the same connection.
fn assert_agreement(outcome: &Outcome, record: &ServerRecord) {
    let timeline = &outcome.timeline;
    assert_eq!(outcome.response_len, 100);
    assert_eq!(outcome.response, [b'r'; 100]);
    assert_eq!((outcome.partial_writes, record.partial_writes), (0, 0));
    // What was sent before it was received.
    assert!(timeline.started.unwrap() <= record.accepted);
    assert!(timeline.request_sent.unwrap() <= record.request_received.unwrap());
    assert!(record.response_sent.unwrap() <= timeline.first_response_byte.unwrap());
    assert!(record.closed.unwrap() >= timeline.closed.unwrap());
    assert!(record.first_bytes <= record.request_received);
    assert!(record.request_received <= record.response_sent);
    let (Some(client), Some(server)) = (&outcome.facts, &record.facts) else {
        assert_eq!((&outcome.facts, &record.facts), (&None, &None));
        return;
    };
    assert!(timeline.hello_sent.unwrap() <= record.first_bytes.unwrap());
    assert!(record.hello_received.unwrap() >= record.first_bytes.unwrap());
    assert!(timeline.handshake_complete.is_some() && record.handshake_complete.is_some());
    assert_eq!(client.version, server.version);
    assert_eq!(client.cipher_suite, server.cipher_suite);
    assert_eq!(client.resumed, server.resumed);
    assert_eq!(client.hello_retry_request, server.hello_retry_request);
    assert_eq!(client.client_hello_len, server.client_hello_len);
}

#[tokio::test]
async fn plain_tcp_is_ready_when_connected() {
    let server = serve(None);
    let (outcome, record) = exchange(&server, plain(&server)).await;
    assert_in_order(&outcome.timeline);
    assert!(outcome.timeline.ready >= outcome.timeline.connected);
    assert_eq!(outcome.timeline.hello_sent, None);
    assert_eq!((outcome.writes, record.writes), (1, 1));
    assert_eq!(outcome.syn_data, SynData::NotSent);
    let tcp = outcome.tcp.unwrap();
    assert_eq!((tcp.bytes_received, tcp.retransmits), (100, 0));
    assert!(server.log().drain().is_empty());
}

#[tokio::test]
async fn full_handshakes_of_every_pair_of_libraries() {
    for (client, server) in library_pairs() {
        for version in [Version::Tls12, Version::Tls13] {
            let running = serve(Some(tls::Server::new(&server_config(server, version)).unwrap()));
            let client = Client::new(&client_config(client, version)).unwrap();
            let plan = plan(&running, &client);
            let (outcome, record) = exchange(&running, plan).await;
            assert_in_order(&outcome.timeline);
            let facts = outcome.facts.unwrap();
            assert_eq!(facts.version, Some(version));
            assert!(!facts.resumed && !record.early_request);
            // ClientHello; (TLS 1.2: key exchange;) Finished with the request; close_notify.
            let flights = if version == Version::Tls13 { 3 } else { 4 };
            assert_eq!(outcome.writes, flights, "{version} {server}");
        }
    }
}

#[tokio::test]
async fn rsa_key_exchange() {
    let mut config = server_config(Library::OpenSsl, Version::Tls12);
    config.identity = rsa_identity();
    config.key_exchange = KeyExchange::Rsa;
    let server = serve(Some(tls::Server::new(&config).unwrap()));
    let mut config = client_config(Library::OpenSsl, Version::Tls12);
    config.trust = tls::Trust::Roots(rsa_identity().roots().to_vec());
    config.key_exchange = KeyExchange::Rsa;
    let client = Client::new(&config).unwrap();
    let plan = plan(&server, &client);
    let (outcome, _) = exchange(&server, plan).await;
    assert_in_order(&outcome.timeline);
    assert_eq!(outcome.facts.unwrap().group, None);
}

/// A first connection that waits for a ticket.
async fn prime(server: &Running, client: &Client) -> Ticket {
    let plan = ClientPlan { await_ticket: Some(PATIENCE), ..plan(server, client) };
    let (mut outcome, _) = exchange(server, plan).await;
    assert!(!outcome.resumed());
    outcome.tickets.pop().expect("a ticket")
}

#[tokio::test]
async fn resumption_by_the_ticket_of_a_priming_connection() {
    for (client, server) in library_pairs() {
        for version in [Version::Tls12, Version::Tls13] {
            let running = serve(Some(tls::Server::new(&server_config(server, version)).unwrap()));
            let client = Client::new(&client_config(client, version)).unwrap();
            let ticket = prime(&running, &client).await;
            let plan = ClientPlan { ticket: Some(ticket), ..plan(&running, &client) };
            let (outcome, _) = exchange(&running, plan).await;
            assert_in_order(&outcome.timeline);
            assert!(outcome.resumed(), "{version} {server}");
            assert_eq!(outcome.facts.unwrap().certificates, 0);
        }
    }
}

fn early_client(library: Library) -> Client {
    let config = client_config(library, Version::Tls13);
    Client::new(&tls::ClientConfig { early_data: true, ..config }).unwrap()
}

fn early_server(library: Library) -> tls::Server {
    let config = server_config(library, Version::Tls13);
    tls::Server::new(&tls::ServerConfig { max_early_data: 16_384, ..config }).unwrap()
}

#[tokio::test]
async fn early_data_is_accepted_and_answered_before_finished() {
    for (client, server) in library_pairs() {
        let running = serve(Some(early_server(server)));
        let tls_client = early_client(client);
        let ticket = prime(&running, &tls_client).await;
        let resuming = ClientPlan { ticket: Some(ticket), ..plan(&running, &tls_client) };
        let plan = ClientPlan { early_data: true, ..resuming };
        let (outcome, record) = exchange(&running, plan).await;
        let timeline = outcome.timeline;
        assert!(outcome.early_data_accepted() && outcome.resumed(), "{client} {server}");
        assert_eq!(timeline.request_resent, None);
        assert_eq!(timeline.hello_sent, timeline.request_sent);
        assert!(timeline.connected <= timeline.ready && timeline.ready <= timeline.hello_sent);
        assert!(timeline.request_sent <= timeline.first_response_byte);
        assert!(record.early_request, "{client} {server}");
        // RFC 8446 §2.3: the server answers early data in its first flight.
        assert!(record.response_sent <= record.handshake_complete, "{client} {server}");
        assert_eq!(record.response_sent, record.hello_received, "{client} {server}");
        assert_eq!(record.facts.unwrap().early_data, EarlyData::Accepted);
    }
}

/// The ticket comes from a server that accepts early data; the one that it is offered to has other
/// ticket keys.
#[tokio::test]
async fn rejected_early_data_is_sent_again_after_the_handshake() {
    for (client, server) in library_pairs() {
        let first = serve(Some(early_server(server)));
        let second = serve(Some(early_server(server)));
        let tls_client = early_client(client);
        let ticket = prime(&first, &tls_client).await;
        let resuming = ClientPlan { ticket: Some(ticket), ..plan(&second, &tls_client) };
        let plan = ClientPlan { early_data: true, ..resuming };
        let (outcome, record) = exchange(&second, plan).await;
        let timeline = outcome.timeline;
        assert!(outcome.early_request && !outcome.early_data_accepted(), "{client} {server}");
        assert_eq!(outcome.facts.unwrap().early_data, EarlyData::Rejected, "{client} {server}");
        assert!(timeline.request_sent < timeline.request_resent);
        assert!(timeline.request_resent <= timeline.first_response_byte);
        assert!(!record.early_request);
    }
}

#[tokio::test]
async fn early_data_asked_for_without_a_ticket_goes_after_the_handshake() {
    let server = serve(Some(early_server(Library::Rustls)));
    let client = early_client(Library::Rustls);
    let plan = ClientPlan { early_data: true, ..plan(&server, &client) };
    let (outcome, record) = exchange(&server, plan).await;
    assert_in_order(&outcome.timeline);
    assert!(!outcome.early_request && !record.early_request);
}

#[tokio::test]
async fn hello_retry_request_is_seen_by_both_sides() {
    for (client, server) in library_pairs() {
        let config = server_config(server, Version::Tls13);
        let config = tls::ServerConfig { groups: vec![Group::Secp256r1], ..config };
        let running = serve(Some(tls::Server::new(&config).unwrap()));
        let config = client_config(client, Version::Tls13);
        let groups = vec![Group::X25519, Group::Secp256r1];
        let client = Client::new(&tls::ClientConfig { groups, ..config }).unwrap();
        let plan = plan(&running, &client);
        let (outcome, _) = exchange(&running, plan).await;
        assert_in_order(&outcome.timeline);
        let facts = outcome.facts.unwrap();
        assert!(facts.hello_retry_request);
        assert_eq!(facts.group, Some(Group::Secp256r1));
        assert_eq!(outcome.writes, 4);
    }
}

#[tokio::test]
async fn the_request_waits_for_the_think_time() {
    let server =
        serve(Some(tls::Server::new(&server_config(Library::Rustls, Version::Tls13)).unwrap()));
    let client = Client::new(&client_config(Library::Rustls, Version::Tls13)).unwrap();
    let think = std::time::Duration::from_millis(20);
    let plan = ClientPlan { think, ..plan(&server, &client) };
    let (outcome, record) = exchange(&server, plan).await;
    assert_in_order(&outcome.timeline);
    assert!(outcome.timeline.think_time().unwrap() >= think);
    // The handshake did not wait.
    assert!(record.handshake_complete.unwrap() < record.request_received.unwrap());
    assert_eq!(outcome.writes, 4);
}

#[tokio::test]
async fn a_connection_without_a_request_ends_with_the_handshake() {
    let server =
        serve(Some(tls::Server::new(&server_config(Library::OpenSsl, Version::Tls13)).unwrap()));
    let client = Client::new(&client_config(Library::OpenSsl, Version::Tls13)).unwrap();
    let plan = ClientPlan { request: Vec::new(), ..plan(&server, &client) };
    let outcome = connect(plan).await.unwrap();
    assert!(outcome.timeline.ready.is_some() && outcome.timeline.request_sent.is_none());
    let record = server.log().wait_for(outcome.local, PATIENCE).await.unwrap();
    assert_eq!(record.error, None);
    assert_eq!(record.request_received, None);
}

#[tokio::test]
async fn connections_at_once_are_told_apart() {
    let server =
        serve(Some(tls::Server::new(&server_config(Library::Rustls, Version::Tls13)).unwrap()));
    let client = Client::new(&client_config(Library::Rustls, Version::Tls13)).unwrap();
    let plan = plan(&server, &client);
    let (a, b, c, d) = tokio::join!(
        exchange(&server, plan.clone()),
        exchange(&server, plan.clone()),
        exchange(&server, plan.clone()),
        exchange(&server, plan.clone()),
    );
    let mut ports: Vec<u16> =
        [a, b, c, d].iter().map(|(outcome, _)| outcome.local.port()).collect();
    ports.dedup();
    assert_eq!(ports.len(), 4);
}

#[tokio::test]
async fn fast_open_that_the_server_does_not_allow_falls_back() {
    // Whatever the sysctl of this namespace says, the listener did not ask for Fast Open.
    let server = serve(None);
    let plan = over(&server, ClientTransport::Tcp { fast_open: FastOpen::Cookie, tls: None });
    let (outcome, record) = exchange(&server, plan).await;
    assert_ne!(outcome.syn_data, SynData::Acknowledged);
    assert!(!record.syn_data);
}

#[tokio::test]
async fn ipv6_listens_on_ipv6_only() {
    let address = (std::net::Ipv6Addr::LOCALHOST, 0).into();
    let server = match Server::bind(
        address,
        ServerPlan { response: vec![b'r'; 100], ..ServerPlan::plain() },
    ) {
        Ok(server) => server.spawn(),
        Err(error) => skip!(Need::Ipv6, "no IPv6 here: {error}"),
    };
    let (outcome, _) = exchange(&server, plain(&server)).await;
    assert!(outcome.local.is_ipv6());
    let v4 = (std::net::Ipv4Addr::LOCALHOST, server.address().port()).into();
    let refused = connect(ClientPlan { server: v4, ..plain(&server) }).await.unwrap_err();
    assert_eq!(refused.name(), "refused");
}
