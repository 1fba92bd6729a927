//! The server: every profile and ordinary peers on one port.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use packet::clock::{monotonic, thread_cpu};
use tcp::{State, SynData, SynWithData};
use tcpio::{Stack, TcpListener, TcpStream};
use tls::EarlyData;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use crate::admission::{Admission, Limit, PlaceId, Source};
use crate::inner::Inner;
use crate::meter::Metered;
use crate::{Carried, Carrier, CarrierError, Embedding, Error, SslmTcpStream, Timeline, envelope};

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Connections that TCP holds for us; see [`tcp::ListenOptions::backlog`].
    pub backlog: usize,
    /// Whether Fast Open cookies are given out and taken (RFC 7413).
    pub cookies: bool,
    /// Handshakes under way at once with clients whose address is validated. A newcomer beyond it
    /// displaces the handshake of which nothing was received for longest, which is reset. As many more
    /// may be under way with those that sent a SYN with data and have not been heard of since; beyond
    /// it their handshakes begin when the address is validated, so that forged ones neither displace
    /// another nor cost a signature.
    pub max_handshakes: usize,
    /// The same for those with one [`Source`]. A newcomer beyond it displaces one of its own source.
    pub max_handshakes_per_source: usize,
    /// Connections whose handshake is over and that were not accepted yet. Beyond it their
    /// handshakes count as under way.
    pub max_ready: usize,
    /// How long a handshake may take. A slower peer is reset.
    pub timeout: Duration,
}

impl Default for ListenOptions {
    /// 1024 of each, an eighth of the handshakes for one source, no cookies, 10 s.
    fn default() -> Self {
        Self {
            backlog: 1024,
            cookies: false,
            max_handshakes: 1024,
            max_handshakes_per_source: 128,
            max_ready: 1024,
            timeout: Duration::from_secs(10),
        }
    }
}

/// What a listener has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerCounters {
    /// Connections taken from TCP.
    pub begun: u64,
    /// Handshakes that came to an end, for [`SslmTcpListener::accept`].
    pub completed: u64,
    /// Of those, handshakes that rode in TCP's.
    pub embedded: u64,
    /// Handshakes that failed.
    pub failed: u64,
    /// Handshakes that took too long.
    pub timed_out: u64,
    /// Handshakes that were reset for a newcomer, as there were as many as may be in all.
    pub displaced: u64,
    /// The same, as there were as many as one source may have.
    pub displaced_by_source: u64,
    /// SYNs with data whose handshake began only when the client's address was validated.
    pub deferred: u64,
    /// Handshakes under way.
    pub handshaking: usize,
}

#[derive(Debug, Default)]
struct Shared {
    begun: AtomicU64,
    completed: AtomicU64,
    embedded: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    displaced: AtomicU64,
    displaced_by_source: AtomicU64,
    deferred: AtomicU64,
    handshaking: AtomicUsize,
}

/// A port that takes TLS connections, of either kind of peer. Dropping it ends the listening and the
/// handshakes under way, not the connections accepted.
#[derive(Debug)]
pub struct SslmTcpListener {
    local: SocketAddr,
    ready: Mutex<mpsc::Receiver<SslmTcpStream>>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Whether a SYN's data are what a handshake begins with: TLS handshake records, or an envelope in a
/// segment of the length that the SSLmTCP paper asks for (SSLmTCP paper §4.2).
fn admit(syn: &SynWithData<'_>) -> bool {
    match syn.payload {
        // RFC 8446 §5.1: handshake, and 0x03 of its version.
        [22, 3, ..] => true,
        [high, _, 22, 3, ..] => {
            *high < envelope::FIRST_RECORD_TYPE && syn.segment_len >= envelope::MIN_SEGMENT
        }
        _ => false,
    }
}

impl SslmTcpListener {
    /// Listens on `local`, within the tokio runtime that is to do the handshakes: each in a task of
    /// its own.
    ///
    /// # Errors
    /// [`Error::Stack`]: the address is not the stack's, or the port is taken.
    pub fn bind(
        stack: &Stack,
        local: SocketAddr,
        server: tls::Server,
        options: ListenOptions,
    ) -> Result<Self, Error> {
        let listener = stack.listen(
            local,
            tcp::ListenOptions { backlog: options.backlog, admit, cookies: options.cookies },
        )?;
        let local = listener.local_addr();
        let (sender, receiver) = mpsc::channel(options.max_ready.max(1));
        let shared = Arc::new(Shared::default());
        let taken = take_connections(listener, server, options, Arc::clone(&shared), sender);
        Ok(Self { local, ready: Mutex::new(receiver), shared, task: tokio::spawn(taken) })
    }

    /// The address that was listened on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection: its handshake is over, or it has brought early data that were taken. Failed
    /// handshakes are only counted.
    ///
    /// # Errors
    /// [`Error::Ended`] when the stack is shut down.
    pub async fn accept(&self) -> Result<SslmTcpStream, Error> {
        self.ready.lock().await.recv().await.ok_or(Error::Ended)
    }

