//! Servers on rustls itself, or without TLS, that do as a test says.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use load::Options;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tls::{Identity, KeyType, Trust};
use wire::http2::{FrameType, HEADER_LEN, Header, PREFACE};

/// A stream with or without TLS.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A server that is gone when dropped.
pub struct Custom {
    pub address: SocketAddr,
    pub identity: Identity,
    /// Connections taken.
    pub connections: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Custom {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How TLS is spoken.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Without TLS.
    pub off: bool,
    pub alpn: Vec<&'static str>,
    /// The root of clients' certificates, if they are asked for one.
    pub clients: Option<Vec<u8>>,
    /// Clients may come without.
    pub optional: bool,
    pub no_tickets: bool,
    pub only_tls12: bool,
}

pub fn identity() -> Identity {
    Identity::generate(KeyType::EcdsaP256, 2, &["server.test"]).expect("an identity")
}

fn config(tls: &Tls, identity: &Identity) -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let versions =
        if tls.only_tls12 { vec![&rustls::version::TLS12] } else { vec![&rustls::version::TLS13] };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .expect("versions");
    let builder = match &tls.clients {
        None => builder.with_no_client_auth(),
        Some(root) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(root.clone())).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if tls.optional { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let chain = identity.chain_der().iter().map(|der| CertificateDer::from(der.clone())).collect();
    let key = PrivatePkcs8KeyDer::from(identity.private_key_der().to_vec());
    let mut config = builder.with_single_cert(chain, PrivateKeyDer::from(key)).expect("a key");
    config.alpn_protocols = tls.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    if tls.no_tickets {
        config.send_tls13_tickets = 0;
    }
    config
}

/// Serves each connection by `converse`, which is told its number.
pub fn serve_custom(
    tls: Tls,
    converse: impl Fn(&mut dyn Stream, u64) -> std::io::Result<()> + Send + Sync + 'static,
) -> Custom {
    let identity = identity();
    let config = Arc::new(config(&tls, &identity));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let stop = Arc::new(AtomicBool::new(false));
    let connections = Arc::new(AtomicU64::new(0));
    let (ends, counted, converse) =
        (Arc::clone(&stop), Arc::clone(&connections), Arc::new(converse));
    let thread = std::thread::spawn(move || {
        for socket in listener.incoming() {
            if ends.load(Ordering::SeqCst) {
                break;
            }
            let Ok(socket) = socket else { break };
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let (config, converse, off) = (Arc::clone(&config), Arc::clone(&converse), tls.off);
            std::thread::spawn(move || {
                let _ = socket.set_nodelay(true);
                let _ = socket.set_read_timeout(Some(Duration::from_secs(20)));
                if off {
                    let mut socket = socket;
                    let _ = converse(&mut socket, number);
                    return;
                }
                let Ok(connection) = ServerConnection::new(config) else { return };
                let mut stream = StreamOwned::new(connection, socket);
                let done = converse(&mut stream, number);
                // What it has to say, an alert too.
                stream.conn.send_close_notify();
                while stream.conn.wants_write() {
                    if stream.conn.write_tls(&mut stream.sock).is_err() {
                        break;
                    }
                }
                if done.is_err() {
                    return;
                }
                // The client is let read before a reset can overtake it.
                let _ = stream.sock.shutdown(std::net::Shutdown::Write);
                let mut rest = [0; 4096];
                while stream.sock.read(&mut rest).is_ok_and(|len| len > 0) {}
            });
        }
    });
    Custom { address, identity, connections, stop, thread: Some(thread) }
}

/// Options for it: 20 connections or requests, one connection at a time.
pub fn options_of(server: &Custom) -> Options {
    let mut options = Options::new(server.address, "server.test");
    options.trust = Trust::Roots(server.identity.roots());
    options.get("server.test", "/", 1);
    options.threads = 1;
    options.connections = 1;
    options.duration = None;
    options.count = Some(20);
    options.timeout = Duration::from_secs(20);
    options
}

/// The same over HTTP/2, so many requests at once.
pub fn options_http2(server: &Custom, streams: usize, tls: bool) -> Options {
    let mut options = options_of(server);
    options.plaintext = !tls;
    options.get_http2("server.test", "/", streams, None);
    options
}

/// Answers HTTP/1.1 requests by this text until the client closes.
pub fn answer(stream: &mut dyn Stream, text: &str) -> std::io::Result<()> {
    loop {
        read_request(stream)?;
        stream.write_all(text.as_bytes())?;
        stream.flush()?;
    }
}

pub fn read_request(stream: &mut dyn Stream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(())
}

/// The server's end of an HTTP/2 connection.
pub struct Frames<'a> {
    pub stream: &'a mut dyn Stream,
}

impl<'a> Frames<'a> {
    /// Takes the preface, and sends these settings.
    pub fn begin(stream: &'a mut dyn Stream, settings: &[u8]) -> std::io::Result<Frames<'a>> {
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface)?;
        assert_eq!(&preface, PREFACE);
        let mut frames = Frames { stream };
        frames.send(FrameType::SETTINGS, 0, 0, settings)?;
        Ok(frames)
    }

    pub fn send(
        &mut self,
        kind: FrameType,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        let header = Header { length: payload.len() as u32, kind, flags, stream };
        self.stream.write_all(&[&header.to_bytes()[..], payload].concat())?;
        self.stream.flush()
    }

    /// The next request's stream. Settings are acknowledged on the way.
    pub fn request(&mut self) -> std::io::Result<u32> {
        loop {
            let mut header = [0; HEADER_LEN];
            self.stream.read_exact(&mut header)?;
            let header = Header::parse(&header);
            let mut payload = vec![0; header.length as usize];
            self.stream.read_exact(&mut payload)?;
            match header.kind {
                FrameType::HEADERS => return Ok(header.stream),
                FrameType::SETTINGS if !header.has(1) => {
                    self.send(FrameType::SETTINGS, 1, 0, &[])?;
                }
                _ => {}
            }
        }
    }

    /// Answers by a head and a body.
    pub fn answer(&mut self, stream: u32) -> std::io::Result<()> {
        self.send(FrameType::HEADERS, 4, stream, &[0x88])?;
        self.send(FrameType::DATA, 1, stream, b"ok")
    }
}
