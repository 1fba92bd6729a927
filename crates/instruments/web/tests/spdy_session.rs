//! SPDY by a session of the test's own, and by npm's `spdy`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use lab_test::{Need, skip};
use sha2::{Digest as _, Sha256};
use spdy::{Config, Event, FloodLimit, GoAwayStatus, Headers, Role, Session};
use tls::{Library, Trust, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use web::{Answer, Connection, Failure, Protocol, Request, RequestHead, Server, Settings};

use crate::common::*;

/// A session in TLS.
struct Raw {
    stream: tokio_rustls::client::TlsStream<TcpStream>,
    session: Session,
}

impl Raw {
    async fn new(server: &Server, version: spdy::Version) -> Raw {
        let trust = Trust::Roots(identity().roots());
        let config = tls::ClientConfig::new(Library::Rustls, NAME, trust);
        let mut config = tls::direct::client_config(&config).unwrap();
        config.alpn_protocols = vec![version.alpn().into()];
        let stream = TcpStream::connect(server.addresses()[0]).await.unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(NAME.try_into().unwrap(), stream).await.unwrap();
        // The answers to a flood are not one.
        let flood = FloodLimit { burst: u32::MAX, per_second: u32::MAX };
        let config = Config { flood, ..Config::default() };
        let session = Session::new(Role::Client, version, config).unwrap();
        Raw { stream, session }
    }

    /// Sends `bytes` behind what waits, and takes all events until the server closes or `end`.
    async fn events(&mut self, bytes: &[u8], end: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut out = Vec::new();
        self.session.write_to(&mut out, usize::MAX);
        out.extend_from_slice(bytes);
        // The server may close before all is read.
        let _ = self.stream.write_all(&out).await;
        let mut events = Vec::new();
        loop {
            let mut buffer = vec![0; 16_384];
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer));
            let count = read.await.expect("the server answers or closes").unwrap_or(0);
            buffer.truncate(count);
            self.session.receive(buffer.into());
            while let Some(event) = self.session.poll_event(conn::now()) {
                events.push(event);
            }
            if count == 0 || events.iter().any(&end) {
                return events;
            }
        }
    }
}

#[test]
fn what_is_no_spdy_ends_its_connection_with_goaway() {
    on_a_node(async {
        let server = serve(|_| {});
        let log = server.log();
        let other = connect(&server, Protocol::Spdy31, Version::Tls13).await;
        let ping = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
        // A frame for stream 0 (§2.2.2), another version (§2.2.1), a flood.
        let data_of_zero = [0, 0, 0, 0, 0, 0, 0, 1, b'x'];
        for bytes in [&data_of_zero[..], &[0xff; 100], &ping.repeat(5000)] {
            for version in spdy::Version::ALL {
                let mut raw = Raw::new(&server, version).await;
                let is_end = |event: &Event| matches!(event, Event::GoAway { .. });
                let events = raw.events(bytes, is_end).await;
                let status = events.iter().find_map(|event| match event {
                    Event::GoAway { status, .. } => Some(*status),
                    _ => None,
                });
                assert_eq!(status, Some(GoAwayStatus::PROTOCOL_ERROR), "{events:?}");
                drop(raw);
                let record = until("record", || log.take_connections().pop()).await;
                assert!(record.error.unwrap().starts_with("spdy"));
            }
        }
        assert_eq!(get(&other, "/10").await.body, 10);
    });
}

#[test]
fn a_request_without_all_of_its_headers_is_answered_by_400() {
    on_a_node(async {
        let server = serve(|_| {});
        for version in spdy::Version::ALL {
            let mut raw = Raw::new(&server, version).await;
            let headers = [(":method", "GET"), (":path", "/1"), (":version", "HTTP/1.1")];
            let headers = Headers::from_pairs(headers).unwrap();
            let priority = spdy::Priority::HIGHEST;
            for fin in [true, false] {
                let stream = raw.session.open(&headers, priority, fin).unwrap();
                let of = |event: &Event| matches!(event, Event::Reply { stream: of, .. } if *of == stream);
                let events = raw.events(b"", of).await;
                let reply = events.iter().find_map(|event| match event {
                    Event::Reply { headers, fin, .. } => Some((headers.get(":status"), *fin)),
                    _ => None,
                });
                assert_eq!(reply, Some((Some(&b"400"[..]), true)), "{events:?}");
            }
        }
        assert_eq!(server.counters().snapshot().requests, 0);
    });
}

