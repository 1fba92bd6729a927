//! What sets two servers of the study apart, and how each is set up.

use std::fmt;
use std::sync::Arc;

use conn::{ClientTransport, FastOpen, ServerTransport};
use sslmtcp::Embedding;
use testbed::{Error, MAX_EARLY_DATA, SERVER_NAME, Testbed};
use tls::{Group, Identity, KeyExchange, KeyType, Library, Trust, Version};

use crate::mode::{Mode, Security, Transport};
use crate::point::{Peer, Point, Visit};

/// The study's one node of clients.
pub(crate) const CLIENT: usize = 0;

/// What sets two servers apart: a point without its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Variant {
    pub mode: Mode,
    pub key: KeyType,
    pub group: Group,
    pub library: Library,
    pub chain: usize,
    pub peer: Peer,
    pub visit: Visit,
}

impl From<&Point> for Variant {
    fn from(point: &Point) -> Variant {
        let Point { mode, key, group, library, chain, peer, visit, .. } = *point;
        Variant { mode, key, group, library, chain, peer, visit }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mode.fmt(f)
    }
}

impl Variant {
    fn version(&self) -> Version {
        match self.mode.security {
            Security::Tls12Rsa | Security::Tls12 | Security::Tls12Resumed => Version::Tls12,
            _ => Version::Tls13,
        }
    }

    fn key_exchange(&self) -> KeyExchange {
        match self.mode.security {
            Security::Tls12Rsa => KeyExchange::Rsa,
            _ => KeyExchange::Ecdhe,
        }
    }

    /// A group that is not the variant's.
    fn other_group(&self) -> Group {
        if self.group == Group::X25519 { Group::Secp256r1 } else { Group::X25519 }
    }

    /// What the client offers, and for how many of these, from the first, it sends a key share.
    fn client_groups(&self) -> (Vec<Group>, usize) {
        match (self.mode.security, self.group) {
            // The one share is for a group that the server does not take.
            (Security::Tls13HelloRetry, group) => (vec![self.other_group(), group], 1),
            // As browsers and libraries do by default: a classical share beside the hybrid one.
            (_, Group::X25519MlKem768) => (vec![Group::X25519MlKem768, Group::X25519], 2),
            _ if self.needs_curve_of_key() => (vec![self.group, Group::Secp256r1], 1),
            _ => (vec![self.group], 1),
        }
    }

    /// In TLS 1.2 the curve of an ECDSA key must be among the groups (RFC 8422 §5.1).
    fn needs_curve_of_key(&self) -> bool {
        self.version() == Version::Tls12
            && self.key == KeyType::EcdsaP256
            && self.group != Group::Secp256r1
    }

    fn client_config(&self, identity: &Identity) -> tls::ClientConfig {
        let trust = Trust::Roots(identity.roots());
        let mut config = tls::ClientConfig::new(self.library, SERVER_NAME, trust);
        config.versions = vec![self.version()];
        config.key_exchange = self.key_exchange();
        (config.groups, config.key_shares) = self.client_groups();
        config.early_data = self.mode.early_data();
        config
    }

    fn server_config(&self, identity: Arc<Identity>) -> tls::ServerConfig {
        let mut config = tls::ServerConfig::new(self.library, identity);
        config.versions = vec![self.version()];
        config.key_exchange = self.key_exchange();
        config.groups = match self.needs_curve_of_key() {
            true => vec![self.group, Group::Secp256r1],
            false => vec![self.group],
        };
        config.max_early_data = if self.mode.early_data() { MAX_EARLY_DATA } else { 0 };
        config
    }

    /// What of the TLS handshake rides in TCP's, over our TCP.
    fn embedding(&self) -> Embedding {
        match (self.mode.transport, self.mode.security) {
            (Transport::SslmTcp, Security::Tls12Rsa) => Embedding::Paper,
            (Transport::SslmTcp, Security::Tls13EarlyData) => Embedding::ZeroRtt,
            (Transport::SslmTcp, _) => Embedding::Tls13,
            _ => Embedding::None,
        }
    }

    /// The same of an ordinary server.
    fn server_fast_open(&self) -> FastOpen {
        match self.peer {
            Peer::Same => self.fast_open(),
            Peer::Plain => FastOpen::Off,
        }
    }

    fn fast_open(&self) -> FastOpen {
        match self.mode.transport {
            Transport::TcpFastOpen => FastOpen::Cookie,
            Transport::TcpFastOpenNoCookie => FastOpen::Cookieless,
            Transport::Tcp | Transport::Quic | Transport::UserTcp | Transport::SslmTcp => {
                FastOpen::Off
            }
        }
    }

    /// Sets up the server, and the client's way to it, unless they stand already.
    pub(crate) fn set_up(self, bed: &mut Testbed<Variant>) -> Result<(), Error> {
        if bed.serves(&self) {
            return Ok(());
        }
        let transport = self.client_transport(bed)?;
        self.serve(bed)?;
        bed.reach(CLIENT, self, transport, self.mode.early_data());
        Ok(())
    }

    /// Starts the server: one that knows none of the tickets of an earlier one.
    pub(crate) fn serve(self, bed: &mut Testbed<Variant>) -> Result<(), Error> {
        let config = self.server_config(bed.identity(self.key, self.chain)?);
        let transport = match (self.mode.transport, self.peer) {
            (Transport::Quic, _) => ServerTransport::quic(config),
            (Transport::UserTcp | Transport::SslmTcp, Peer::Same) => {
                let stack = bed.endpoints()?.server.clone();
                ServerTransport::UserTcp { stack, tls: tls::Server::new(&config)? }
            }
            _ => {
                let tls = self.is_secure().then(|| tls::Server::new(&config)).transpose()?;
                ServerTransport::Tcp { fast_open: self.server_fast_open(), tls }
            }
        };
        bed.serve(self, transport)
    }

    fn client_transport(self, bed: &mut Testbed<Variant>) -> Result<ClientTransport, Error> {
        let config = self.client_config(&*bed.identity(self.key, self.chain)?);
        Ok(match self.mode.transport {
            Transport::Quic => ClientTransport::Quic { tls: tls::quic::client_config(&config)? },
            Transport::UserTcp | Transport::SslmTcp => {
                let endpoints = bed.endpoints()?;
                let stack = match self.visit {
                    Visit::First => endpoints.client.clone(),
                    Visit::Remembered => endpoints.remembering_client.clone(),
                };
                let tls = tls::Client::new(&config)?;
                ClientTransport::UserTcp { stack, embedding: self.embedding(), tls }
            }
            _ => {
                let tls = self.is_secure().then(|| tls::Client::new(&config)).transpose()?;
                ClientTransport::Tcp { fast_open: self.fast_open(), tls }
            }
        })
    }

    fn is_secure(self) -> bool {
        self.mode.security != Security::Plain
    }
}
