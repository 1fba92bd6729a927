//! Server push over SPDY and HTTP/2.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lab_test::{Need, program, skip};
use spdy::{Config, Event, Headers, Priority, ResetReason, Role, RstStatus, Session};
use tls::{Library, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use web::{
    Answer, Connection, Outcome, Promise, Protocol, PushLimits, Request, RequestHead, Server, What,
};

use crate::common::*;
use crate::spdy_session::{Running, body, modules, node, sum};

const PUSHING: [Protocol; 3] = [Protocol::Spdy3, Protocol::Spdy31, Protocol::Http2];

/// What is pushed with `/page`, in this order.
const PUSHED: [(&str, u64); 3] = [("/3000", 3000), ("/200000", 200_000), ("/0", 0)];
/// Bytes of `/page`.
const PAGE: u64 = 50_000;

/// As the tests' other site, and `/page` with pushes.
fn pushing_site(request: &RequestHead<'_>) -> Answer {
    if request.path() != "/page" {
        return site(request);
    }
    let promise = |(path, _): (&str, u64)| Promise { path: path.to_owned(), urgency: 3 };
    Answer { promises: PUSHED.map(promise).into(), ..Answer::new(PAGE) }
}

fn pushing_server() -> Server {
    serve(|plan| plan.site = Arc::new(pushing_site))
}

async fn taking(server: &Server, protocol: Protocol, limits: Option<PushLimits>) -> Connection {
    let mut plan = plan(server, protocol);
    plan.push = limits;
    client(Version::Tls13).connect(&plan).await.unwrap()
}

/// What came of a request, and of each push with it by its path.
struct Came {
    body: u64,
    failure: Option<web::Failure>,
    pushes: Vec<(String, Outcome)>,
}

/// Asks, and takes all that is pushed.
async fn ask(connection: &Connection, path: &str) -> Came {
    let request = Request { digest: true, ..Request::get(NAME, path) };
    let mut exchange = connection.request(request);
    let mut came = Came { body: 0, failure: None, pushes: Vec::new() };
    let mut pushes = Vec::new();
    while let Some(event) = exchange.next().await {
        match event.what {
            What::Pushed(push) => {
                assert_eq!(came.body, 0, "a promise comes before what refers to it");
                assert_eq!(push.authority(), NAME);
                pushes.push(push);
            }
            What::Data(bytes) => came.body += bytes,
            What::Failed(failure) => came.failure = Some(failure),
            What::Sent | What::Uploaded(_) | What::Head(_) | What::End => {}
        }
    }
    for push in pushes {
        let path = push.path().to_owned();
        came.pushes.push((path, push.into_exchange().finish().await));
    }
    came
}

#[test]
fn what_is_pushed_comes_whole_without_a_request() {
    on_a_node(async {
        for protocol in PUSHING {
            let server = pushing_server();
            let connection = taking(&server, protocol, Some(PushLimits::default())).await;
            let came = ask(&connection, "/page").await;
            assert!(came.failure.is_none() && came.body == PAGE, "{protocol}: {:?}", came.failure);
            assert_eq!(came.pushes.len(), PUSHED.len(), "{protocol}");
            for ((path, outcome), (asked, length)) in came.pushes.iter().zip(PUSHED) {
                assert_eq!((path.as_str(), outcome.body), (asked, length), "{protocol}");
                assert!(outcome.failure.is_none(), "{protocol}: {outcome:?}");
                assert_eq!(outcome.status(), Some(200), "{protocol}");
                assert_eq!(outcome.digest, Some(web::digest(length)), "{protocol} {path}");
                assert!(outcome.sent.is_none(), "nothing was asked for");
            }
            let counted = server.counters().snapshot();
            let pushed: u64 = PUSHED.iter().map(|(_, length)| length).sum();
            assert_eq!((counted.requests, counted.pushed), (1, 3), "{protocol}");
            assert_eq!(counted.pushed_bytes, pushed, "{protocol}");
            assert_eq!(counted.body_bytes_sent, pushed + PAGE, "{protocol}");
            let streams = server.log().take_streams();
            let of_push = streams.iter().filter(|stream| stream.pushed).count();
            assert_eq!((streams.len(), of_push), (4, 3), "{protocol}: {streams:?}");
            // The connection goes on.
            assert_eq!(get(&connection, "/10").await.body, 10, "{protocol}");
        }
    });
}

#[test]
fn a_client_that_takes_no_push_says_so_and_gets_none() {
    on_a_node(async {
        for protocol in PUSHING {
            let server = pushing_server();
            let connection = taking(&server, protocol, None).await;
            let came = ask(&connection, "/page").await;
            assert!(came.failure.is_none() && came.pushes.is_empty(), "{protocol}");
            assert_eq!(came.body, PAGE, "{protocol}");
            let counted = server.counters().snapshot();
            assert_eq!((counted.requests, counted.pushed), (1, 0), "{protocol}");
        }
        // Protocols without push pass promises over.
        for protocol in [Protocol::Http1Clear, Protocol::Http1, Protocol::Http3] {
            let server = pushing_server();
            let connection = taking(&server, protocol, Some(PushLimits::default())).await;
            let came = ask(&connection, "/page").await;
            assert!(came.failure.is_none() && came.pushes.is_empty(), "{protocol}");
            assert_eq!(server.counters().snapshot().pushed, 0, "{protocol}");
        }
    });
}

/// Who drops a push has it cancelled: the server stops, and the connection goes on.
#[test]
fn a_push_that_is_dropped_is_cancelled() {
    const LARGE: u64 = 50_000_000;
    on_a_node(async {
        for protocol in PUSHING {
            let server = serve(|plan| {
                plan.site = Arc::new(|request: &RequestHead<'_>| {
                    let path = format!("/{LARGE}");
                    match request.path() {
                        "/page" => {
                            let promises = vec![Promise { path, urgency: 3 }];
                            Answer { promises, ..Answer::new(PAGE) }
                        }
                        _ => site(request),
                    }
                });
            });
            let limits = PushLimits { bytes: 2 * LARGE, ..PushLimits::default() };
            let connection = taking(&server, protocol, Some(limits)).await;
            // `finish` takes none of it.
            let outcome = get(&connection, "/page").await;
            assert_eq!((outcome.body, outcome.failure.is_none()), (PAGE, true), "{protocol}");
            let log = server.log();
            let mut pushed = None;
            until("record of the push", || {
                pushed = log.take_streams().into_iter().find(|stream| stream.pushed);
                pushed.as_ref().map(|_| ())
            })
            .await;
            let pushed = pushed.unwrap();
            assert_eq!(pushed.finish, web::Finish::Reset("CANCEL".to_owned()), "{protocol}");
            assert!(pushed.sent < LARGE, "{protocol}: {}", pushed.sent);
            assert_eq!(get(&connection, "/10").await.body, 10, "{protocol}");
        }
    });
}

