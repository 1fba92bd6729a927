//! What a client keeps of a session to resume it.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{CallerError, Error, Library, Version};

/// A session to resume: a TLS 1.2 session ticket (RFC 5077) or a TLS 1.3 PSK (RFC 8446 §4.6.1).
///
/// It belongs to the [`crate::Client`] whose connection took it, under whatever name
/// ([`crate::Client::with_name`]). A TLS 1.3 ticket is for one use; a TLS
/// 1.2 ticket may be offered again. It holds secrets, which `Debug` does not print.
#[derive(Clone)]
pub struct Ticket(Arc<Inner>);

struct Inner {
    version: Version,
    max_early_data: u32,
    origin: Arc<Origin>,
    secret: Mutex<Secret>,
}

/// Marks the client that a ticket belongs to; compared by address.
#[derive(Debug)]
pub(crate) struct Origin;

/// The libraries' own session values.
pub(crate) enum Secret {
    Rustls12(rustls::client::Tls12ClientSessionValue),
    Rustls13(Box<rustls::client::Tls13ClientSessionValue>),
    OpenSsl(openssl::ssl::SslSession),
    Used,
}

impl Ticket {
    pub(crate) fn new(
        version: Version,
        max_early_data: u32,
        origin: Arc<Origin>,
        secret: Secret,
    ) -> Self {
        Self(Arc::new(Inner { version, max_early_data, origin, secret: Mutex::new(secret) }))
    }

    /// The version that the session was negotiated with, and can be resumed with.
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The library that took it.
    pub fn library(&self) -> Library {
        match &*self.lock() {
            Secret::OpenSsl(_) => Library::OpenSsl,
            _ => Library::Rustls,
        }
    }

    /// Early data that the server accepts with it, in bytes; 0 is none.
    pub fn max_early_data(&self) -> u32 {
        self.0.max_early_data
    }

    /// Whether the server accepts early data with it.
    pub fn allows_early_data(&self) -> bool {
        self.0.max_early_data > 0
    }

    /// Takes the library's value out, for good when it is of TLS 1.3.
    pub(crate) fn redeem(&self, origin: &Arc<Origin>) -> Result<Secret, Error> {
        if !Arc::ptr_eq(&self.0.origin, origin) {
            return Err(CallerError::ForeignTicket.into());
        }
        let mut secret = self.lock();
        match &*secret {
            Secret::Rustls12(value) => Ok(Secret::Rustls12(value.clone())),
            Secret::OpenSsl(value) if self.0.version == Version::Tls12 => {
                Ok(Secret::OpenSsl(value.clone()))
            }
            Secret::Used => Err(CallerError::UsedTicket.into()),
            Secret::Rustls13(_) | Secret::OpenSsl(_) => {
                Ok(core::mem::replace(&mut *secret, Secret::Used))
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Secret> {
        self.0.secret.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("version", &self.0.version)
            .field("max_early_data", &self.0.max_early_data)
            .finish_non_exhaustive()
    }
}
