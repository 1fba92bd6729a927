//! Early data: taken, refused, and what is not to go so; and TLS by sessions over the kernel's TCP.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderName, HeaderValue};
use tls::{EarlyData, Identity, KeyExchange, KeyType, Library, Trust, Version};
use web::{
    Client, ConnectPlan, Connection, ConnectionRecord, Outcome, Protocol, Request, Server, Tickets,
    What,
};

use crate::common::*;

/// What has early data.
const PROTOCOLS: [Protocol; 5] =
    [Protocol::Http1, Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2, Protocol::Http3];

/// A server that takes so many bytes of early data.
fn taking(bytes: u32) -> Server {
    serve(|plan| {
        let tls = plan.tls.as_mut().unwrap();
        tls.config.versions = vec![Version::Tls13];
        tls.config.max_early_data = bytes;
    })
}

/// A browser: a client, and what it connects by.
struct Visitor {
    client: Client,
    tickets: Tickets,
    protocol: Protocol,
}

impl Visitor {
    fn new(protocol: Protocol) -> Visitor {
        Visitor { client: client(Version::Tls13), tickets: Tickets::new(4), protocol }
    }

    fn plan(&self, server: &Server) -> ConnectPlan {
        let tickets = Some(self.tickets.clone());
        let mut plan = ConnectPlan { tickets, early_data: true, ..plan(server, self.protocol) };
        // So long that an exchange which nothing wakes is not woken by its timer in a test's time.
        plan.timeouts.exchange = Duration::from_secs(3600);
        plan
    }

    async fn connect(&self, server: &Server) -> Connection {
        self.client.connect(&self.plan(server)).await.unwrap()
    }

    /// Makes a connection that brings a ticket.
    async fn visit(&self, server: &Server) {
        let connection = self.connect(server).await;
        assert_eq!(connection.early_data(), EarlyData::NotOffered, "{}", self.protocol);
        assert_eq!(connection.facts().resumed, Some(false), "{}", self.protocol);
        assert_whole(&get(&connection, "/100").await, 100);
        assert_whole(&get(&connection, "/5").await, 5);
    }
}

fn assert_whole(outcome: &Outcome, length: u64) {
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!((outcome.status(), outcome.body), (Some(200), length));
    assert_eq!(outcome.digest, Some(web::digest(length)));
}

/// What the server says of its connections when all are over.
async fn records(server: &Server, count: usize) -> Vec<ConnectionRecord> {
    let mut records = Vec::new();
    until("records", || {
        records.extend(server.log().take_connections());
        (records.len() >= count).then_some(())
    })
    .await;
    records.sort_by_key(|record| record.connection);
    records
}

fn answers(records: &[ConnectionRecord]) -> Vec<EarlyData> {
    let tls = records.iter().filter_map(|record| record.tls.as_ref());
    tls.map(|tls| tls.early_data).collect()
}

#[test]
fn the_first_request_of_a_later_connection_is_early_data() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            let (server, visitor) = (taking(16_384), Visitor::new(protocol));
            visitor.visit(&server).await;
            let connection = visitor.connect(&server).await;
            let facts = connection.facts();
            assert_eq!((facts.secured, facts.resumed), (None, Some(true)), "{protocol}");
            assert_eq!(connection.early_data(), EarlyData::Pending, "{protocol}");
            assert_whole(&get(&connection, "/1000").await, 1000);
            assert_eq!(connection.early_data(), EarlyData::Accepted, "{protocol}");
            // The connection goes on as any other.
            assert_whole(&get(&connection, "/3000000").await, 3_000_000);
            let post = Request { digest: true, ..Request::post(NAME, "/7", 300_000) };
            assert_whole(&connection.request(post).finish().await, 7);
            drop(connection);
            let records = records(&server, 2).await;
            let expected = [EarlyData::NotOffered, EarlyData::Accepted];
            assert_eq!(answers(&records), expected, "{protocol}: {records:?}");
            assert_eq!(records[1].resumed, Some(true), "{protocol}");
            assert_eq!((records[1].requests, records[1].error.as_ref()), (3, None), "{protocol}");
        }
    });
}

#[test]
fn what_the_server_refuses_is_asked_again_and_once() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            let visitor = Visitor::new(protocol);
            visitor.visit(&taking(16_384)).await;
            // Another server of the same name: it does not know the tickets of the first.
            let server = taking(16_384);
            let connection = visitor.connect(&server).await;
            let paths = match protocol.is_multiplexed() {
                true => vec!["/1", "/2000", "/300000", "/4", "/5"],
                false => vec!["/300000"],
            };
            let outcomes = join_all(paths.iter().map(|path| get(&connection, path))).await;
            for (path, outcome) in paths.iter().zip(&outcomes) {
                assert_whole(outcome, path.trim_start_matches('/').parse().unwrap());
            }
            assert_eq!(connection.early_data(), EarlyData::Rejected, "{protocol}");
            assert_whole(&get(&connection, "/6").await, 6);
            drop(connection);
            let records = records(&server, 1).await;
            assert_eq!(answers(&records), [EarlyData::Rejected], "{protocol}");
            assert_eq!(records[0].resumed, Some(false), "{protocol}");
            // None was lost, and none came twice.
            let mut asked: Vec<String> =
                server.log().take_streams().into_iter().map(|stream| stream.path).collect();
            asked.sort();
            let mut expected: Vec<&str> = paths.into_iter().chain(["/6"]).collect();
            expected.sort_unstable();
            assert_eq!(asked, expected, "{protocol}");
        }
    });
}