/// A server that pushes without end: no more than the limits allow is taken, in number and in bytes.
#[test]
fn pushes_beyond_the_limits_are_refused_and_the_connection_goes_on() {
    on_a_node(async {
        for protocol in PUSHING {
            let server = serve(|plan| {
                plan.site = Arc::new(|request: &RequestHead<'_>| {
                    let promise = |length| Promise { path: format!("/{length}"), urgency: 3 };
                    match request.path() {
                        "/many" => {
                            Answer { promises: (100..400).map(promise).collect(), ..Answer::new(9) }
                        }
                        "/large" => {
                            Answer { promises: vec![promise(5000), promise(10)], ..Answer::new(9) }
                        }
                        _ => site(request),
                    }
                });
            });
            let limits = PushLimits { streams: 4, bytes: 1000 };
            let connection = taking(&server, protocol, Some(limits)).await;
            let came = ask(&connection, "/many").await;
            assert!(came.failure.is_none() && came.body == 9, "{protocol}: {:?}", came.failure);
            assert!((1..=4).contains(&came.pushes.len()), "{protocol}: {}", came.pushes.len());
            assert!(came.pushes.iter().all(|(_, push)| push.failure.is_none()), "{protocol}");
            let came = ask(&connection, "/large").await;
            let [(_, large), (_, small)] = came.pushes.as_slice() else {
                panic!("{protocol}: {:?}", came.pushes)
            };
            assert_eq!(large.failure.as_ref().unwrap().name(), "too-large", "{protocol}");
            assert!(large.body <= 1000 && small.failure.is_none(), "{protocol}: {small:?}");
            assert_eq!(get(&connection, "/10").await.body, 10, "{protocol}");
        }
    });
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    Headers::from_pairs(pairs.iter().copied()).unwrap()
}

