//! Clients and servers that do what they should not.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tls::Version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use web::{Client, ConnectPlan, Protocol, Request};

use crate::common::*;

/// What a server answers to bytes in clear until it closes.
async fn answer(server: &web::Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.clear_addresses()[0]).await.unwrap();
    // The server may close before all is read.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the server closes");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn heads_beyond_the_limit_are_refused_and_the_server_goes_on() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|plan| plan.settings.max_header_list = 10_000);
            let connection = connect(&server, protocol, version).await;
            let large = HeaderValue::try_from("x".repeat(50_000)).unwrap();
            let headers = vec![(HeaderName::from_static("x-large"), large)];
            let request = Request { headers, ..Request::get(NAME, "/1") };
            let outcome = connection.request(request).finish().await;
            let refused = outcome.failure.is_some() || outcome.status() == Some(431);
            assert!(refused, "{protocol}: {outcome:?}");
            let again = connect(&server, protocol, version).await;
            assert_eq!(get(&again, "/10").await.body, 10, "{protocol}");
        }
    });
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    on_a_node(async {
        let server = serve(|_| {});
        let long = format!("GET /5 HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(70_000));
        for (bytes, status) in [
            (&b"\x16\x03\x01\x02\x00\x01"[..], 400),
            (b"GET\r\n\r\n", 400),
            (b"\0\0\0\0\r\n\r\n", 400),
            // RFC 9112 §3, §3.2: a version, a target of the method's form, one host.
            (b"GET / \r\n\r\n", 400),
            (b"GET HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            (b"GET 5 HTTP/1.1\r\nhost: a\r\n\r\n", 400),
            (b"GET /5 HTTP/1.1\r\n\r\n", 400),
            (b"GET /5 HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
            (b"GET /5 HTTP/1.1\r\nhost: a b\r\n\r\n", 400),
            // §5.1: a space before the colon.
            (b"GET /5 HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", 400),
            // §6.1: a coding twice, and one that is not known.
            (b"POST /5 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, chunked\r\n\r\n", 400),
            (b"POST /5 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n", 501),
            // §6.3: no length, and two that differ.
            (b"POST /5 HTTP/1.1\r\nhost: a\r\ncontent-length: 5a\r\n\r\nhello", 400),
            (
                b"POST /1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
                400,
            ),
            (long.as_bytes(), 431),
            // §7.1: a chunk's size is hexadecimal, and its data end with a line.
            (b"POST /5 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
            (
                b"POST /5 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n",
                400,
            ),
            (
                b"POST /5 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\
                  fffffffffffffffff\r\n",
                400,
            ),
        ] {
            let answer = answer(&server, bytes).await;
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown:?}: {answer:?}");
        }
        let connection = connect(&server, Protocol::Http1Clear, Version::Tls13).await;
        assert_eq!(get(&connection, "/10").await.body, 10);
    });
}

/// RFC 9112 §2.2, §9.3.2: an answer does not wait for what comes behind its request.
#[test]
fn answers_go_out_while_more_bytes_wait() {
    on_a_node(async {
        let server = serve(|_| {});
        for bytes in [
            &b"GET /5 HTTP/1.1\r\nHost: a\r\n\r\nGET /5 HT"[..],
            b"POST /5 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\r\n",
        ] {
            let mut stream = TcpStream::connect(server.clear_addresses()[0]).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            let mut answer = [0; 15];
            let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer)).await;
            read.expect("the server answers").unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200 OK");
        }
    });
}

#[test]
fn a_head_that_comes_byte_by_byte_is_given_up() {
    on_a_node(async {
        let server = serve(|plan| plan.timeouts.head = Duration::from_millis(100));
        let mut stream = TcpStream::connect(server.clear_addresses()[0]).await.unwrap();
        // What comes is right at every byte, however many there are before the server looks at its clock.
        stream.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
        let dripping = async {
            while stream.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, dripping).await.expect("the server closes");
        let log = server.log();
        let record = until("record", || log.take_connections().pop()).await;
        assert!(record.error.unwrap().contains("head"));
    });
}

#[test]
fn a_request_that_is_over_is_not_taken_for_a_slow_head() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|plan| plan.timeouts.head = Duration::from_millis(30));
            let connection = connect(&server, protocol, version).await;
            for request in [Request::post(NAME, "/7", 300_000), Request::get(NAME, "/7")] {
                let outcome = connection.request(request).finish().await;
                assert_eq!(outcome.body, 7, "{protocol}: {outcome:?}");
                tokio::time::sleep(Duration::from_millis(120)).await;
            }
            assert_eq!(get(&connection, "/8").await.body, 8, "{protocol}");
        }
    });
}

