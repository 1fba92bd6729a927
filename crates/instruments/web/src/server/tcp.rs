//! Connections over TCP: accepted, secured, handed to the protocol that was negotiated.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use conn::now;
use socket2::{Domain, SockRef, Type};
use sslmtcp::SslmTcpListener;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;
use units::Time;

use super::link::Link;
use super::{Shared, h1, h2, spdy};
use crate::counters::{Held, connection_memory};
use crate::log::{ConnectionRecord, Sample};
use crate::meter::Metered;
use crate::session::SessionStream;
use crate::socket::Socket;
use crate::stream::Stream;
use crate::tcp_stalls::TcpStalls;
use crate::user_tcp::UserStream;
use crate::{Failure, Protocol, TcpSettings};

/// How long to wait before accepting again after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// What failures of a handshake say that they happened during.
const HANDSHAKE: &str = "making the TLS handshake";
/// Most readings kept of one connection.
pub(super) const MAX_SAMPLES: usize = 10_000;

/// Listens at `address`, and only there: the listener, and where it is.
pub(super) fn listen(
    address: SocketAddr,
    settings: &TcpSettings,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |call| move |error| Failure::from_io(call, "opening the socket", &error);
    let socket =
        socket2::Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)
            .map_err(failed("socket"))?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(failed("setsockopt IPV6_V6ONLY"))?;
    }
    // A server that is started again must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true).map_err(failed("setsockopt SO_REUSEADDR"))?;
    // Accepted sockets inherit the options.
    settings.apply(SockRef::from(&socket))?;
    settings.fast_open.set_on_listener(socket.as_fd())?;
    socket.bind(&address.into()).map_err(failed("bind"))?;
    socket.listen(BACKLOG).map_err(failed("listen"))?;
    let listener = TcpListener::from_std(socket.into()).map_err(failed("listen"))?;
    let local = listener.local_addr().map_err(failed("getsockname"))?;
    Ok((listener, local))
}

/// What makes a server's handshakes over the kernel's TCP.
#[derive(Clone)]
pub(super) enum Acceptor {
    /// tokio-rustls, where no early data is taken.
    Rustls(TlsAcceptor),
    /// A session of either library, which takes early data.
    Session(tls::Server),
}

impl Acceptor {
    /// Of this configuration: sessions only where tokio-rustls lacks what is asked for.
    pub(super) fn new(config: &tls::ServerConfig) -> Result<Acceptor, Failure> {
        if config.max_early_data > 0 || config.library != tls::Library::Rustls {
            let server = tls::Server::new(config).map_err(conn::Failure::from)?;
            return Ok(Acceptor::Session(server));
        }
        let config = tls::direct::server_config(config).map_err(conn::Failure::from)?;
        Ok(Acceptor::Rustls(TlsAcceptor::from(config)))
    }

    /// The handshake on a socket: the stream, what it gave, and when it was over; with early data it is not yet.
    async fn accept(&self, socket: Socket) -> Result<(Stream, tls::Facts, Option<Time>), Failure> {
        let failed = |error| Failure::from_io("accept", HANDSHAKE, &error);
        match self {
            Acceptor::Rustls(acceptor) => {
                let stream = acceptor.accept(socket).await.map_err(failed)?;
                let session = stream.get_ref().1;
                let server_name = session.server_name().map(str::to_owned);
                let facts = tls::Facts { server_name, ..tls::direct::facts(session) };
                Ok((Stream::Server(Box::new(stream)), facts, Some(now())))
            }
            Acceptor::Session(server) => {
                let session = server.accept().map_err(conn::Failure::from)?;
                let stream = SessionStream::accept(socket, session).await.map_err(failed)?;
                let secured = (!stream.is_handshaking()).then(now);
                let facts = stream.facts();
                Ok((Stream::Session(Box::new(stream)), facts, secured))
            }
        }
    }
}

/// Accepts connections until it is dropped, no more at once than the plan allows.
pub(super) async fn accept(listener: TcpListener, tls: Option<Acceptor>, shared: Rc<Shared>) {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Beyond the limit one connection waits here, and the others in the backlog.
        let Ok(slot) = Arc::clone(&shared.slots).acquire_owned().await else { return };
        let (tls, shared) = (tls.clone(), Rc::clone(&shared));
        spawn_local(async move {
            // The peer may have gone already.
            if let Ok(socket) = Socket::new(stream, peer) {
                connection(socket, tls, shared).await;
            }
            drop(slot);
        });
    }
}

/// The same for our TCP, whose listener makes the handshakes.
pub(super) async fn accept_user_tcp(listener: SslmTcpListener, shared: Rc<Shared>) {
    loop {
        let Ok(slot) = Arc::clone(&shared.slots).acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "our TCP has ended");
                return;
            }
        };
        let shared = Rc::clone(&shared);
        spawn_local(async move {
            let socket = Socket::of_user_tcp(UserStream::open(stream, None));
            connection(socket, None, shared).await;
            drop(slot);
        });
    }
}

