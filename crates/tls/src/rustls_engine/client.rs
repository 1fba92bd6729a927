//! A rustls client.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConnection, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};

use super::accept::AcceptAnyCertificate;
use super::flow::Flow;
use super::noting::{NotingResolver, NotingVerifier};
use super::{
    KeyLogLines, TicketStore, common_facts, error, protocol_versions, provider, usual_provider,
};
use crate::compression::decompressors;
use crate::config::{ClientConfig, Trust, system_roots};
use crate::error::config as config_error;
use crate::hello::Watch;
use crate::offer::{NamedGroup, Offer, ServerChoice};
use crate::ticket::Origin;
use crate::{CallerError, EarlyData, Error, Facts, Session, Ticket};

/// A prepared rustls client.
#[derive(Debug)]
pub(crate) struct Client {
    config: rustls::ClientConfig,
    name: ServerName<'static>,
    origin: Arc<Origin>,
}

/// The rustls configuration that a [`ClientConfig`] means, without resumption.
pub(crate) fn tls_config(config: &ClientConfig) -> Result<rustls::ClientConfig, Error> {
    let mut provider =
        provider(&config.versions, config.key_exchange, &config.groups, config.key_shares)?;
    if let Offer::Usual(groups) = &config.offer {
        provider = usual_provider(groups)?;
    }
    let mut verifier = verifier(&config.trust, &provider)?;
    if let Some(witness) = config.witness.clone() {
        verifier = Arc::new(NotingVerifier { inner: verifier, witness });
    }
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&protocol_versions(&config.versions))
        .map_err(|cause| config_error(cause.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut tls = match &config.identity {
        Some(identity) => builder.with_client_cert_resolver(identity.resolver()),
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols.clone_from(&config.alpn);
    tls.enable_early_data = config.early_data;
    tls.enable_sni = !config.nameless;
    tls.cert_decompressors = decompressors(&config.compression);
    tls.resumption = Resumption::disabled();
    if let Some(witness) = config.witness.clone() {
        let inner = Arc::clone(&tls.client_auth_cert_resolver);
        tls.client_auth_cert_resolver = Arc::new(NotingResolver { inner, witness });
    }
    if let Some(key_log) = &config.key_log {
        tls.key_log = Arc::new(KeyLogLines(key_log.clone()));
    }
    Ok(tls)
}

impl Client {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let name = server_name(&config.server_name)?;
        Ok(Self { config: tls_config(config)?, name, origin: Arc::new(Origin) })
    }

    /// The same client for another name; the verifier stays the same one, by which rustls knows its sessions.
    pub(crate) fn with_name(&self, name: &str) -> Result<Self, Error> {
        let (config, origin) = (self.config.clone(), Arc::clone(&self.origin));
        Ok(Self { config, name: server_name(name)?, origin })
    }

    pub(crate) fn start(&self, ticket: Option<&Ticket>) -> Result<Box<dyn Session>, Error> {
        let store = TicketStore::for_ticket(ticket, &self.origin)?;
        let mut config = self.config.clone();
        config.resumption = Resumption::store(store.clone());
        let mut connection =
            ClientConnection::new(Arc::new(config), self.name.clone()).map_err(error)?;
        // Bounded by `Flow::admit`, so that nothing is taken in part.
        connection.set_buffer_limit(None);
        let early_room = connection.early_data().map_or(0, |early| early.bytes_left());
        let server_name = match &self.name {
            ServerName::DnsName(name) => Some(name.as_ref().to_owned()),
            _ => None,
        };
        Ok(Box::new(ClientSession {
            early_data: if early_room > 0 { EarlyData::Pending } else { EarlyData::NotOffered },
            connection,
            store,
            origin: Arc::clone(&self.origin),
            watch: Watch::default(),
            early_room,
            flow: Flow::default(),
            server_name,
        }))
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, Error> {
    let wrong = |_| CallerError::ServerName(name.to_owned());
    Ok(ServerName::try_from(name.to_owned()).map_err(wrong)?)
}

struct ClientSession {
    connection: ClientConnection,
    store: Arc<TicketStore>,
    origin: Arc<Origin>,
    watch: Watch,
    early_data: EarlyData,
    early_room: usize,
    flow: Flow,
    server_name: Option<String>,
}

impl ClientSession {
    fn drain_plaintext(&mut self) -> Result<(), Error> {
        let mut chunk = [0; 4096];
        loop {
            match self.connection.reader().read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(len) => self.flow.plaintext.push(&chunk[..len])?,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Ok(()),
            }
        }
    }

    /// The server's answer on early data is in its EncryptedExtensions; it is known for sure when its
    /// Finished has been read.
    fn settle_early_data(&mut self) {
        if self.early_data == EarlyData::Pending && !self.connection.is_handshaking() {
            self.early_data = if self.connection.is_early_data_accepted() {
                EarlyData::Accepted
            } else {
                EarlyData::Rejected
            };
        }
    }
}

impl Session for ClientSession {
    fn read_tls(&mut self, mut records: &[u8]) -> Result<(), Error> {
        self.watch.server_bytes(records);
        if !records.is_empty() {
            self.early_room = 0;
        }
        while !records.is_empty() && !self.flow.peer_closed {
            self.connection.read_tls(&mut records).map_err(super::buffer_full)?;
            let state = self.connection.process_new_packets().map_err(error)?;
            self.flow.peer_closed = state.peer_has_closed();
            self.settle_early_data();
            self.drain_plaintext()?;
        }
        Ok(())
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        let before = out.len();
        self.flow.write_tls(&mut self.connection, out)?;
        self.watch.client_bytes(out.get(before..).unwrap_or_default());
        Ok(out.len() - before)
    }

    fn may_send(&self) -> bool {
        !self.connection.is_handshaking()
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn early_data_room(&self) -> usize {
        self.early_room
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        if data.len() > self.early_room {
            let (wanted, room) = (data.len(), self.early_room);
            return Err(CallerError::EarlyData { wanted, room }.into());
        }
        self.flow.admit(data.len())?;
        let Some(mut early) = self.connection.early_data() else { return Ok(0) };
        early.write_all(data).map_err(super::library)?;
        self.early_room = early.bytes_left();
        Ok(data.len())
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
        let common = common_facts(&self.connection);
        let sent = self.connection.peer_certificates().map_or(0, <[_]>::len);
        Facts {
            early_data: self.early_data,
            certificates: if common.resumed { 0 } else { sent },
            server_name: self.server_name.clone(),
            ..common.watched(&self.watch)
        }
    }

    fn server_choice(&self) -> Option<ServerChoice> {
        let choice = self.watch.choice()?;
        let known = self.connection.negotiated_key_exchange_group();
        let known = known.map(|group| NamedGroup(group.name().into()));
        Some(ServerChoice { group: known.or(choice.group), ..choice })
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        self.store.take(&self.origin)
    }

    fn close(&mut self) {
        self.flow.close(&mut self.connection);
    }
}

fn verifier(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let unusable = |cause: &dyn core::fmt::Display| config_error(format!("trust: {cause}"));
    let mut store = RootCertStore::empty();
    match trust {
        Trust::Roots(roots) => {
            for root in roots {
                store
                    .add(CertificateDer::from(root.as_slice()).into_owned())
                    .map_err(|cause| unusable(&cause))?;
            }
        }
        Trust::System => {
            store.add_parsable_certificates(system_roots()?);
        }
        Trust::Insecure => return Ok(Arc::new(AcceptAnyCertificate::new(Arc::clone(provider)))),
        Trust::Unchecked => {
            return Ok(Arc::new(AcceptAnyCertificate::with_any_signature(Arc::clone(provider))));
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map(|verifier| verifier as Arc<dyn ServerCertVerifier>)
        .map_err(|cause| unusable(&cause))
}
