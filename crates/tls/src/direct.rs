//! Configurations and facts for who drives rustls on its own: an asynchronous stream over TCP, where
//! [`crate::Session`] would hold too much or too little. What they offer and accept is as with
//! [`crate::Client`] and [`crate::Server`]; resumption on the client is the caller's to set.

use std::sync::Arc;

use crate::config::{ClientConfig, ServerConfig};
use crate::rustls_engine;
use crate::{CallerError, Error, Facts, Library};

/// The rustls configuration that `config` means, without resumption. The caller sets the store of its
/// sessions, and names the server of each connection.
///
/// # Errors
/// As [`crate::Client::new`]; [`CallerError::Unsupported`] unless the library is rustls.
pub fn client_config(config: &ClientConfig) -> Result<rustls::ClientConfig, Error> {
    check(config.library)?;
    config.check()?;
    rustls_engine::client_tls_config(config)
}

/// The rustls configuration that `config` means. Ticket keys are drawn anew.
///
/// # Errors
/// As [`crate::Server::new`]; [`CallerError::Unsupported`] unless the library is rustls.
pub fn server_config(config: &ServerConfig) -> Result<Arc<rustls::ServerConfig>, Error> {
    check(config.library)?;
    config.check()?;
    rustls_engine::server_tls_config(config).map(Arc::new)
}

/// What rustls says of a connection. What is read off the wire by a [`crate::Session`] is not there: key
/// shares, the length of the ClientHello, HelloRetryRequest, the server's name.
#[must_use]
pub fn facts(state: &rustls::CommonState) -> Facts {
    rustls_engine::common_facts(state)
}

/// Whose fault a rustls error is.
#[must_use]
pub fn error(error: rustls::Error) -> Error {
    rustls_engine::error(error)
}

fn check(library: Library) -> Result<(), Error> {
    if library == Library::Rustls {
        return Ok(());
    }
    let feature = "a stream that the caller drives";
    Err(CallerError::Unsupported { library, feature, hint: "use rustls" }.into())
}
