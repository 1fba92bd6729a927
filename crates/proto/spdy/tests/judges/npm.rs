//! npm's `spdy` 4.0.2, which scripts/node-judges.sh installs, over TLS 1.2 on loopback with header
//! compression.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use lab_test::{Need, skip};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use spdy::{
    Config, Event, FlowControl, Headers, Priority, ResetReason, Role, RstStatus, Session, StreamId,
    Version,
};

use crate::carrier::Carrier;

const LARGE: usize = 1 << 20;
const UPLOAD: usize = 300_000;

/// The body of these many bytes that both sides have.
fn body(bytes: usize) -> Bytes {
    b"abcdefg".iter().copied().cycle().take(bytes).collect()
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| (sum + u32::from(*byte)) % 65_521)
}

/// The modules, if they are installed.
fn modules() -> Option<PathBuf> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/judges/node_modules");
    modules.join("spdy").is_dir().then_some(modules)
}

/// Node on a script of this folder: the one beside the modules, or the system's.
fn node(modules: &Path, script: &str) -> Command {
    let own = modules.join(".bin/node");
    let mut node = Command::new(if own.is_file() { own } else { "node".into() });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judges");
    node.arg(folder.join(script)).env("JUDGES", modules).env("NODE_NO_WARNINGS", "1");
    node
}

struct Certificate {
    cert: rcgen::Certificate,
    key: rcgen::KeyPair,
}

fn certificate() -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    Certificate { cert: made.cert, key: made.signing_key }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A program that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    Headers::from_pairs(pairs.iter().copied()).unwrap()
}

/// What came of a request.
#[derive(Default)]
struct Response {
    headers: Option<Headers>,
    body: Vec<u8>,
}

struct Client {
    carrier: Carrier,
    responses: BTreeMap<StreamId, Response>,
}

