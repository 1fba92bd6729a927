//! Configurations for QUIC, whose packets take the place of TLS records (RFC 9001): rustls only, TLS 1.3
//! only. What they offer and accept is as with [`crate::Client`] and [`crate::Server`].

use std::sync::Arc;

use rustls::client::Resumption;

use crate::config::{ClientConfig, ServerConfig};
use crate::error::config as config_error;
use crate::rustls_engine::{self, TicketStore};
use crate::ticket::Origin;
use crate::{CallerError, Error, Library, Ticket, Version};

/// A client configuration fit for QUIC, from which every connection gets its own.
///
/// # Errors
/// As [`crate::Client::new`]; [`CallerError::Unsupported`] unless the library is rustls;
/// [`CallerError::Config`] unless TLS 1.3 is among the versions.
pub fn client_config(config: &ClientConfig) -> Result<Client, Error> {
    check(config.library, &config.versions)?;
    let config = ClientConfig { versions: vec![Version::Tls13], ..config.clone() };
    config.check()?;
    Ok(Client {
        base: Arc::new(rustls_engine::client_tls_config(&config)?),
        origin: Arc::new(Origin),
        server_name: config.server_name.into(),
    })
}

/// A server configuration fit for QUIC. With early data, the size is without limit, as QUIC demands
/// (RFC 9001 §4.6.1), and sessions are remembered and taken once.
///
/// # Errors
/// As [`crate::Server::new`]; [`CallerError::Unsupported`] unless the library is rustls;
/// [`CallerError::Config`] unless TLS 1.3 is among the versions.
pub fn server_config(config: &ServerConfig) -> Result<Arc<rustls::ServerConfig>, Error> {
    check(config.library, &config.versions)?;
    let config = ServerConfig { versions: vec![Version::Tls13], ..config.clone() };
    config.check()?;
    let mut tls = rustls_engine::server_tls_config(&config)?;
    if config.max_early_data > 0 {
        tls.max_early_data_size = u32::MAX;
    }
    Ok(Arc::new(tls))
}

/// A client for QUIC. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    base: Arc<rustls::ClientConfig>,
    origin: Arc<Origin>,
    server_name: Arc<str>,
}

/// What one connection needs: its configuration, and where its tickets arrive.
#[derive(Clone, Debug)]
pub struct Started {
    /// The configuration of this one connection; give it to the QUIC library.
    pub tls: Arc<rustls::ClientConfig>,
    /// Where this connection's tickets arrive.
    pub tickets: Tickets,
}

/// The tickets that one connection receives.
#[derive(Clone, Debug)]
pub struct Tickets {
    store: Arc<TicketStore>,
    origin: Arc<Origin>,
}

impl Client {
    /// The name that the server is asked for, and that its certificate must carry.
    #[must_use]
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Prepares one connection that offers exactly `ticket` or none. The ticket is used up by this.
    ///
    /// # Errors
    /// [`CallerError::ForeignTicket`] or [`CallerError::UsedTicket`].
    pub fn start(&self, ticket: Option<&Ticket>) -> Result<Started, Error> {
        let store = TicketStore::for_ticket(ticket, &self.origin)?;
        let mut tls = (*self.base).clone();
        tls.resumption = Resumption::store(store.clone());
        let tickets = Tickets { store, origin: Arc::clone(&self.origin) };
        Ok(Started { tls: Arc::new(tls), tickets })
    }
}

impl Tickets {
    /// The newest ticket that arrived, once.
    pub fn take_ticket(&self) -> Option<Ticket> {
        self.store.take(&self.origin)
    }
}

fn check(library: Library, versions: &[Version]) -> Result<(), Error> {
    if library != Library::Rustls {
        return Err(CallerError::Unsupported {
            library,
            feature: "QUIC (RFC 9001) through this crate",
            hint: "use rustls",
        }
        .into());
    }
    // RFC 9001 §4.2.
    if !versions.contains(&Version::Tls13) {
        return Err(config_error("QUIC needs TLS 1.3"));
    }
    Ok(())
}