#[test]
fn silence_is_given_up_before_and_after_the_handshake() {
    on_a_node(async {
        let server = serve(|plan| {
            plan.timeouts.handshake = Duration::from_millis(50);
        });
        let mut silent = TcpStream::connect(server.addresses()[0]).await.unwrap();
        let mut byte = [0];
        let read = tokio::time::timeout(PATIENCE, silent.read(&mut byte)).await;
        assert_eq!(read.expect("the server closes").unwrap_or(0), 0);
        assert_eq!(server.counters().snapshot().failed_handshakes, 1);
        // A handshake on a busy machine takes longer than this silence may.
        let server = serve(|plan| {
            plan.timeouts.idle = Duration::from_millis(50);
            plan.timeouts.stall = Duration::from_millis(50);
        });
        for (protocol, version) in KINDS {
            let connection = connect(&server, protocol, version).await;
            tokio::time::timeout(PATIENCE, connection.closed()).await.expect("the server closes");
        }
    });
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    on_a_node(async {
        let server = serve(|plan| plan.max_connections = 2);
        let mut first = Some(connect(&server, Protocol::Http2, Version::Tls13).await);
        let second = connect(&server, Protocol::Http1, Version::Tls13).await;
        assert_eq!(get(&second, "/1").await.body, 1);
        let third = async {
            let third = connect(&server, Protocol::Http1, Version::Tls13).await;
            get(&third, "/2").await.body
        };
        let leave = async {
            tokio::task::yield_now().await;
            assert_eq!(server.counters().snapshot().open_connections, 2);
            drop(first.take());
        };
        assert_eq!(tokio::join!(third, leave).0, 2);
        // QUIC's are refused.
        let _fourth = connect(&server, Protocol::Http1, Version::Tls13).await;
        let refused = client(Version::Tls13).connect(&plan(&server, Protocol::Http3)).await;
        assert_eq!(refused.unwrap_err().name(), "quic");
    });
}

#[test]
fn datagrams_of_strangers_harm_nobody() {
    on_a_node(async {
        let server = serve(|_| {});
        let socket = UdpSocket::bind(loopback()).await.unwrap();
        let long_header = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 1194]].concat();
        for datagram in [&b""[..], b"x", &[0; 1200], &[0xff; 1200], &long_header, &[0x40; 30]] {
            socket.send_to(datagram, server.addresses()[0]).await.unwrap();
        }
        let connection = connect(&server, Protocol::Http3, Version::Tls13).await;
        assert_eq!(get(&connection, "/10").await.body, 10);
    });
}

/// A server in clear that sends `answer` and closes.
async fn play(answer: &'static [u8]) -> ConnectPlan {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(answer).await;
    });
    let mut plan = ConnectPlan::new(address, NAME, Protocol::Http1Clear);
    plan.timeouts.exchange = PATIENCE;
    plan
}

async fn ask(client: &Client, plan: &ConnectPlan) -> &'static str {
    let connection = client.connect(plan).await.unwrap();
    let outcome = connection.request(Request::get(NAME, "/1")).finish().await;
    outcome.failure.expect("a failure").name()
}

#[test]
fn servers_that_break_off_or_talk_nonsense_are_typed_failures() {
    on_a_node(async {
        let client = client(Version::Tls13);
        for (answer, name) in [
            (&b""[..], "broken"),
            (b"HTTP/1.1 200 OK\r\ncontent-le", "broken"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour", "broken"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "http"),
        ] {
            assert_eq!(ask(&client, &play(answer).await).await, name, "{}", answer.escape_ascii());
        }
        let mut expecting = Request::get(NAME, "/1");
        expecting.expected = Some(5);
        let plan = play(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfour").await;
        let connection = client.connect(&plan).await.unwrap();
        let failure = connection.request(expecting).finish().await.failure.unwrap();
        assert_eq!(failure.name(), "http", "{failure}");
    });
}

#[test]
fn an_address_without_a_server_is_refused_or_silent() {
    on_a_node(async {
        let free = TcpListener::bind(loopback()).await.unwrap().local_addr().unwrap();
        let client = client(Version::Tls13);
        let failure =
            client.connect(&ConnectPlan::new(free, NAME, Protocol::Http2)).await.unwrap_err();
        assert_eq!(failure.name(), "refused");
        let silent = std::net::UdpSocket::bind(loopback()).unwrap();
        let mut plan = ConnectPlan::new(silent.local_addr().unwrap(), NAME, Protocol::Http3);
        plan.timeouts.connect = Duration::from_millis(50);
        assert_eq!(client.connect(&plan).await.unwrap_err().name(), "timed-out");
    });
}

#[test]
fn plans_that_cannot_work_are_refused() {
    on_a_node(async {
        let client = client(Version::Tls12);
        let server = serve(|_| {});
        let refused = |plan: ConnectPlan| {
            let client = client.clone();
            async move { client.connect(&plan).await.unwrap_err().name() }
        };
        let new = |protocol| plan(&server, protocol);
        assert_eq!(refused(new(Protocol::Http3)).await, "plan");
        let small = web::Settings::CHROMIUM.with_windows(1000);
        let spdy = ConnectPlan { settings: small, ..new(Protocol::Spdy31) };
        assert_eq!(refused(spdy).await, "plan");
        assert_eq!(
            refused(ConnectPlan { protocols: vec![], ..new(Protocol::Http2) }).await,
            "plan"
        );
        let mixed = vec![Protocol::Http2, Protocol::Http3];
        assert_eq!(refused(ConnectPlan { protocols: mixed, ..new(Protocol::Http2) }).await, "plan");
        let name = "no name".to_owned();
        assert_eq!(refused(ConnectPlan { name, ..new(Protocol::Http2) }).await, "tls");
        let settings = web::Settings::MOD_SPDY;
        let plan = ConnectPlan { settings, ..new(Protocol::Http2) };
        assert_eq!(refused(plan).await, "unsupported");
        let mut nowhere = server_plan();
        (nowhere.tls, nowhere.clear) = (None, Vec::new());
        assert!(web::Server::start(nowhere).is_err());
    });
}