/// One connection from its acceptance to its record.
async fn connection(socket: Socket, tls: Option<Acceptor>, shared: Rc<Shared>) {
    let accepted = socket.report().and_then(|report| report.timeline.started).unwrap_or_else(now);
    let held = RefCell::new(shared.counters.connection());
    let link = Rc::new(Link::new(shared.number(), Rc::clone(&shared)));
    let facts = RefCell::new(Negotiated::default());
    let (samples, tcp_stalls) = (RefCell::new(Vec::new()), Rc::new(TcpStalls::default()));
    let _watch = shared.bottleneck.as_ref().map(|bottleneck| {
        let (watched, writes) = (socket.downgrade(), socket.gauge().writes());
        tcp_stalls.watching(bottleneck, writes, move || watched.look())
    });
    let served = serve(&socket, tls, &link, &facts, &held);
    let result = tokio::select! {
        result = served => result,
        () = sample(shared.sample, &samples, || socket.info()) => Ok(()),
        never = link.stalls.watch_unsent(|| socket.unsent_until()) => match never {},
        () = shared.aborting() => Ok(()),
    };
    drop(held);
    if !shared.log.is_on() {
        return;
    }
    let Negotiated { protocol, tls, secured } = facts.into_inner();
    shared.log.push_connection(ConnectionRecord {
        connection: link.id,
        peer: socket.peer(),
        local: socket.local(),
        protocol,
        resumed: tls.as_ref().map(|facts| facts.resumed),
        tls,
        accepted,
        secured,
        closed: now(),
        requests: link.requests.get(),
        bytes_received: socket.gauge().read(),
        bytes_sent: socket.gauge().written(),
        stalled: link.stalled.get(),
        tcp_stalls: tcp_stalls.stalls(),
        tcp: socket.info(),
        samples: samples.into_inner(),
        quic: None,
        quic_samples: Vec::new(),
        error: result.err().map(|failure| failure.to_string()),
    });
}

/// What the handshake gave.
#[derive(Default)]
struct Negotiated {
    protocol: Option<Protocol>,
    tls: Option<tls::Facts>,
    secured: Option<Time>,
}

/// Reads `value` every so often, for ever.
pub(super) async fn sample<T>(
    every: Option<Duration>,
    samples: &RefCell<Vec<Sample<T>>>,
    value: impl Fn() -> Option<T>,
) {
    let Some(every) = every.filter(|every| !every.is_zero()) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(every).await;
        let mut samples = samples.borrow_mut();
        if samples.len() < MAX_SAMPLES
            && let Some(value) = value()
        {
            samples.push(Sample { at: now(), value });
        }
    }
}

async fn serve(
    socket: &Socket,
    tls: Option<Acceptor>,
    link: &Rc<Link>,
    facts: &RefCell<Negotiated>,
    held: &RefCell<Held>,
) -> Result<(), Failure> {
    let (stream, protocol) = match (tls, socket.report()) {
        (Some(acceptor), _) => secure(socket.clone(), &acceptor, link, facts).await?,
        (None, Some(report)) => (Stream::Clear(socket.clone()), secured(report, link, facts)?),
        (None, None) => (Stream::Clear(socket.clone()), Protocol::Http1Clear),
    };
    let stream = Metered::new(stream, link.server.counters.clone());
    facts.borrow_mut().protocol = Some(protocol);
    held.borrow_mut().set_memory(connection_memory(Some(protocol)));
    socket.gauge().mark();
    link.touch();
    match protocol {
        Protocol::Http1Clear | Protocol::Http1 => {
            let head = || link.head_began(socket.gauge());
            let served = h1::serve(stream, protocol, socket.gauge(), link);
            watched(served, link, head).await
        }
        Protocol::Http2 => {
            let gauge = socket.gauge();
            watched(h2::serve(stream, gauge, link), link, || None).await
        }
        Protocol::Spdy3 | Protocol::Spdy31 => {
            let gauge = socket.gauge();
            watched(spdy::serve(stream, protocol, gauge, link), link, || None).await
        }
        // Never offered over TCP.
        Protocol::Http3 => Err(Failure::Alpn(protocol.to_string())),
    }
}

/// Serves until the end or until the link's watch gives up.
async fn watched(
    served: impl Future<Output = Result<(), Failure>>,
    link: &Link,
    head: impl Fn() -> Option<tokio::time::Instant>,
) -> Result<(), Failure> {
    tokio::select! {
        result = served => result,
        failure = link.watch(head) => Err(failure),
    }
}

/// The handshake of TLS.
async fn secure(
    socket: Socket,
    acceptor: &Acceptor,
    link: &Link,
    facts: &RefCell<Negotiated>,
) -> Result<(Stream, Protocol), Failure> {
    let counters = &link.server.counters;
    let after = link.server.timeouts.handshake;
    let accepted = match tokio::time::timeout(after, acceptor.accept(socket)).await {
        Ok(accepted) => accepted,
        Err(_) => Err(Failure::TimedOut { during: HANDSHAKE, after }),
    };
    let (stream, session, secured) = accepted.inspect_err(|_| counters.handshake_failed())?;
    let protocol = negotiated(session, secured, link, facts)?;
    Ok((stream, protocol))
}

/// The handshake that our TCP's listener made; with early data it is not over yet.
fn secured(
    report: sslmtcp::Report,
    link: &Link,
    facts: &RefCell<Negotiated>,
) -> Result<Protocol, Failure> {
    negotiated(report.facts, report.timeline.handshake_complete, link, facts)
}

/// Keeps what the handshake gave; the protocol that it chose.
fn negotiated(
    session: tls::Facts,
    secured: Option<Time>,
    link: &Link,
    facts: &RefCell<Negotiated>,
) -> Result<Protocol, Failure> {
    link.server.counters.handshake(session.resumed);
    let alpn = session.alpn.clone();
    link.server_name.borrow_mut().clone_from(&session.server_name);
    *facts.borrow_mut() = Negotiated { protocol: None, tls: Some(session), secured };
    Protocol::of_alpn(alpn.as_deref()).ok_or_else(|| {
        Failure::Alpn(String::from_utf8_lossy(&alpn.unwrap_or_default()).into_owned())
    })
}