    /// What it has seen.
    #[must_use]
    pub fn counters(&self) -> ListenerCounters {
        let shared = &self.shared;
        ListenerCounters {
            begun: shared.begun.load(Ordering::Relaxed),
            completed: shared.completed.load(Ordering::Relaxed),
            embedded: shared.embedded.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
            timed_out: shared.timed_out.load(Ordering::Relaxed),
            displaced: shared.displaced.load(Ordering::Relaxed),
            displaced_by_source: shared.displaced_by_source.load(Ordering::Relaxed),
            deferred: shared.deferred.load(Ordering::Relaxed),
            handshaking: shared.handshaking.load(Ordering::Relaxed),
        }
    }
}

impl Drop for SslmTcpListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes connections from TCP until the stack ends.
async fn take_connections(
    listener: TcpListener,
    server: tls::Server,
    options: ListenOptions,
    shared: Arc<Shared>,
    ready: mpsc::Sender<SslmTcpStream>,
) {
    let places = Arc::new(Places {
        validated: Table::new(&options),
        unheard: Table::new(&options),
        shared: Arc::clone(&shared),
    });
    let mut handshakes = JoinSet::new();
    while let Ok(tcp) = listener.accept().await {
        while handshakes.try_join_next().is_some() {}
        shared.begun.fetch_add(1, Ordering::Relaxed);
        let half_open = tcp.info().is_some_and(|info| info.state == State::SynReceived);
        let source = tcp.peer_addr().ip().into();
        let place = match half_open {
            true => Place::unheard(&places, source),
            false => Some(Place::validated(&places, source)),
        };
        let (server, shared, ready) = (server.clone(), Arc::clone(&shared), ready.clone());
        let (places, patience) = (Arc::clone(&places), options.timeout);
        handshakes.spawn(async move {
            let _under_way = UnderWay::new(&shared);
            let mut place = match place {
                Some(place) => place,
                None => {
                    shared.deferred.fetch_add(1, Ordering::Relaxed);
                    // SYN+ACK without data, which costs no more than any.
                    tcp.answer();
                    match tokio::time::timeout(patience, tcp.established()).await {
                        Ok(Ok(_)) => Place::validated(&places, source),
                        _ => {
                            shared.failed.fetch_add(1, Ordering::Relaxed);
                            tcp.abort();
                            return;
                        }
                    }
                }
            };
            let served = serve(tcp, &server, &mut place, patience, &shared);
            let Some(stream) = served.await else { return };
            tokio::select! {
                biased;
                // Nobody accepts any more: it ends here.
                room = ready.reserve() => {
                    if let Ok(room) = room {
                        room.send(stream);
                    }
                }
                () = place.lost.notified() => stream.abort(),
            }
        });
    }
}

/// Handshakes that may be under way, each with what is notified when it loses its place.
struct Table(std::sync::Mutex<Admission<Arc<Notify>>>);

impl Table {
    fn new(options: &ListenOptions) -> Table {
        let places = Admission::new(options.max_handshakes, options.max_handshakes_per_source);
        Table(std::sync::Mutex::new(places))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Admission<Arc<Notify>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The places of handshakes.
struct Places {
    /// With clients whose address is validated.
    validated: Table,
    /// With those that sent a SYN with data, and were not heard of since.
    unheard: Table,
    shared: Arc<Shared>,
}

impl Places {
    fn of(&self, validated: bool) -> &Table {
        if validated { &self.validated } else { &self.unheard }
    }

    /// A place among the validated; whoever held it is notified.
    fn admit(&self, source: Source, lost: &Arc<Notify>) -> PlaceId {
        let (id, displaced) = self.validated.lock().admit(source, Arc::clone(lost));
        if let Some((other, limit)) = displaced {
            let count = match limit {
                Limit::All => &self.shared.displaced,
                Limit::Source => &self.shared.displaced_by_source,
            };
            count.fetch_add(1, Ordering::Relaxed);
            other.notify_one();
        }
        id
    }
}

/// A handshake's place among those that may be under way; given back when dropped.
struct Place {
    places: Arc<Places>,
    id: PlaceId,
    source: Source,
    /// Whether the client's address is validated.
    validated: bool,
    /// Notified when a newcomer took the place.
    lost: Arc<Notify>,
}

impl Place {
    /// One among those whose address is validated, from another if need be.
    fn validated(places: &Arc<Places>, source: Source) -> Place {
        let lost = Arc::new(Notify::new());
        let id = places.admit(source, &lost);
        Place { places: Arc::clone(places), id, source, validated: true, lost }
    }

    /// One among the others, if there is one.
    fn unheard(places: &Arc<Places>, source: Source) -> Option<Place> {
        let lost = Arc::new(Notify::new());
        let id = places.unheard.lock().try_admit(source, Arc::clone(&lost))?;
        Some(Place { places: Arc::clone(places), id, source, validated: false, lost })
    }

    /// Something was received from the client.
    fn heard(&mut self) {
        if let Some(id) = self.places.of(self.validated).lock().heard(self.id) {
            self.id = id;
        }
    }

    /// Waits until the client's address is validated, and moves to the places of such.
    async fn validate(&mut self, tcp: &TcpStream) -> Result<(), Error> {
        if self.validated {
            return Ok(());
        }
        tcp.established().await.map_err(|error| Error::tcp("waiting for the client", &error))?;
        self.places.unheard.lock().remove(self.id);
        self.validated = true;
        self.id = self.places.admit(self.source, &self.lost);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.of(self.validated).lock().remove(self.id);
    }
}

/// Counts a handshake while it lives.
struct UnderWay<'a>(&'a Shared);

impl<'a> UnderWay<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.handshaking.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.handshaking.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One handshake, within its time.
async fn serve(
    tcp: TcpStream,
    server: &tls::Server,
    place: &mut Place,
    patience: Duration,
    shared: &Shared,
) -> Option<SslmTcpStream> {
    let peer = tcp.peer_addr();
    let mut handshake = match Handshake::new(tcp, server) {
        Ok(handshake) => handshake,
        Err(error) => {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%error, "no handshake could begin");
            return None;
        }
    };
    let lost = Arc::clone(&place.lost);
    let driven = tokio::select! {
        biased;
        () = lost.notified() => {
            tracing::debug!(%peer, "handshake displaced by a newcomer");
            handshake.inner.tcp.abort();
            return None;
        }
        driven = tokio::time::timeout(patience, handshake.drive(place)) => driven,
    };
    match driven {
        Ok(Ok(())) => {
            shared.completed.fetch_add(1, Ordering::Relaxed);
            let inner = handshake.over();
            if inner.carried == Carried::Embedded {
                shared.embedded.fetch_add(1, Ordering::Relaxed);
            }
            return Some(SslmTcpStream::new(inner));
        }
        Ok(Err(error)) => {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, %error, "handshake failed");
            handshake.part().await;
        }
        Err(_) => {
            shared.timed_out.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(%peer, after = ?patience, "handshake took too long");
            handshake.inner.tcp.abort();
        }
    }
    None
}