#[test]
fn presets_are_announced_as_they_are() {
    on_a_node(async {
        for settings in [Settings::CHROMIUM, Settings::MOD_SPDY, Settings::GOOGLE, Settings::OFF] {
            let server = serve(|plan| {
                plan.settings = settings;
                // What h2 and quinn cannot keep is not offered.
                let protocols = vec![Protocol::Spdy31, Protocol::Spdy3];
                plan.tls.as_mut().unwrap().protocols = protocols;
            });
            for version in spdy::Version::ALL {
                let mut raw = Raw::new(&server, version).await;
                raw.events(b"", |event| matches!(event, Event::Settings { .. })).await;
                let request = [
                    (":method", "POST"),
                    (":path", "/1"),
                    (":version", "HTTP/1.1"),
                    (":host", NAME),
                    (":scheme", "https"),
                ];
                let request = Headers::from_pairs(request).unwrap();
                let stream = raw.session.open(&request, spdy::Priority::HIGHEST, false).unwrap();
                let window = raw.session.send_window(Some(stream));
                assert_eq!(window, Some(settings.stream_window.into()));
                let of_session = match version {
                    spdy::Version::V3 => None,
                    spdy::Version::V3_1 => Some(settings.connection_window.into()),
                };
                // The session's WINDOW_UPDATE is in the same write as SETTINGS.
                assert_eq!(raw.session.send_window(None), of_session, "{version:?}");
            }
        }
    });
}

#[test]
fn the_urgency_is_the_frame_s_priority() {
    on_a_node(async {
        for protocol in [Protocol::Spdy3, Protocol::Spdy31] {
            let server = serve(|plan| {
                plan.site = Arc::new(|request: &RequestHead<'_>| {
                    assert!(request.header("priority").is_none());
                    Answer::new(request.priority().urgency.into())
                });
            });
            let connection = connect(&server, protocol, Version::Tls13).await;
            for urgency in 0..8 {
                let priority = Some(web::Priority { urgency, incremental: false });
                let request = Request { priority, ..Request::get(NAME, "/") };
                assert_eq!(connection.request(request).finish().await.body, u64::from(urgency));
            }
            assert_eq!(get(&connection, "/").await.body, 3);
            let logged: Vec<u8> =
                server.log().take_streams().iter().map(|stream| stream.urgency).collect();
            assert_eq!(logged, [0, 1, 2, 3, 4, 5, 6, 7, 3]);
        }
    });
}

/// npm's modules, if they are installed.
pub fn modules() -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/judges/node_modules");
    modules.join("spdy").is_dir().then_some(modules)
}

/// Node on a script of the judges of `spdy`.
pub fn node(modules: &Path, script: &str) -> Command {
    let own = modules.join(".bin/node");
    let mut node = Command::new(if own.is_file() { own } else { "node".into() });
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/spdy/tests/judges");
    node.arg(scripts.join(script)).env("JUDGES", modules).env("NODE_NO_WARNINGS", "1");
    node.stdout(Stdio::piped());
    node
}

/// A body of this crate: 64 KiB of a generator's bytes, again and again.
pub fn body(bytes: usize) -> Vec<u8> {
    let mut state: u64 = 1;
    let block: Vec<u8> = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(64 * 1024)
    .collect();
    let body: Vec<u8> = block.iter().copied().cycle().take(bytes).collect();
    assert_eq!(<[u8; 32]>::from(Sha256::digest(&body)), web::digest(bytes as u64));
    body
}

/// The sum that the scripts make of a body.
pub fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| (sum + u32::from(*byte)) % 65_521)
}

/// A program that ends with its owner.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn presets() -> [Settings; 4] {
    [Settings::CHROMIUM, Settings::MOD_SPDY, Settings::GOOGLE, Settings::OFF]
}

