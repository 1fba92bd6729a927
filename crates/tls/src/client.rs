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

    /// The configuration that it was made of.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }
}
