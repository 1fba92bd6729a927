//! What a tracker has seen: every frame is counted in one place.

use serde::Serialize;

use crate::fragments::FragmentDrops;
use crate::wrapping::Wrapped;

/// What a [`crate::Tracker`] has seen.
///
/// Every frame is counted once: `frames` is the sum of `other`, `stray`, `dtls`, `quic_unread`, `followed`,
/// `fragments_waiting` and [`FragmentDrops::total`]. The frames of a datagram that was put together
/// from fragments are all counted as what the datagram is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Frames that were given to the tracker.
    pub frames: u64,
    /// Frames that are neither TCP nor UDP over IP, or are malformed.
    pub other: u64,
    /// Of these, frames that a wrapping hides, by its name.
    pub wrapped: Wrapped,
    /// Frames that held an IP fragment; of a datagram that was in fragments on two levels of a
    /// tunnel, once each.
    pub fragments: u64,
    /// Datagrams put together from fragments.
    pub reassembled: u64,
    /// Frames whose datagram is not complete yet.
    pub fragments_waiting: u64,
    /// Frames whose datagram came to nothing.
    pub fragments_dropped: FragmentDrops,
    /// Frames with DTLS, which is recognised and passed over.
    pub dtls: u64,
    /// DTLS handshakes that began: datagrams with the first ClientHello of one. One that was sent
    /// again counts again, for nothing is remembered.
    pub dtls_handshakes: u64,
    /// Frames with the first datagrams of QUIC connections in a version that is not read.
    pub quic_unread: u64,
    /// Frames with TCP segments of no connection followed, which do not begin one, or with UDP
    /// datagrams of no QUIC connection.
    pub stray: u64,
    /// Frames of connections.
    pub followed: u64,
    /// Connections that began, dropped ones included.
    pub connections: u64,
    /// Connections dropped because there were too many, or they held too much.
    pub dropped: u64,
}

impl Counters {
    /// Adds what another has counted.
    pub fn add(&mut self, other: &Counters) {
        let Counters {
            frames,
            other: neither,
            wrapped,
            fragments,
            reassembled,
            fragments_waiting,
            fragments_dropped,
            dtls,
            dtls_handshakes,
            quic_unread,
            stray,
            followed,
            connections,
            dropped,
        } = *other;
        self.frames += frames;
        self.other += neither;
        self.wrapped.add_all(&wrapped);
        self.fragments += fragments;
        self.reassembled += reassembled;
        self.fragments_waiting += fragments_waiting;
        self.fragments_dropped.add(&fragments_dropped);
        self.dtls += dtls;
        self.dtls_handshakes += dtls_handshakes;
        self.quic_unread += quic_unread;
        self.stray += stray;
        self.followed += followed;
        self.connections += connections;
        self.dropped += dropped;
    }

    /// Whether every frame is explained.
    #[must_use]
    pub const fn add_up(&self) -> bool {
        let sum = self
            .other
            .saturating_add(self.stray)
            .saturating_add(self.dtls)
            .saturating_add(self.quic_unread)
            .saturating_add(self.followed)
            .saturating_add(self.fragments_waiting)
            .saturating_add(self.fragments_dropped.total());
        self.frames == sum
    }
}
