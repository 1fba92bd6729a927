//! A TLS session of quinn's that notes what passes through it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quinn::crypto::{self, rustls::QuicClientConfig, rustls::QuicServerConfig};
use quinn::{ConnectError, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use tokio::sync::Notify;
use units::Time;

use super::messages::{Handshake, Messages};
use super::qlog::{First, KeySet, Trace, Vantage, first_keys};
use crate::now;
use crate::timeline::stamp;

/// What one connection's handshake showed.
#[derive(Debug)]
pub(super) struct Seen {
    state: Mutex<State>,
    ticket: Notify,
    /// Where its packets are noted, if they are.
    trace: OnceLock<Arc<Trace>>,
}

#[derive(Debug)]
pub(super) struct State {
    pub handshake: Handshake,
    /// The first handshake bytes of this side were made: the ClientHello, or its answer.
    pub first_flight: Option<Time>,
    /// Both Finished are done on this side.
    pub complete: Option<Time>,
    inbound: Messages,
    outbound: Messages,
}

impl Seen {
    pub fn new() -> Arc<Self> {
        let state = State {
            handshake: Handshake::new(),
            first_flight: None,
            complete: None,
            inbound: Messages::default(),
            outbound: Messages::default(),
        };
        Arc::new(Seen { state: Mutex::new(state), ticket: Notify::new(), trace: OnceLock::new() })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a ticket has come.
    pub async fn ticket(&self) {
        loop {
            let notified = self.ticket.notified();
            if self.state().handshake.tickets > 0 {
                return;
            }
            notified.await;
        }
    }

    fn read(&self, bytes: &[u8], is_handshaking: bool) {
        let mut state = self.state();
        let State { handshake, inbound, .. } = &mut *state;
        let tickets = handshake.tickets;
        inbound.feed(bytes, handshake);
        if handshake.tickets > tickets {
            self.ticket.notify_one();
        }
        if !is_handshaking {
            self.completed(&mut state);
        }
    }

    fn completed(&self, state: &mut State) {
        stamp(&mut state.complete, now());
        if let Some(trace) = self.trace.get() {
            trace.complete(state.handshake.facts.alpn.as_deref());
        }
    }

    /// Notes how the path stands, where packets are noted.
    pub fn note_metrics(&self, stats: &quinn::ConnectionStats) {
        if let Some(trace) = self.trace.get() {
            trace.metrics(&stats.path);
        }
    }

    fn wrote(&self, bytes: &[u8], is_handshaking: bool) {
        let mut state = self.state();
        if !bytes.is_empty() {
            stamp(&mut state.first_flight, now());
            let State { handshake, outbound, .. } = &mut *state;
            outbound.feed(bytes, handshake);
        }
        if !is_handshaking {
            self.completed(&mut state);
        }
    }
}

/// Client configuration of one connection.
pub(super) struct TappedClient {
    pub inner: Arc<QuicClientConfig>,
    pub seen: Arc<Seen>,
}

impl crypto::ClientConfig for TappedClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let inner = Arc::clone(&self.inner).start_session(version, server_name, params)?;
        Ok(Tapped::begin(inner, Arc::clone(&self.seen), Vantage::Client, None, version, params))
    }
}

/// Server configuration; every session has its own [`Seen`], which `handshake_data` gives.
pub(super) struct TappedServer {
    inner: Arc<QuicServerConfig>,
    first: Arc<First>,
}

impl TappedServer {
    pub fn new(inner: QuicServerConfig) -> TappedServer {
        TappedServer { inner: Arc::new(inner), first: Arc::default() }
    }
}

impl crypto::ServerConfig for TappedServer {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<crypto::Keys, crypto::UnsupportedVersion> {
        let keys = self.inner.initial_keys(version, dst_cid)?;
        Ok(first_keys(keys, dst_cid, &self.first))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let inner = Arc::clone(&self.inner).start_session(version, params);
        let first = Some(Arc::clone(&self.first));
        Tapped::begin(inner, Seen::new(), Vantage::Server, first, version, params)
    }
}