/// A SPDY server that has not heard how many streams the client takes, and pushes 50 of them with a
/// response. How many the client refused.
async fn push_regardless(listener: TcpListener, version: spdy::Version) -> usize {
    let config = tls::ServerConfig {
        alpn: vec![version.alpn().into()],
        ..tls::ServerConfig::new(Library::Rustls, identity())
    };
    let acceptor = TlsAcceptor::from(tls::direct::server_config(&config).unwrap());
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = acceptor.accept(stream).await.unwrap();
    let mut session = Session::new(Role::Server, version, Config::default()).unwrap();
    // The client's SETTINGS come first: they are not read.
    let mut head = [0; 8];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[..4], [0x80, 3, 0, 4]);
    let length = u32::from_be_bytes([0, head[5], head[6], head[7]]);
    stream.read_exact(&mut vec![0; length as usize]).await.unwrap();
    let (mut refused, mut asked) = (0, 0);
    loop {
        let mut buffer = vec![0; 16_384];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap();
        let count = read.unwrap_or(0);
        if count == 0 {
            return refused;
        }
        buffer.truncate(count);
        session.receive(buffer.into());
        while let Some(event) = session.poll_event(conn::now()) {
            match event {
                Event::Opened { stream: id, .. } => {
                    asked += 1;
                    for number in 0..if asked == 1 { 50 } else { 0 } {
                        let path = format!("/{number}");
                        let pushed = [
                            (":scheme", "https"),
                            (":host", NAME),
                            (":path", &path),
                            (":status", "200"),
                            (":version", "HTTP/1.1"),
                        ];
                        let pushed = headers(&pushed);
                        let push = session.push(id, &pushed, Priority::LOWEST, false).unwrap();
                        // Those that are refused stay open, so that it is heard of.
                        let is_whole = number < 4;
                        let mut body = Bytes::from_static(b"12345");
                        session.write(push, &mut body, is_whole).unwrap();
                    }
                    let reply = headers(&[(":status", "200"), (":version", "HTTP/1.1")]);
                    session.reply(id, &reply, false).unwrap();
                    session.write(id, &mut Bytes::from_static(b"page"), true).unwrap();
                }
                Event::Reset { reason, .. } => {
                    assert_eq!(reason, ResetReason::Peer(RstStatus::REFUSED_STREAM));
                    refused += 1;
                }
                _ => {}
            }
        }
        let mut out = Vec::new();
        while session.wants_write() {
            session.write_to(&mut out, usize::MAX);
        }
        stream.write_all(&out).await.unwrap();
    }
}

#[test]
fn a_spdy_server_that_pushes_regardless_is_refused() {
    on_a_node(async {
        for (protocol, version) in
            [(Protocol::Spdy3, spdy::Version::V3), (Protocol::Spdy31, spdy::Version::V3_1)]
        {
            let listener = TcpListener::bind(loopback()).await.unwrap();
            let address = listener.local_addr().unwrap();
            let serving = tokio::task::spawn_local(push_regardless(listener, version));
            let mut plan = web::ConnectPlan::new(address, NAME, protocol);
            plan.push = Some(PushLimits { streams: 4, bytes: 1000 });
            let connection = client(Version::Tls13).connect(&plan).await.unwrap();
            let came = ask(&connection, "/page").await;
            assert!(came.failure.is_none() && came.body == 4, "{protocol}: {:?}", came.failure);
            assert_eq!(came.pushes.len(), 4, "{protocol}");
            let whole = |push: &Outcome| push.failure.is_none() && push.body == 5;
            assert!(came.pushes.iter().all(|(_, push)| whole(push)), "{protocol}");
            // The connection goes on; its end ends the server.
            assert_eq!(get(&connection, "/again").await.body, 4, "{protocol}");
            drop(connection);
            let refused = tokio::time::timeout(PATIENCE, serving).await.unwrap().unwrap();
            assert_eq!(refused, 46, "{protocol}");
        }
    });
}