/// A connection whose handshake is under way.
struct Handshake {
    inner: Inner,
    /// Its SYN had data, which were taken.
    with_data: bool,
}

impl Handshake {
    fn new(tcp: TcpStream, server: &tls::Server) -> Result<Self, Error> {
        let timeline = Timeline { started: Some(monotonic()), ..Timeline::default() };
        let info = tcp.info();
        let with_data = info.as_ref().is_some_and(|info| info.syn_data == SynData::Accepted);
        let segment = info.filter(|_| with_data).map_or(0, |info| info.syn_segment_len);
        let began = thread_cpu();
        let session = server.accept()?;
        let engine = Metered::new(session, thread_cpu().saturating_sub(began));
        let carrier = Carrier::server(engine, segment);
        let carried = if with_data { Carried::Embedded } else { Carried::Sequential };
        let inner = Inner::server(tcp, carrier, Embedding::None, carried, timeline);
        Ok(Self { inner, with_data })
    }

    /// Reads and answers until application data may be sent.
    async fn drive(&mut self, place: &mut Place) -> Result<(), Error> {
        let inner = &mut self.inner;
        if self.with_data {
            // The SYN's data are there. If they are not the whole hello, there is no answer yet, and
            // the SYN+ACK goes without.
            let first = poll_fn(|cx| inner.poll_fill(cx)).await;
            inner.tcp.answer();
            if !first? {
                return Err(Error::Carrier(CarrierError::Truncated));
            }
        }
        if !inner.carrier.is_ready() {
            place.validate(&inner.tcp).await?;
        }
        while !inner.carrier.is_ready() {
            if !poll_fn(|cx| inner.poll_fill(cx)).await? {
                return Err(Error::Carrier(CarrierError::Truncated));
            }
            place.heard();
        }
        Ok(())
    }

    fn over(mut self) -> Inner {
        self.inner.embedding = self.embedding();
        self.inner
    }

    /// What the client asked for, as far as a server can tell.
    fn embedding(&self) -> Embedding {
        let carrier = &self.inner.carrier;
        match self.with_data {
            false => Embedding::None,
            true if carrier.was_enveloped() => Embedding::Paper,
            true if carrier.facts().early_data != EarlyData::NotOffered => Embedding::ZeroRtt,
            true => Embedding::Tls13,
        }
    }

    /// The alert of a failed handshake leaves, as far as there is room for it, and the connection
    /// ends.
    async fn part(mut self) {
        poll_fn(|cx| {
            // An alert is short: what does not fit at once is not waited for.
            let _ = self.inner.flush(cx);
            Poll::Ready(())
        })
        .await;
        self.inner.tcp.answer();
    }
}