/// `inner` for a client of another crate, with [`facts`] of each connection.
#[must_use]
pub fn client(inner: QuicClientConfig) -> Arc<dyn crypto::ClientConfig> {
    Arc::new(TappedClients(Arc::new(inner)))
}

/// `inner` for a server of another crate, with [`facts`] of each connection.
#[must_use]
pub fn server(inner: QuicServerConfig) -> Arc<dyn crypto::ServerConfig> {
    Arc::new(TappedServer::new(inner))
}

/// What TLS says of a connection, as far as its handshake got: quinn says of it only ALPN and the server's
/// name. `None` unless its configuration is of [`client`] or [`server`].
#[must_use]
pub fn facts(connection: &quinn::Connection) -> Option<tls::Facts> {
    let seen = connection.handshake_data()?.downcast::<Arc<Seen>>().ok()?;
    let facts = seen.state().handshake.facts.clone();
    Some(facts)
}

/// Notes how the connection's path stands in its qlog file, if it has one: before it is closed.
pub fn note_metrics(connection: &quinn::Connection) {
    let data = connection.handshake_data().and_then(|data| data.downcast::<Arc<Seen>>().ok());
    if let Some(seen) = data {
        seen.note_metrics(&connection.stats());
    }
}

/// Client configuration of many connections; every session has its own [`Seen`].
struct TappedClients(Arc<QuicClientConfig>);

impl crypto::ClientConfig for TappedClients {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let inner = Arc::clone(&self.0).start_session(version, server_name, params)?;
        Ok(Tapped::begin(inner, Seen::new(), Vantage::Client, None, version, params))
    }
}

struct Tapped {
    inner: Box<dyn crypto::Session>,
    seen: Arc<Seen>,
    /// Keys that note packets, if that is wanted.
    keys: Option<KeySet>,
    /// A server's first packets.
    first: Option<Arc<First>>,
}

impl Tapped {
    fn begin(
        inner: Box<dyn crypto::Session>,
        seen: Arc<Seen>,
        vantage: Vantage,
        first: Option<Arc<First>>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let keys = Trace::begin(vantage).map(|trace| {
            trace.started(version, params);
            KeySet::new(Arc::clone(seen.trace.get_or_init(|| trace)))
        });
        Box::new(Tapped { inner, seen, keys, first })
    }
}

impl crypto::Session for Tapped {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> crypto::Keys {
        let keys = self.inner.initial_keys(dst_cid, side);
        match &self.keys {
            Some(watching) => watching.initial(dst_cid, keys, self.first.as_deref()),
            None => keys,
        }
    }

    /// The [`Seen`] of this connection, from the first.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Arc::clone(&self.seen)))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        let (header, packet) = self.inner.early_crypto()?;
        let packet = match &self.keys {
            Some(watching) => watching.early(packet),
            None => packet,
        };
        Some((header, packet))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let result = self.inner.read_handshake(buf);
        self.seen.read(buf, self.inner.is_handshaking());
        result
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let parameters = self.inner.transport_parameters()?;
        if let (Some(watching), Some(parameters)) = (&self.keys, &parameters) {
            watching.trace().remote_parameters(parameters);
        }
        Ok(parameters)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<crypto::Keys> {
        let before = buf.len();
        let keys = self.inner.write_handshake(buf);
        self.seen.wrote(buf.get(before..).unwrap_or_default(), self.inner.is_handshaking());
        match &self.keys {
            Some(watching) => keys.map(|keys| watching.next(keys)),
            None => keys,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<crypto::KeyPair<Box<dyn crypto::PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(match &self.keys {
            Some(watching) => watching.update(keys),
            None => keys,
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let is_valid = self.inner.is_valid_retry(orig_dst_cid, header, payload);
        if let Some(watching) = self.keys.as_ref().filter(|_| is_valid) {
            watching.trace().retry(header, header.len() + payload.len());
        }
        is_valid
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), crypto::ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