#[test]
fn npm_s_client_loads_from_our_server() {
    let Some(modules) = modules() else {
        skip!(Need::Node, "npm's spdy is not installed (scripts/node-judges.sh)");
    };
    const LARGE: usize = 1 << 20;
    on_a_node(async {
        for (protocol, settings) in spdy_presets() {
            let server = serve(|plan| {
                plan.settings = settings;
                plan.tls.as_mut().unwrap().protocols = vec![Protocol::Spdy31, Protocol::Spdy3];
                plan.site = Arc::new(|request: &RequestHead<'_>| {
                    assert_eq!(request.header("x-asked"), Some(request.path()));
                    let length = if request.path() == "/large" { LARGE as u64 } else { 5 };
                    let path = HeaderValue::try_from(request.path()).unwrap();
                    let headers = vec![(HeaderName::from_static("x-path"), path)];
                    Answer { headers, ..Answer::new(length) }
                });
            });
            let alpn = String::from_utf8(protocol.alpn().to_vec()).unwrap();
            let mut client = node(&modules, "client.js");
            client.arg(&alpn).arg(server.addresses()[0].port().to_string());
            let mut client = Running(client.spawn().unwrap());
            let output = client.0.stdout.take().unwrap();
            let said =
                tokio::task::spawn_blocking(move || std::io::read_to_string(output).unwrap());
            let said = said.await.unwrap();
            let line = |method: &str, path: &str, bytes: usize| {
                format!("{method} {path} 200 {path} {bytes} {}", sum(&body(bytes)))
            };
            let expected: BTreeSet<String> = ["/small", "/a", "/b", "/c"]
                .map(|path| line("GET", path, 5))
                .into_iter()
                .chain([line("GET", "/large", LARGE), line("POST", "/upload", 5)])
                .collect();
            let lines: BTreeSet<String> = said.lines().map(str::to_owned).collect();
            assert_eq!(lines, expected, "{protocol} {settings:?}");
            let streams = server.log().take_streams();
            let received: u64 = streams.iter().map(|stream| stream.received).sum();
            assert_eq!((streams.len(), received), (6, 300_000), "{protocol} {settings:?}");
        }
    });
}

fn spdy_presets() -> impl Iterator<Item = (Protocol, Settings)> {
    let protocols = [Protocol::Spdy3, Protocol::Spdy31];
    protocols.into_iter().flat_map(|protocol| presets().map(|settings| (protocol, settings)))
}

/// Asserts that a response is 200 with this body.
async fn assert_loads(connection: &Connection, request: Request, body: &[u8]) {
    let outcome = connection.request(Request { digest: true, ..request }).finish().await;
    assert_eq!((outcome.status(), outcome.body), (Some(200), body.len() as u64), "{outcome:?}");
    match &outcome.failure {
        None => assert_eq!(outcome.digest, Some(Sha256::digest(body).into())),
        // npm's server answers a WINDOW_UPDATE that crosses the end of its stream by RST_STREAM, which
        // overtakes the last frame. Nothing of the body is missing then, and only its end is not said.
        Some(Failure::StreamReset { code, peer: true }) => {
            assert_eq!(code, "INVALID_STREAM");
            assert!(body.len() > 65_536, "{outcome:?}");
        }
        Some(failure) => panic!("{failure}"),
    }
}

#[test]
fn our_client_loads_from_npm_s_server() {
    let Some(modules) = modules() else {
        skip!(Need::Node, "npm's spdy is not installed (scripts/node-judges.sh)");
    };
    let folder = tempfile::tempdir().unwrap();
    let (key, cert) = (folder.path().join("key.pem"), folder.path().join("cert.pem"));
    std::fs::write(&key, identity().private_key_pem().unwrap()).unwrap();
    std::fs::write(&cert, identity().chain_pem().unwrap()).unwrap();
    let large: Vec<u8> = b"abcdefg".iter().copied().cycle().take(1 << 20).collect();
    on_a_node(async {
        for (protocol, settings) in spdy_presets() {
            let alpn = String::from_utf8(protocol.alpn().to_vec()).unwrap();
            let mut server = node(&modules, "server.js");
            server.arg(&alpn).arg(&key).arg(&cert);
            let mut server = Running(server.spawn().unwrap());
            let mut port = String::new();
            BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
            let port: u16 = port.trim().parse().expect("the server prints its port");

            let address = ([127, 0, 0, 1], port).into();
            let mut plan = web::ConnectPlan::new(address, NAME, protocol);
            plan.settings = settings;
            let connection = client(Version::Tls12).connect(&plan).await.unwrap();
            assert_loads(&connection, Request::get(NAME, "/small"), b"hello /small").await;
            assert_loads(&connection, Request::get(NAME, "/large"), &large).await;
            let counted = format!("300000 {}", sum(&body(300_000)));
            let upload = Request::post(NAME, "/upload", 300_000);
            assert_loads(&connection, upload, counted.as_bytes()).await;
            let hello = ["/a", "/b", "/c"].map(|path| (path, format!("hello {path}")));
            let asked = hello.iter().map(|(path, hello)| {
                assert_loads(&connection, Request::get(NAME, path), hello.as_bytes())
            });
            futures_util::future::join_all(asked).await;
        }
    });
}
