//! A TLS server on the loopback interface, a thread for each connection.
#![allow(dead_code)] // Each test file uses its part.

mod custom;

pub use custom::*;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use load::{Control, Options, Report};
use tls::{Identity, KeyType, Library, ServerConfig, Session, Trust, Version};

/// What the server does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It answers each request, and keeps to `Connection: close`.
    Answers,
    /// It answers with this text, then closes.
    Says(&'static str),
    /// The same, without close_notify.
    BreaksOff(&'static str),
    /// It takes the connection and says nothing.
    Silent,
    /// It answers the ClientHello by something that is not TLS.
    Rubbish,
    /// It closes at once.
    Closes,
    /// It answers this many connections, and is gone then.
    DiesAfter(u64),
}

/// What it saw.
#[derive(Debug, Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub full: AtomicU64,
    pub resumed: AtomicU64,
    pub requests: AtomicU64,
    pub peers: Mutex<Vec<SocketAddr>>,
}

impl Seen {
    pub fn count(of: &AtomicU64) -> u64 {
        of.load(Ordering::SeqCst)
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub identity: Arc<Identity>,
    pub seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // It may wait for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A server of TLS 1.3 and 1.2.
pub fn serve(manner: Manner) -> Server {
    serve_with(manner, |_| {})
}

pub fn serve_with(manner: Manner, change: impl FnOnce(&mut ServerConfig)) -> Server {
    let identity =
        Arc::new(Identity::generate(KeyType::EcdsaP256, 2, &["server.test"]).expect("an identity"));
    let mut config = ServerConfig::new(Library::Rustls, Arc::clone(&identity));
    config.versions = vec![Version::Tls13, Version::Tls12];
    change(&mut config);
    let tls = Arc::new(tls::Server::new(&config).expect("a server"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let (all, ends) = (Arc::clone(&seen), Arc::clone(&stop));
    let thread = std::thread::spawn(move || {
        for socket in listener.incoming() {
            if ends.load(Ordering::SeqCst) {
                break;
            }
            let Ok(socket) = socket else { break };
            let number = all.connections.fetch_add(1, Ordering::SeqCst) + 1;
            all.peers.lock().expect("no panic").extend(socket.peer_addr());
            let (tls, seen) = (Arc::clone(&tls), Arc::clone(&all));
            std::thread::spawn(move || converse(socket, &tls, manner, &seen));
            if manner == Manner::DiesAfter(number) {
                break;
            }
        }
    });
    Server { address, identity, seen, stop, thread: Some(thread) }
}

/// One connection; whatever goes wrong ends it.
fn converse(mut socket: TcpStream, tls: &tls::Server, manner: Manner, seen: &Seen) -> Option<()> {
    socket.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let mut buffer = [0; 16 * 1024];
    match manner {
        Manner::Closes => return None,
        Manner::Silent => {
            while socket.read(&mut buffer).ok()? > 0 {}
            return None;
        }
        Manner::Rubbish => {
            let _ = socket.read(&mut buffer).ok()?;
            socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok()?;
            return None;
        }
        _ => {}
    }
    let mut session = tls.accept().ok()?;
    let (mut counted, mut text) = (false, Vec::new());
    loop {
        push(&mut *session, &mut socket)?;
        let len = socket.read(&mut buffer).ok().filter(|len| *len > 0)?;
        let read = session.read_tls(&buffer[..len]);
        if read.is_err() {
            let _ = push(&mut *session, &mut socket);
            return None;
        }
        if !session.is_handshaking() && !counted {
            counted = true;
            let of = if session.facts().resumed { &seen.resumed } else { &seen.full };
            of.fetch_add(1, Ordering::SeqCst);
        }
        session.receive(&mut text).ok()?;
        while let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = text.drain(..end + 4).collect();
            seen.requests.fetch_add(1, Ordering::SeqCst);
            let closes = String::from_utf8_lossy(&head).contains("Connection: close");
            let (answer, last) = match manner {
                Manner::Says(text) | Manner::BreaksOff(text) => (text, true),
                _ => ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", closes),
            };
            session.send(answer.as_bytes()).ok()?;
            if last && !matches!(manner, Manner::BreaksOff(_)) {
                session.close();
            }
            push(&mut *session, &mut socket)?;
            if last {
                return None;
            }
        }
    }
}

fn push(session: &mut dyn Session, socket: &mut TcpStream) -> Option<()> {
    let mut out = Vec::new();
    session.write_tls(&mut out).ok()?;
    socket.write_all(&out).ok()
}

/// Options for a server: 20 connections, one after the other, each with a request.
pub fn options(server: &Server) -> Options {
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

/// Runs to the end, and checks what must always add up.
pub fn run(options: &Options) -> Report {
    let report = load::run(options, &Control::default()).expect("the run can be made");
    let ended = report.completed + report.failed + report.unfinished;
    assert_eq!(report.started, ended, "every connection is accounted for: {report:#?}");
    let failures: u64 = report.request_failures.iter().map(|failure| failure.count).sum();
    assert_eq!(failures, report.requests_failed, "{report:#?}");
    let failures: u64 = report.failures.iter().map(|failure| failure.count).sum();
    assert_eq!(failures, report.failed, "{report:#?}");
    let handshakes = report.handshakes;
    let agreed: u64 = report.agreed.iter().map(|agreed| agreed.count).sum();
    assert_eq!(handshakes.full + handshakes.resumed, agreed, "{report:#?}");
    report
}