#[test]
fn a_server_without_early_data_gives_no_ticket_for_it() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            let (server, visitor) = (taking(0), Visitor::new(protocol));
            visitor.visit(&server).await;
            let connection = visitor.connect(&server).await;
            assert_eq!(connection.early_data(), EarlyData::NotOffered, "{protocol}");
            assert_eq!(connection.facts().resumed, Some(true), "{protocol}");
            assert_whole(&get(&connection, "/1000").await, 1000);
            drop(connection);
            let records = records(&server, 2).await;
            assert_eq!(answers(&records), [EarlyData::NotOffered; 2], "{protocol}");
        }
    });
}

#[test]
fn a_request_with_a_body_waits_for_the_handshake() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            let (known, other) = (taking(16_384), taking(16_384));
            for (server, expected) in [(&known, EarlyData::Accepted), (&other, EarlyData::Rejected)]
            {
                let visitor = Visitor::new(protocol);
                visitor.visit(&known).await;
                visitor.upload_first(server, expected).await;
            }
        }
    });
}

impl Visitor {
    /// Begins a connection with an upload.
    async fn upload_first(&self, server: &Server, expected: EarlyData) {
        let protocol = self.protocol;
        let connection = self.connect(server).await;
        assert_eq!(connection.early_data(), EarlyData::Pending, "{protocol}");
        let mut exchange = connection.request(Request::post(NAME, "/7", 1000));
        let first = exchange.next().await.unwrap();
        assert!(matches!(first.what, What::Sent), "{protocol}: {first:?}");
        assert_eq!(connection.early_data(), expected, "{protocol}");
        let outcome = exchange.finish().await;
        assert!(outcome.failure.is_none(), "{protocol}: {outcome:?}");
        assert_eq!(outcome.body, 7, "{protocol}");
        assert_whole(&get(&connection, "/8").await, 8);
    }
}

#[test]
fn a_request_longer_than_what_may_be_early_is_not_cut() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            // Less than a request, more than one, and a server that refuses it.
            for (first, second) in [(100, None), (16_384, None), (16_384, Some(16_384))] {
                let visitor = Visitor::new(protocol);
                let server = taking(first);
                visitor.visit(&server).await;
                let server = second.map_or(server, taking);
                let connection = visitor.connect(&server).await;
                let long = HeaderValue::from_str(&"c".repeat(9_000)).unwrap();
                let headers = vec![(HeaderName::from_static("cookie"), long)];
                let request = Request { headers, digest: true, ..Request::get(NAME, "/1000") };
                assert_whole(&connection.request(request).finish().await, 1000);
                assert_whole(&get(&connection, "/8").await, 8);
            }
        }
    });
}

#[test]
fn requests_end_with_a_handshake_that_fails() {
    on_a_node(async {
        for protocol in PROTOCOLS {
            let visitor = Visitor::new(protocol);
            visitor.visit(&taking(16_384)).await;
            // Its certificate is of a root that nobody trusts.
            let other = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap());
            let server = serve(|plan| {
                let tls = plan.tls.as_mut().unwrap();
                tls.config.versions = vec![Version::Tls13];
                tls.config.identity = Arc::clone(&other);
            });
            let connection = visitor.connect(&server).await;
            let post = connection.request(Request::post(NAME, "/7", 1000)).finish();
            let (get, post) = tokio::join!(get(&connection, "/1"), post);
            assert!(get.failure.is_some() && post.failure.is_some(), "{protocol}: {get:?}");
            assert!(server.log().take_streams().is_empty(), "{protocol}");
        }
    });
}

#[test]
fn early_data_is_for_one_protocol_in_tls() {
    on_a_node(async {
        let server = taking(16_384);
        let both = vec![Protocol::Http2, Protocol::Http1];
        for protocols in [both, vec![Protocol::Http1Clear]] {
            let plan =
                ConnectPlan { protocols, early_data: true, ..plan(&server, Protocol::Http2) };
            let failure = client(Version::Tls13).connect(&plan).await.unwrap_err();
            assert_eq!(failure.name(), "plan");
        }
    });
}

/// TLS 1.2 with RSA key exchange, which only OpenSSL has, over the kernel's TCP.
#[test]
fn openssl_carries_every_protocol_over_tcp() {
    on_a_node(async {
        let identity = Arc::new(Identity::generate(KeyType::Rsa2048, 1, &[NAME]).unwrap());
        let server = serve(|plan| {
            let tls = plan.tls.as_mut().unwrap();
            tls.protocols.retain(|protocol| protocol.is_over_tcp());
            tls.config.library = Library::OpenSsl;
            tls.config.versions = vec![Version::Tls12];
            tls.config.key_exchange = KeyExchange::Rsa;
            tls.config.identity = Arc::clone(&identity);
        });
        let rustls = tls::ClientConfig {
            versions: vec![Version::Tls12],
            ..tls::ClientConfig::new(Library::Rustls, NAME, Trust::Roots(identity.roots()))
        };
        let openssl = tls::ClientConfig {
            library: Library::OpenSsl,
            key_exchange: KeyExchange::Rsa,
            ..rustls.clone()
        };
        let client = Client::new(&rustls).unwrap().with_session_tls(openssl);
        for protocol in [Protocol::Http1, Protocol::Spdy31, Protocol::Http2] {
            let tickets = Some(Tickets::new(4));
            let plan = ConnectPlan { tickets, ..plan(&server, protocol) };
            for is_second in [false, true] {
                let connection = client.connect(&plan).await.unwrap();
                let facts = connection.facts();
                let tls = facts.tls.as_ref().unwrap();
                assert_eq!(facts.resumed, Some(is_second), "{protocol}");
                assert_eq!((tls.library, tls.group), (Library::OpenSsl, None), "{protocol}");
                assert_whole(&get(&connection, "/3000000").await, 3_000_000);
                let post = Request { digest: true, ..Request::post(NAME, "/7", 300_000) };
                assert_whole(&connection.request(post).finish().await, 7);
            }
        }
    });
}
