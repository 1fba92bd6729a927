//! Small counters beside a name, a stretch of time, or something to change.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracker::Class;

use super::cell::Measured;
use super::names::Kind;
use super::spread::{Mould, Sketch, Spread};
use super::top::Add;

/// What is told of a server name, a network or a stretch of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub handshakes: u64,
    pub before_tls13: u64,
    pub tls13: u64,
    pub resumed: u64,
    pub failed: u64,
    pub handshake: Sketch,
    pub round_trip: Sketch,
}

impl Tally {
    pub(crate) fn take(&mut self, times: &Measured, kind: Kind, class: Class) {
        self.handshakes += 1;
        match class {
            Class::Failed => self.failed += 1,
            Class::Resumed | Class::ZeroRtt => self.resumed += 1,
            Class::Full | Class::HelloRetry => {}
        }
        if kind.is_before_tls13() {
            self.before_tls13 += 1;
        } else if kind.version.is_some() {
            self.tls13 += 1;
        }
        if let Some(time) = times.handshake {
            self.handshake.record(time);
        }
        if let Some(time) = times.round_trip {
            self.round_trip.record(time);
        }
    }
}

impl Add for Tally {
    fn add(&mut self, other: &Self) {
        self.handshakes += other.handshakes;
        self.before_tls13 += other.before_tls13;
        self.tls13 += other.tls13;
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.handshake.add(&other.handshake);
        self.round_trip.add(&other.round_trip);
    }
}

/// Handshakes that could have taken fewer round trips, and their round-trip times.
#[derive(Debug, Clone)]
pub(crate) struct Saveable {
    pub count: u64,
    pub round_trip: Spread,
}

impl Saveable {
    pub(crate) fn new(mould: &Mould) -> Saveable {
        Saveable { count: 0, round_trip: mould.spread() }
    }

    pub(crate) fn take(&mut self, round_trip: Option<Duration>) {
        self.count += 1;
        if let Some(time) = round_trip {
            self.round_trip.record(time);
        }
    }

    pub(crate) fn merge(&mut self, other: &Saveable) {
        self.count += other.count;
        self.round_trip.merge(&other.round_trip);
    }
}

/// What handshakes offered and got, counted one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Offers {
    /// A pre-shared key was offered (TLS 1.3).
    pub psk_offered: u64,
    /// It was chosen.
    pub psk_accepted: u64,
    /// A ticket was offered (TLS 1.2).
    pub ticket_offered: u64,
    /// A session was resumed by a ticket or session id (TLS 1.2).
    pub resumed_tls12: u64,
    /// Early data were announced.
    pub early_data_offered: u64,
    /// They were taken; over QUIC likely so.
    pub early_data_taken: u64,
    /// They were refused.
    pub early_data_rejected: u64,
    /// The server asked for another ClientHello.
    pub hello_retry: u64,
    /// encrypted_client_hello was there, in earnest or as GREASE.
    pub ech_offered: u64,
    /// The server asked for a certificate, where that can be seen.
    pub certificate_requested: u64,
    /// Whether it asked cannot be seen.
    pub certificate_request_hidden: u64,
    /// Another protocol came before the ClientHello, as STARTTLS has it.
    pub preceded: u64,
}

impl Add for Offers {
    fn add(&mut self, other: &Self) {
        self.psk_offered += other.psk_offered;
        self.psk_accepted += other.psk_accepted;
        self.ticket_offered += other.ticket_offered;
        self.resumed_tls12 += other.resumed_tls12;
        self.early_data_offered += other.early_data_offered;
        self.early_data_taken += other.early_data_taken;
        self.early_data_rejected += other.early_data_rejected;
        self.hello_retry += other.hello_retry;
        self.ech_offered += other.ech_offered;
        self.certificate_requested += other.certificate_requested;
        self.certificate_request_hidden += other.certificate_request_hidden;
        self.preceded += other.preceded;
    }
}

/// What the capture itself lost or passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Frames {
    /// Frames that the tracker was given.
    pub frames: u64,
    /// Neither TCP nor UDP over IP, or malformed.
    pub other: u64,
    /// Of these, frames that a wrapping hides.
    pub wrapped: tracker::Wrapped,
    /// IP fragments that were not put together.
    pub fragments: u64,
    /// First datagrams of QUIC connections in a version that is not read.
    pub quic_unread: u64,
    /// Of no connection that was followed.
    pub stray: u64,
    /// Connections dropped because there were too many.
    pub dropped_connections: u64,
    /// Frames that the capture lost before they could be looked at.
    pub lost: u64,
}

impl From<&tracker::Counters> for Frames {
    fn from(counters: &tracker::Counters) -> Frames {
        Frames {
            frames: counters.frames,
            other: counters.other,
            wrapped: counters.wrapped,
            fragments: counters.fragments,
            quic_unread: counters.quic_unread,
            stray: counters.stray,
            dropped_connections: counters.dropped,
            lost: 0,
        }
    }
}

impl Frames {
    /// What was counted since `earlier`.
    #[must_use]
    pub(crate) fn since(&self, earlier: &Frames) -> Frames {
        let Frames {
            frames,
            other,
            wrapped,
            fragments,
            quic_unread,
            stray,
            dropped_connections,
            lost,
        } = *self;
        Frames {
            frames: frames.saturating_sub(earlier.frames),
            other: other.saturating_sub(earlier.other),
            wrapped: wrapped.since(&earlier.wrapped),
            fragments: fragments.saturating_sub(earlier.fragments),
            quic_unread: quic_unread.saturating_sub(earlier.quic_unread),
            stray: stray.saturating_sub(earlier.stray),
            dropped_connections: dropped_connections.saturating_sub(earlier.dropped_connections),
            lost: lost.saturating_sub(earlier.lost),
        }
    }
}

impl Add for Frames {
    fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.other += other.other;
        self.wrapped.add_all(&other.wrapped);
        self.fragments += other.fragments;
        self.quic_unread += other.quic_unread;
        self.stray += other.stray;
        self.dropped_connections += other.dropped_connections;
        self.lost += other.lost;
    }
}