#[test]
fn npm_s_client_takes_what_our_spdy_pushes() {
    let Some(modules) = modules() else {
        skip!(Need::Node, "npm's spdy is not installed (scripts/node-judges.sh)");
    };
    on_a_node(async {
        for protocol in [Protocol::Spdy3, Protocol::Spdy31] {
            let server = pushing_server();
            let alpn = String::from_utf8(protocol.alpn().to_vec()).unwrap();
            let mut client = node(&modules, "push.js");
            let port = server.addresses()[0].port().to_string();
            client.arg(&alpn).arg(port).arg("/page").arg(PUSHED.len().to_string());
            let mut client = Running(client.spawn().unwrap());
            let output = client.0.stdout.take().unwrap();
            let read = move || std::io::read_to_string(output).unwrap();
            let said = tokio::task::spawn_blocking(read).await.unwrap();
            let line = |what: String, bytes: u64| {
                format!("{what} {bytes} {}", sum(&body(usize::try_from(bytes).unwrap())))
            };
            let pushes = PUSHED.map(|(path, bytes)| line(format!("push GET {path}"), bytes));
            let mut expected: Vec<String> = pushes.into_iter().collect();
            expected.push(line("/page 200".to_owned(), PAGE));
            expected.sort();
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.sort();
            assert_eq!(lines, expected, "{protocol}");
            assert_eq!(server.counters().snapshot().requests, 1, "{protocol}");
        }
    });
}

#[test]
fn nghttp_takes_what_our_http2_pushes() {
    let Some(nghttp) = program("nghttp") else {
        skip!(Need::Nghttp, "nghttp is not installed (nghttp2-client)")
    };
    on_a_node(async {
        let server = pushing_server();
        let url = format!("https://{}/page", server.addresses()[0]);
        let run = move || {
            let mut nghttp = Command::new(nghttp);
            nghttp.args(["-n", "-v", &url]).stdin(Stdio::null()).output().unwrap()
        };
        let output = tokio::task::spawn_blocking(run).await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert_eq!(text.matches("recv PUSH_PROMISE frame").count(), PUSHED.len(), "{text}");
        assert_eq!(text.matches(":status: 200").count(), PUSHED.len() + 1, "{text}");
        for wrong in ["PROTOCOL_ERROR", "FLOW_CONTROL_ERROR", "[ERROR]", "INVALID", "RST_STREAM"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
        let counted = server.counters().snapshot();
        let pushed: u64 = PUSHED.iter().map(|(_, length)| length).sum();
        assert_eq!((counted.requests, counted.pushed), (1, 3));
        assert_eq!(counted.body_bytes_sent, pushed + PAGE);
    });
}

/// A request that is cancelled takes with it what was pushed with it and nobody took.
#[test]
fn a_request_that_is_dropped_cancels_its_pushes() {
    on_a_node(async {
        for protocol in PUSHING {
            let server = serve(|plan| {
                plan.site = Arc::new(|request: &RequestHead<'_>| match request.path() {
                    "/page" => {
                        let promise = Promise { path: "/50000000".to_owned(), urgency: 3 };
                        Answer { promises: vec![promise], ..Answer::new(50_000_000) }
                    }
                    _ => site(request),
                });
            });
            let limits = PushLimits { bytes: u64::MAX, ..PushLimits::default() };
            let connection = taking(&server, protocol, Some(limits)).await;
            let mut exchange = connection.request(Request::get(NAME, "/page"));
            // Its events wait: neither promise nor body is taken.
            exchange.next().await.unwrap();
            let pushed = || (server.counters().snapshot().pushed == 1).then_some(());
            until("promise", pushed).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            drop(exchange);
            let log = server.log();
            let mut ended = 0;
            until("two records", || {
                ended += log.take_streams().len();
                (ended == 2).then_some(())
            })
            .await;
            assert_eq!(get(&connection, "/10").await.body, 10, "{protocol}");
        }
    });
}
