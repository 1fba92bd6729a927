//! A connection as its owner and its tasks see it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use serde::Serialize;
use tokio::sync::Notify;
use units::Time;

use crate::{Failure, Protocol};

/// What is known of a connection, times by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// This side's address and port.
    pub local: SocketAddr,
    /// The server's address and port.
    pub peer: SocketAddr,
    /// What was negotiated.
    pub protocol: Protocol,
    /// connect() was called, or QUIC's first datagram was due.
    pub started: Time,
    /// TCP was connected; `None` over QUIC, and where the SYN left with the first bytes.
    pub connected: Option<Time>,
    /// The handshake of TLS or QUIC was over; `None` in clear, and where early data goes before.
    pub secured: Option<Time>,
    /// Requests could be sent.
    pub ready: Time,
    /// Whether an earlier session was resumed; with early data, whether that is asked for. `None` in clear.
    pub resumed: Option<bool>,
    /// The application protocol, if one was negotiated.
    pub alpn: Option<String>,
    /// What TLS says; `None` in clear, and where early data goes before it says anything.
    pub tls: Option<tls::Facts>,
}

/// How a connection ended.
#[derive(Debug, Clone)]
pub enum Ended {
    /// In good order: closed by either side, nothing under way.
    Closed,
    /// The peer sent GOAWAY without an error: nothing new may be asked for on it.
    GoAway,
    /// By a failure.
    Failed(Failure),
}

/// What a connection's tasks tell its owner.
#[derive(Debug, Default)]
pub(super) struct State {
    ended: RefCell<Option<Ended>>,
    changed: Notify,
    active: Cell<usize>,
}

impl State {
    /// The first word on the end counts.
    pub(super) fn end(&self, ended: Ended) {
        self.ended.borrow_mut().get_or_insert(ended);
        self.changed.notify_waiters();
    }

    /// The limit of exchanges may have changed.
    pub(super) fn limit_changed(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    pub(super) async fn closed(&self) -> Ended {
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            self.changed.notified().await;
        }
    }

    pub(super) fn active(&self) -> usize {
        self.active.get()
    }

    /// Waits until fewer than `limit` exchanges are under way, and takes a place among them.
    pub(super) async fn enter(&self, limit: impl Fn() -> usize) -> Result<Place<'_>, Failure> {
        loop {
            if let Some(ended) = self.ended() {
                return Err(ended.into());
            }
            if self.active.get() < limit() {
                self.active.set(self.active.get() + 1);
                return Ok(Place(self));
            }
            self.changed.notified().await;
        }
    }
}

/// A place among a connection's exchanges.
pub(super) struct Place<'a>(&'a State);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        self.0.changed.notify_waiters();
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Failure {
        let during = "asking";
        match ended {
            Ended::Closed => Failure::Broken { during, detail: "it was closed".to_owned() },
            Ended::GoAway => Failure::Broken { during, detail: "the peer sent GOAWAY".to_owned() },
            Ended::Failed(failure) => failure,
        }
    }
}
