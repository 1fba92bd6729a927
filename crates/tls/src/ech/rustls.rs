//! A rustls client with ECH.

use std::sync::Arc;

use rustls::client::{EchConfig, EchGreaseConfig, EchMode, EchStatus, Resumption};
use rustls::crypto::aws_lc_rs::hpke;
use rustls::crypto::hpke::Hpke;
// The configurations that a server gives are of a type with no other way to its bytes.
use rustls::internal::msgs::codec::Codec;
use rustls::quic;
use rustls::{ClientConfig, ClientConnection, PeerIncompatible, RootCertStore};
use rustls_pki_types::{CertificateDer, EchConfigListBytes, ServerName};

use super::{Answer, Client, Endpoint, Offer};
use crate::error::config as config_error;
use crate::rustls_engine::{error, library, provider};
use crate::{CallerError, Error, Group, KeyExchange, Version};

/// By which a placeholder is made: what most configurations have.
const PLACEHOLDER: &dyn Hpke = hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;

struct Connecting {
    connection: ClientConnection,
    rejected: Option<Option<Vec<u8>>>,
}

pub(super) fn start(
    client: &Client,
    name: &str,
    offer: &Offer,
) -> Result<Box<dyn Endpoint>, Error> {
    let config = Arc::new(tls_config(client, offer)?);
    let connection = ClientConnection::new(config, server_name(name)?).map_err(error)?;
    Ok(Box::new(Connecting { connection, rejected: None }))
}

/// The ClientHello's bytes over QUIC.
pub(super) fn quic_hello_len(
    client: &Client,
    name: &str,
    offer: &Offer,
    parameters: usize,
) -> Result<usize, Error> {
    let config = Arc::new(tls_config(client, offer)?);
    let parameters = vec![0; parameters];
    let mut connection =
        quic::ClientConnection::new(config, quic::Version::V1, server_name(name)?, parameters)
            .map_err(error)?;
    let mut hello = Vec::new();
    // The keys for what comes after it are of no use here.
    drop(connection.write_hs(&mut hello));
    Ok(hello.len())
}

fn server_name(name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| CallerError::ServerName(name.to_owned()).into())
}

fn tls_config(client: &Client, offer: &Offer) -> Result<ClientConfig, Error> {
    let pair = [Group::X25519MlKem768, Group::X25519];
    let shares = if client.groups.starts_with(&pair) { 2 } else { 1 };
    let provider = provider(&[Version::Tls13], KeyExchange::Ecdhe, &client.groups, shares)?;
    let builder = ClientConfig::builder_with_provider(provider);
    let wrong = |cause: rustls::Error| config_error(cause.to_string());
    let builder = match mode(offer)? {
        Some(mode) => builder.with_ech(mode).map_err(wrong)?,
        None => builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(wrong)?,
    };
    let mut roots = RootCertStore::empty();
    for root in &client.roots {
        roots.add(CertificateDer::from(root.clone())).map_err(error)?;
    }
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn mode(offer: &Offer) -> Result<Option<EchMode>, Error> {
    Ok(match offer {
        Offer::Nothing => None,
        Offer::Placeholder => {
            let (key, _) = PLACEHOLDER.generate_key_pair().map_err(error)?;
            Some(EchMode::Grease(EchGreaseConfig::new(PLACEHOLDER, key)))
        }
        Offer::Sealed(list) => {
            let list = EchConfigListBytes::from(list.as_slice());
            Some(EchConfig::new(list, hpke::ALL_SUPPORTED_SUITES).map_err(error)?.into())
        }
    })
}

impl Endpoint for Connecting {
    fn read_tls(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() && self.rejected.is_none() {
            self.connection.read_tls(&mut bytes).map_err(library)?;
            match self.connection.process_new_packets() {
                Ok(_) => {}
                Err(rustls::Error::PeerIncompatible(
                    PeerIncompatible::ServerRejectedEncryptedClientHello(configs),
                )) => {
                    self.rejected = Some(configs.map(|configs| {
                        let mut list = Vec::new();
                        configs.encode(&mut list);
                        list
                    }));
                }
                Err(cause) => return Err(error(cause)),
            }
        }
        Ok(())
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        while self.connection.wants_write() {
            self.connection.write_tls(out).map_err(library)?;
        }
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        if let Some(configs) = &self.rejected {
            return Some(Answer::Rejected(configs.clone()));
        }
        if self.connection.is_handshaking() {
            return None;
        }
        Some(match self.connection.ech_status() {
            EchStatus::Accepted => Answer::Accepted,
            _ => Answer::NotOffered,
        })
    }

    fn server_name(&self) -> Option<String> {
        None
    }
}
