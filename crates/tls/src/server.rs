//! The server side of either library.

use std::sync::Arc;

use crate::config::ServerConfig;
use crate::{Error, Library, Session};
use crate::{openssl_engine, rustls_engine};

/// A server of one library and one configuration, with its ticket keys and its store of sessions.
/// Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Rustls(Arc<rustls_engine::Server>),
    OpenSsl(Arc<openssl_engine::Server>),
}

impl Server {
    /// Prepares a server. Ticket keys are drawn anew: tickets of another `Server` are not resumed.
    ///
    /// # Errors
    /// [`Error::Caller`] when the configuration cannot work with its library.
    pub fn new(config: &ServerConfig) -> Result<Self, Error> {
        config.check()?;
        let engine = match config.library {
            Library::Rustls => Engine::Rustls(Arc::new(rustls_engine::Server::new(config)?)),
            Library::OpenSsl => Engine::OpenSsl(Arc::new(openssl_engine::Server::new(config)?)),
        };
        Ok(Self { config: Arc::new(config.clone()), engine })
    }

    /// Begins a connection; it waits for the ClientHello.
    ///
    /// # Errors
    /// The library's failures.
    pub fn accept(&self) -> Result<Box<dyn Session>, Error> {
        match &self.engine {
            Engine::Rustls(server) => server.accept(),
            Engine::OpenSsl(server) => server.accept(),
        }
    }

    /// The configuration that it was made of.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }
}
