//! The session store of one connection: it offers one ticket and keeps the newest that arrives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::ticket::{Origin, Secret};
use crate::{CallerError, Error, Ticket, Version};

/// The session that a connection may offer.
#[derive(Default)]
enum Offered {
    /// None: a full handshake.
    #[default]
    Nothing,
    /// A TLS 1.2 session.
    Tls12(Tls12ClientSessionValue),
    /// A TLS 1.3 ticket.
    Tls13(Box<Tls13ClientSessionValue>),
}

/// One connection's store. It never hints at a group, so every connection offers the same key share.
#[derive(Default)]
pub(crate) struct TicketStore(Mutex<State>);

#[derive(Default)]
struct State {
    offered: Offered,
    newest: Option<Secret>,
}

impl TicketStore {
    /// A store that offers `ticket`, used up if it is of TLS 1.3, or nothing.
    pub(crate) fn for_ticket(
        ticket: Option<&Ticket>,
        origin: &Arc<Origin>,
    ) -> Result<Arc<Self>, Error> {
        let offered = match ticket.map(|ticket| ticket.redeem(origin)).transpose()? {
            Some(Secret::Rustls12(value)) => Offered::Tls12(value),
            Some(Secret::Rustls13(value)) => Offered::Tls13(value),
            Some(_) => return Err(CallerError::ForeignTicket.into()),
            None => Offered::Nothing,
        };
        Ok(Arc::new(Self(Mutex::new(State { offered, newest: None }))))
    }

    /// The newest ticket, once.
    pub(crate) fn take(&self, origin: &Arc<Origin>) -> Option<Ticket> {
        let secret = self.lock().newest.take()?;
        let (version, max_early_data) = match &secret {
            Secret::Rustls13(value) => (Version::Tls13, value.max_early_data_size()),
            _ => (Version::Tls12, 0),
        };
        Some(Ticket::new(version, max_early_data, Arc::clone(origin), secret))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl core::fmt::Debug for TicketStore {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("TicketStore")
    }
}

impl ClientSessionStore for TicketStore {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.lock().newest = Some(Secret::Rustls12(value));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        match &self.lock().offered {
            Offered::Tls12(value) => Some(value.clone()),
            _ => None,
        }
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.lock().offered = Offered::Nothing;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.lock().newest = Some(Secret::Rustls13(Box::new(value)));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut state = self.lock();
        match core::mem::take(&mut state.offered) {
            Offered::Tls13(value) => Some(*value),
            other => {
                state.offered = other;
                None
            }
        }
    }
}
