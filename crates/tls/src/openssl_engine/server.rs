//! An OpenSSL server.

use openssl::pkey::PKey;
use openssl::ssl::{
    AlpnError, Ssl, SslContext, SslMethod, SslMode, SslOptions, SslSessionCacheMode,
};
use openssl::x509::X509;

use super::context::{builder, group_list};
use super::fault::library;
use super::ffi;
use super::session::{OpenSslSession, ServerSide, Side};
use crate::config::ServerConfig;
use crate::error::config as config_error;
use crate::{Error, Session};

/// Sessions that a server which accepts early data remembers.
const STORED_SESSIONS: i32 = 4096;

/// A prepared OpenSSL server.
pub(crate) struct Server {
    context: SslContext,
    early_data: bool,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server").field("early_data", &self.early_data).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn new(config: &ServerConfig) -> Result<Self, Error> {
        let mut context = builder(
            SslMethod::tls_server(),
            &config.versions,
            config.key_exchange,
            &group_list(&config.groups, 0),
            config.key_log.as_ref(),
        )?;
        context.set_mode(SslMode::NO_AUTO_CHAIN);
        let identity = &config.identity;
        let mut chain = identity.chain_der().iter().map(|der| X509::from_der(der));
        let leaf = chain.next().ok_or_else(|| config_error("the identity has no certificate"))?;
        context.set_certificate(leaf.map_err(library)?.as_ref()).map_err(library)?;
        for certificate in chain {
            context.add_extra_chain_cert(certificate.map_err(library)?).map_err(library)?;
        }
        let key = PKey::private_key_from_pkcs8(identity.private_key_der()).map_err(library)?;
        context.set_private_key(&key).map_err(library)?;
        set_alpn(&mut context, &config.alpn);

        context.set_session_id_context(b"wiretax").map_err(library)?;
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
        context.set_num_tickets(usize::from(config.tickets)).map_err(library)?;
        if !config.tickets {
            context.set_options(SslOptions::NO_TICKET);
        }
        context.set_max_early_data(config.max_early_data).map_err(library)?;
        if config.max_early_data > 0 {
            // OpenSSL's guard against replay (RFC 8446 §8.1) stays on: sessions are remembered, and each
            // is taken once.
            context.set_session_cache_mode(SslSessionCacheMode::SERVER);
            context.set_session_cache_size(STORED_SESSIONS);
            if !ffi::set_recv_max_early_data(&mut context, config.max_early_data) {
                return Err(library("SSL_CTX_set_recv_max_early_data"));
            }
        }
        Ok(Self { context: context.build(), early_data: config.max_early_data > 0 })
    }

    pub(crate) fn accept(&self) -> Result<Box<dyn Session>, Error> {
        let mut ssl = Ssl::new(&self.context).map_err(library)?;
        ssl.set_accept_state();
        let side = Side::Server(ServerSide { reads_early_data: self.early_data });
        Ok(Box::new(OpenSslSession::new(ssl, side)?))
    }
}

/// The server's preference decides. Nothing in common is fatal (RFC 7301 §3.2).
fn set_alpn(context: &mut openssl::ssl::SslContextBuilder, names: &[Vec<u8>]) {
    if names.is_empty() {
        return;
    }
    let names = names.to_vec();
    context.set_alpn_select_callback(move |_, offered| {
        names
            .iter()
            .find_map(|name| alpn_names(offered).find(|offer| offer == name))
            .ok_or(AlpnError::ALERT_FATAL)
    });
}

/// The names of a list in wire form (RFC 7301 §3.1).
fn alpn_names(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (&len, rest) = list.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(len))?;
        list = rest;
        Some(name)
    })
}