impl Client {
    fn connect(port: u16, certificate: &Certificate, version: Version, config: Config) -> Client {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.cert.der().clone()).unwrap();
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![version.alpn().into()];
        let name = ServerName::try_from("localhost").unwrap();
        let tls = rustls::ClientConnection::new(Arc::new(tls), name).unwrap();
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let session = Session::new(Role::Client, version, config).unwrap();
        Client { carrier: Carrier::new(socket, tls.into(), session), responses: BTreeMap::new() }
    }

    fn ask(&mut self, method: &str, path: &str, fin: bool) -> StreamId {
        let request = headers(&[
            (":method", method),
            (":path", path),
            (":version", "HTTP/1.1"),
            (":host", "localhost"),
            (":scheme", "https"),
        ]);
        let stream = self.carrier.session.open(&request, Priority::HIGHEST, fin).unwrap();
        self.responses.insert(stream, Response::default());
        stream
    }

    /// Goes on until this many streams have ended.
    fn finish(&mut self, mut streams: usize) {
        while streams > 0 {
            for event in self.carrier.turn().expect("the connection lasts") {
                match event {
                    Event::Reply { stream, headers, fin } => {
                        self.responses.get_mut(&stream).unwrap().headers = Some(headers);
                        streams -= usize::from(fin);
                    }
                    Event::Data { stream, data, fin } => {
                        self.responses.get_mut(&stream).unwrap().body.extend_from_slice(&data);
                        self.carrier.session.consume(stream, data.len());
                        streams -= usize::from(fin);
                    }
                    Event::Settings { .. } | Event::Headers { .. } | Event::Writable { .. } => {}
                    // npm's server answers a WINDOW_UPDATE that crosses the end of its stream so, before
                    // its last, empty frame has gone out: the body is compared all the same.
                    Event::Reset {
                        reason: ResetReason::Peer(RstStatus::INVALID_STREAM), ..
                    } => {
                        streams -= 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn response(&self, stream: StreamId) -> &Response {
        let response = &self.responses[&stream];
        let status = response.headers.as_ref().unwrap().get(":status").unwrap();
        assert!(status.starts_with(b"200"), "{status:?}");
        response
    }
}

#[test]
fn our_client_and_npm_s_server() {
    let Some(modules) = modules() else {
        skip!(Need::Node, "npm's spdy is not installed (scripts/node-judges.sh)");
    };
    let certificate = certificate();
    let folder = tempfile::tempdir().unwrap();
    let (key, cert) = (folder.path().join("key.pem"), folder.path().join("cert.pem"));
    std::fs::write(&key, certificate.key.serialize_pem()).unwrap();
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    for version in Version::ALL {
        for (name, flow) in FlowControl::PRESETS {
            let mut server = node(&modules, "server.js");
            server.arg(version.alpn()).arg(&key).arg(&cert).stdout(Stdio::piped());
            let mut server = Running(server.spawn().unwrap());
            let mut port = String::new();
            BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
            let port = port.trim().parse().expect("the server prints its port");

            let config = Config { flow, send_queue: UPLOAD, ..Config::default() };
            let mut client = Client::connect(port, &certificate, version, config);
            let small = client.ask("GET", "/small", true);
            client.finish(1);
            let large = client.ask("GET", "/large", true);
            client.finish(1);
            let upload = client.ask("POST", "/upload", false);
            let mut data = body(UPLOAD);
            let taken = client.carrier.session.write(upload, &mut data, true).unwrap();
            assert_eq!(taken, UPLOAD);
            client.finish(1);
            let parallel = ["/a", "/b", "/c"].map(|path| (path, client.ask("GET", path, true)));
            client.finish(3);

            let what = format!("{version:?}, {name}");
            assert_eq!(client.response(small).body, b"hello /small", "{what}");
            assert!(client.response(large).body == body(LARGE), "{what}");
            let counted = format!("{UPLOAD} {}", sum(&body(UPLOAD)));
            assert_eq!(client.response(upload).body, counted.as_bytes(), "{what}");
            for (path, stream) in parallel {
                let response = client.response(stream);
                assert_eq!(response.body, format!("hello {path}").as_bytes(), "{what}");
                let told = response.headers.as_ref().unwrap().get("x-path");
                assert_eq!(told, Some(path.as_bytes()), "{what}");
            }
            let sent = client.carrier.session.counters().sent;
            assert!(sent.header_bytes_compressed * 2 < sent.header_bytes, "{what}: {sent:?}");
        }
    }
}

/// Serves one connection until its peer leaves: the requests' paths.
fn serve(listener: &TcpListener, tls: Arc<rustls::ServerConfig>, session: Session) -> Vec<String> {
    let (socket, _) = listener.accept().unwrap();
    let tls = rustls::ServerConnection::new(tls).unwrap();
    let mut carrier = Carrier::new(socket, tls.into(), session);
    let mut requests: BTreeMap<StreamId, (Headers, Vec<u8>)> = BTreeMap::new();
    let mut paths = vec![];
    while let Some(events) = carrier.turn() {
        for event in events {
            let ended = match event {
                Event::Opened { stream, headers, fin, .. } => {
                    requests.insert(stream, (headers, vec![]));
                    fin.then_some(stream)
                }
                Event::Data { stream, data, fin } => {
                    requests.get_mut(&stream).unwrap().1.extend_from_slice(&data);
                    carrier.session.consume(stream, data.len());
                    fin.then_some(stream)
                }
                Event::Failed(error) => panic!("{error}"),
                _ => None,
            };
            let Some(stream) = ended else { continue };
            let (request, received) = requests.remove(&stream).unwrap();
            let path = String::from_utf8(request.get(":path").unwrap().to_vec()).unwrap();
            assert_eq!(request.get("x-asked"), Some(path.as_bytes()));
            let reply = headers(&[(":status", "200"), (":version", "HTTP/1.1"), ("x-path", &path)]);
            carrier.session.reply(stream, &reply, false).unwrap();
            let mut answer = match path.as_str() {
                "/large" => body(LARGE),
                "/upload" => {
                    assert!(received == body(UPLOAD));
                    body(3)
                }
                _ => body(5),
            };
            carrier.session.write(stream, &mut answer, true).unwrap();
            assert!(answer.is_empty());
            paths.push(path);
        }
    }
    paths
}

#[test]
fn npm_s_client_and_our_server() {
    let Some(modules) = modules() else {
        skip!(Need::Node, "npm's spdy is not installed (scripts/node-judges.sh)");
    };
    let certificate = certificate();
    let key = PrivatePkcs8KeyDer::from(certificate.key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key.into())
        .unwrap();
    tls.alpn_protocols = Version::ALL.map(|version| version.alpn().into()).into();
    let tls = Arc::new(tls);
    for version in Version::ALL {
        for (name, flow) in FlowControl::PRESETS {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let config = Config { flow, send_queue: LARGE, ..Config::default() };
            let session = Session::new(Role::Server, version, config).unwrap();
            let tls = Arc::clone(&tls);
            let server = std::thread::spawn(move || serve(&listener, tls, session));
            let client =
                node(&modules, "client.js").arg(version.alpn()).arg(port.to_string()).output();
            let client = client.unwrap();
            let what = format!("{version:?}, {name}");
            let said = String::from_utf8_lossy(&client.stdout);
            let errors = String::from_utf8_lossy(&client.stderr);
            assert!(client.status.success(), "{what}: {said} {errors}");
            let line = |method: &str, path: &str, bytes: usize| {
                format!("{method} {path} 200 {path} {bytes} {}", sum(&body(bytes)))
            };
            let lines: BTreeSet<_> = said.lines().map(str::to_owned).collect();
            let expected = [
                line("GET", "/small", 5),
                line("GET", "/large", LARGE),
                line("POST", "/upload", 3),
                line("GET", "/a", 5),
                line("GET", "/b", 5),
                line("GET", "/c", 5),
            ];
            assert_eq!(lines, expected.into(), "{what}");
            assert_eq!(server.join().expect("the server").len(), 6, "{what}");
        }
    }
}
