//! The client side of either library.

use std::sync::Arc;

use crate::config::ClientConfig;
use crate::{CallerError, Error, Library, Session, Ticket};
use crate::{openssl_engine, rustls_engine};

/// A client of one library and one configuration. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Rustls(Arc<rustls_engine::Client>),
    OpenSsl(Arc<openssl_engine::Client>),
}

impl Client {
    /// Prepares a client.
    ///
    /// # Errors
    /// [`Error::Caller`] when the configuration cannot work with its library.
    pub fn new(config: &ClientConfig) -> Result<Self, Error> {
        config.check()?;
        let engine = match config.library {
            Library::Rustls => Engine::Rustls(Arc::new(rustls_engine::Client::new(config)?)),
            Library::OpenSsl => Engine::OpenSsl(Arc::new(openssl_engine::Client::new(config)?)),
        };
        Ok(Self { config: Arc::new(config.clone()), engine })
    }

    /// Begins a connection, offering exactly `ticket` or none. The ClientHello comes out of the first
    /// `write_tls`. A TLS 1.3 ticket is used up by this.
    ///
    /// # Errors
    /// [`CallerError::ForeignTicket`], [`CallerError::UsedTicket`], or the library's failures.
    pub fn start(&self, ticket: Option<&Ticket>) -> Result<Box<dyn Session>, Error> {
        if let Some(ticket) = ticket
            && !self.config.versions.contains(&ticket.version())
        {
            return Err(CallerError::ForeignTicket.into());
        }
        match &self.engine {
            Engine::Rustls(client) => client.start(ticket),
            Engine::OpenSsl(client) => client.start(ticket),
        }
    }

    /// The same client for another server name: it trusts the same roots, offers the same, and may offer the
    /// tickets that this one took. Whether the certificate of the ticket's own session carries the name too
    /// is for the caller to know (RFC 8446 §4.6.1 demands it): no library looks again when it resumes.
    ///
    /// # Errors
    /// [`CallerError::ServerName`].
    pub fn with_name(&self, name: &str) -> Result<Self, Error> {
        let config = ClientConfig { server_name: name.to_owned(), ..(*self.config).clone() };
        config.check()?;
        let engine = match &self.engine {
            Engine::Rustls(client) => Engine::Rustls(Arc::new(client.with_name(name)?)),
            Engine::OpenSsl(client) => Engine::OpenSsl(Arc::new(client.with_name(name))),
        };
        Ok(Self { config: Arc::new(config), engine })
    }

    /// The configuration that it was made of.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }
}
