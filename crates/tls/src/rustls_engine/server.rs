//! A rustls server.

use std::io::Read;
use std::sync::Arc;

use rustls::ServerConnection;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};

use super::flow::Flow;
use super::{KeyLogLines, common_facts, error, protocol_versions, provider};
use crate::compression::compressors;
use crate::config::ServerConfig;
use crate::error::config as config_error;
use crate::hello::Watch;
use crate::stand_in::Always;
use crate::{CallerError, EarlyData, Error, Facts, Session, Ticket};

/// Sessions that a server which accepts early data remembers.
const STORED_SESSIONS: usize = 4096;

/// A prepared rustls server.
#[derive(Debug)]
pub(crate) struct Server(Arc<rustls::ServerConfig>);

/// The rustls configuration that a [`ServerConfig`] means.
pub(crate) fn tls_config(config: &ServerConfig) -> Result<rustls::ServerConfig, Error> {
    let provider = provider(&config.versions, config.key_exchange, &config.groups, 1)?;
    let builder = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&protocol_versions(&config.versions))
        .map_err(|cause| config_error(cause.to_string()))?
        .with_no_client_auth();
    let identity = &config.identity;
    let mut tls = match identity.standing_in() {
        Some(key) => builder.with_cert_resolver(Arc::new(Always::new(identity, key))),
        None => builder
            .with_single_cert(identity.rustls_chain(), identity.rustls_key())
            .map_err(error)?,
    };
    tls.cert_compressors = compressors(&config.compression);
    tls.alpn_protocols.clone_from(&config.alpn);
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = usize::from(config.tickets);
    if config.tickets {
        if config.max_early_data > 0 {
            // rustls takes early data only on sessions that it remembers, each once: that is its guard
            // against replay (RFC 8446 §8.1). TLS 1.2 sessions are then resumed by their identifier.
            tls.session_storage = ServerSessionMemoryCache::new(STORED_SESSIONS);
        } else {
            tls.ticketer = Ticketer::new().map_err(error)?;
        }
    }
    tls.max_early_data_size = config.max_early_data;
    // RFC 8446 §4.4.4: the answer to early data need not wait for the client's Finished.
    tls.send_half_rtt_data = config.max_early_data > 0;
    if let Some(key_log) = &config.key_log {
        tls.key_log = Arc::new(KeyLogLines(key_log.clone()));
    }
    Ok(tls)
}

impl Server {
    pub(crate) fn new(config: &ServerConfig) -> Result<Self, Error> {
        Ok(Self(Arc::new(tls_config(config)?)))
    }

    pub(crate) fn accept(&self) -> Result<Box<dyn Session>, Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.0)).map_err(error)?;
        // Bounded by `Flow::admit`, so that nothing is taken in part.
        connection.set_buffer_limit(None);
        Ok(Box::new(ServerSession {
            connection,
            watch: Watch::default(),
            early_accepted: false,
            flow: Flow::default(),
        }))
    }
}

struct ServerSession {
    connection: ServerConnection,
    watch: Watch,
    early_accepted: bool,
    flow: Flow,
}

impl ServerSession {
    fn drain_plaintext(&mut self) -> Result<(), Error> {
        let mut chunk = [0; 4096];
        // Early data first: it was sent before anything else.
        if let Some(mut early) = self.connection.early_data() {
            self.early_accepted = true;
            while let Ok(len @ 1..) = early.read(&mut chunk) {
                self.flow.plaintext.push(&chunk[..len])?;
            }
        }
        while let Ok(len @ 1..) = self.connection.reader().read(&mut chunk) {
            self.flow.plaintext.push(&chunk[..len])?;
        }
        Ok(())
    }
}

impl Session for ServerSession {
    fn read_tls(&mut self, mut records: &[u8]) -> Result<(), Error> {
        self.watch.client_bytes(records);
        while !records.is_empty() && !self.flow.peer_closed {
            self.connection.read_tls(&mut records).map_err(super::buffer_full)?;
            let state = self.connection.process_new_packets().map_err(error)?;
            self.flow.peer_closed = state.peer_has_closed();
            self.drain_plaintext()?;
        }
        Ok(())
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        let before = out.len();
        self.flow.write_tls(&mut self.connection, out)?;
        self.watch.server_bytes(out.get(before..).unwrap_or_default());
        Ok(out.len() - before)
    }

    fn may_send(&self) -> bool {
        self.early_accepted || !self.connection.is_handshaking()
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn early_data_room(&self) -> usize {
        0
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        Err(CallerError::EarlyData { wanted: data.len(), room: 0 }.into())
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.flow.send(&mut self.connection, data)
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        Ok(self.flow.plaintext.take(out))
    }

    fn peer_closed(&self) -> bool {
        self.flow.peer_closed
    }

    fn facts(&self) -> Facts {
        Facts {
            early_data: match (self.watch.offer().early_data, self.early_accepted) {
                (false, _) => EarlyData::NotOffered,
                (true, true) => EarlyData::Accepted,
                (true, false) => EarlyData::Rejected,
            },
            server_name: self.watch.offer().server_name.clone(),
            ..common_facts(&self.connection).watched(&self.watch)
        }
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        None
    }

    fn close(&mut self) {
        self.flow.close(&mut self.connection);
    }
}
