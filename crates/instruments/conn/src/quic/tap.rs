//! A TLS session of quinn's that notes what passes through it.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quinn::crypto::{self, rustls::QuicClientConfig, rustls::QuicServerConfig};
use quinn::{ConnectError, ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use tokio::sync::Notify;
use units::Time;

use super::messages::{Handshake, Messages};
use crate::now;
use crate::timeline::stamp;

/// What one connection's handshake showed.
#[derive(Debug)]
pub(super) struct Seen {
    state: Mutex<State>,
    ticket: Notify,
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
        Arc::new(Seen { state: Mutex::new(state), ticket: Notify::new() })
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
            stamp(&mut state.complete, now());
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
            stamp(&mut state.complete, now());
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
        Ok(Box::new(Tapped { inner, seen: Arc::clone(&self.seen) }))
    }
}

/// Server configuration; every session has its own [`Seen`], which `handshake_data` gives.
pub(super) struct TappedServer(pub Arc<QuicServerConfig>);

impl crypto::ServerConfig for TappedServer {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<crypto::Keys, crypto::UnsupportedVersion> {
        self.0.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let inner = Arc::clone(&self.0).start_session(version, params);
        Box::new(Tapped { inner, seen: Seen::new() })
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
    Arc::new(TappedServer(Arc::new(inner)))
}

/// What TLS says of a connection, as far as its handshake got: quinn says of it only ALPN and the server's
/// name. `None` unless its configuration is of [`client`] or [`server`].
#[must_use]
pub fn facts(connection: &quinn::Connection) -> Option<tls::Facts> {
    let seen = connection.handshake_data()?.downcast::<Arc<Seen>>().ok()?;
    let facts = seen.state().handshake.facts.clone();
    Some(facts)
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
        Ok(Box::new(Tapped { inner, seen: Seen::new() }))
    }
}

struct Tapped {
    inner: Box<dyn crypto::Session>,
    seen: Arc<Seen>,
}

impl crypto::Session for Tapped {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> crypto::Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    /// The [`Seen`] of this connection, from the first.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Arc::clone(&self.seen)))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        self.inner.early_crypto()
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
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<crypto::Keys> {
        let before = buf.len();
        let keys = self.inner.write_handshake(buf);
        self.seen.wrote(buf.get(before..).unwrap_or_default(), self.inner.is_handshaking());
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<crypto::KeyPair<Box<dyn crypto::PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
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
