//! Sessions to resume, kept by each thread for itself: newest first, each used once.
//!
//! rustls asks its store through a shared reference; thread-local storage answers without a lock. A
//! worker thread belongs to one run and one server, so the name needs no looking at.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::options::limits::TICKETS;

thread_local! {
    static TLS13: RefCell<VecDeque<Tls13ClientSessionValue>> = const { RefCell::new(VecDeque::new()) };
    static TLS12: RefCell<VecDeque<Tls12ClientSessionValue>> = const { RefCell::new(VecDeque::new()) };
    static GROUP: Cell<Option<NamedGroup>> = const { Cell::new(None) };
    static RESUME: Cell<bool> = const { Cell::new(false) };
    static TAKEN: Cell<bool> = const { Cell::new(false) };
    static KEEP: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread keeps any tickets: of no use where nothing is resumed.
pub(crate) fn keep(keep: bool) {
    KEEP.set(keep);
}

/// Says whether the connection that this thread makes next is to resume a session.
pub(crate) fn resume_next(resume: bool) {
    RESUME.set(resume);
    TAKEN.set(false);
}

/// Whether that connection found a session to resume.
pub(crate) fn taken() -> bool {
    TAKEN.get()
}

/// Keeps the newest; forgets the oldest.
fn keep_newest<T>(all: &RefCell<VecDeque<T>>, new: T) {
    let mut all = all.borrow_mut();
    if all.len() >= TICKETS {
        all.pop_front();
    }
    all.push_back(new);
}

fn take_newest<T>(all: &RefCell<VecDeque<T>>) -> Option<T> {
    if !RESUME.get() {
        return None;
    }
    let newest = all.borrow_mut().pop_back();
    TAKEN.set(TAKEN.get() || newest.is_some());
    newest
}

/// The store that all workers' configurations name.
#[derive(Debug)]
pub(crate) struct ThreadTickets;

impl ClientSessionStore for ThreadTickets {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        GROUP.set(Some(group));
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        GROUP.get()
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        if KEEP.get() {
            TLS12.with(|all| keep_newest(all, value));
        }
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        TLS12.with(take_newest)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        if KEEP.get() {
            TLS13.with(|all| keep_newest(all, value));
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        TLS13.with(take_newest)
    }
}
