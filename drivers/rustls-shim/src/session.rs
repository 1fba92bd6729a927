//! Sessions as objects that move: rustls keeps them in a store, this one hands them over.
//!
//! rustls calls its store only while it is inside `ClientConnection::new` (to ask for a session) and
//! `process_new_packets` (to give one). Both happen on the caller's thread, so that two places of the
//! thread are enough, and there is neither a lock nor a configuration for each connection.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::Fail;
use crate::context::ClientSide;

thread_local! {
    static OFFERED: Cell<Option<Box<Kept>>> = const { Cell::new(None) };
    static FRESH: Cell<Option<Box<Kept>>> = const { Cell::new(None) };
}

/// What rustls wants to have back for a resumption.
#[derive(Debug)]
pub enum Kept {
    /// A ticket or a session ID, and the master secret; may be used again (RFC 5077; RFC 5246 §7.4.1.2).
    Tls12(Tls12ClientSessionValue),
    /// A ticket and its pre-shared key; used once (RFC 8446 §C.4).
    Tls13(Tls13ClientSessionValue),
}

/// `wt_session`: a session that a client may resume, TLS 1.3's once and TLS 1.2's again and again.
pub struct Session {
    kept: Mutex<Option<Box<Kept>>>,
    /// Where it was made: rustls resumes only with the very verifier that saw the certificate.
    pub origin: Arc<ClientSide>,
}

impl Session {
    /// A session of a connection of this side.
    pub fn new(kept: Box<Kept>, origin: Arc<ClientSide>) -> Self {
        Self { kept: Mutex::new(Some(kept)), origin }
    }

    /// What the next connection is to offer.
    fn offer(&self) -> Result<Box<Kept>, Fail> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_deref() {
            Some(Kept::Tls12(value)) => Ok(Box::new(Kept::Tls12(value.clone()))),
            Some(Kept::Tls13(_)) => kept.take().ok_or(Fail::Text("no session")),
            None => Err(Fail::Text(
                "this TLS 1.3 session has been used, and rustls uses one once: take the newest",
            )),
        }
    }
}

/// Does what makes a connection, with `session` there to be found.
pub fn offering<T>(session: Option<&Session>, make: impl FnOnce() -> T) -> Result<T, Fail> {
    OFFERED.set(session.map(Session::offer).transpose()?);
    let made = make();
    OFFERED.set(None);
    Ok(made)
}

/// The session that the last `process_new_packets` of this thread brought.
pub fn fresh() -> Option<Box<Kept>> {
    FRESH.take()
}

/// The store of every client configuration.
#[derive(Debug)]
pub struct Store;

impl ClientSessionStore for Store {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    /// The first group is the one that was asked for.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        FRESH.set(Some(Box::new(Kept::Tls12(value))));
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        match *OFFERED.take()? {
            Kept::Tls12(value) => Some(value),
            Kept::Tls13(_) => None,
        }
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        FRESH.set(Some(Box::new(Kept::Tls13(value))));
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        match OFFERED.take().map(|kept| *kept) {
            Some(Kept::Tls13(value)) => Some(value),
            other => {
                OFFERED.set(other.map(Box::new));
                None
            }
        }
    }
}
