//! What a server counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::Protocol;

/// A server's counters. A clone is another handle to the same ones; any thread may hold one.
#[derive(Debug, Clone, Default)]
pub struct Counters(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    connections: AtomicU64,
    open_connections: AtomicU64,
    full_handshakes: AtomicU64,
    resumed_handshakes: AtomicU64,
    failed_handshakes: AtomicU64,
    requests: AtomicU64,
    pushed: AtomicU64,
    pushed_bytes: AtomicU64,
    body_bytes_sent: AtomicU64,
    body_bytes_received: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
    memory: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Snapshot {
    /// Connections accepted so far.
    pub connections: u64,
    /// Of them, those open now.
    pub open_connections: u64,
    /// Handshakes of TLS or QUIC in full.
    pub full_handshakes: u64,
    /// Handshakes that resumed a session.
    pub resumed_handshakes: u64,
    /// Handshakes that failed.
    pub failed_handshakes: u64,
    /// Requests whose head was read.
    pub requests: u64,
    /// Responses that were pushed: promised to a client that takes them.
    pub pushed: u64,
    /// Bytes of their bodies given to the transport, also of those that the client then cancelled.
    pub pushed_bytes: u64,
    /// Bytes of response bodies given to the transport, pushed or not.
    pub body_bytes_sent: u64,
    /// Bytes of request bodies read.
    pub body_bytes_received: u64,
    /// Bytes that the protocols wrote above TLS or QUIC: response bodies, and heads and frames around them.
    pub bytes_written: u64,
    /// Bytes that the protocols read above TLS or QUIC: requests, and what else the peer's frames say.
    pub bytes_read: u64,
    /// An estimate of the bytes that the open connections and streams hold in this process: fixed sums
    /// for each protocol's connection and each stream, not what the kernel holds for its sockets. A
    /// test compares it with what an allocator counts.
    pub memory: u64,
}

/// Bytes that one more idle connection holds, as tests/memory.rs counted them.
pub(crate) fn connection_memory(protocol: Option<Protocol>) -> u64 {
    match protocol {
        // Before the protocol is known: the task, rustls with its buffers.
        None => 24 * 1024,
        Some(Protocol::Http1Clear) => 23 * 1024,
        Some(Protocol::Http1) => 29 * 1024,
        Some(Protocol::Http3) => 47 * 1024,
        // Most of it is zlib's, for the headers of both directions.
        Some(Protocol::Spdy3 | Protocol::Spdy31) => 330 * 1024,
        Some(_) => 45 * 1024,
    }
}

/// Bytes that one more stream holds: the head's fields, the library's state, our own.
pub(crate) const STREAM_MEMORY: u64 = 2 * 1024;

impl Counters {
    /// All counters now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let cells = &*self.0;
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Snapshot {
            connections: read(&cells.connections),
            open_connections: read(&cells.open_connections),
            full_handshakes: read(&cells.full_handshakes),
            resumed_handshakes: read(&cells.resumed_handshakes),
            failed_handshakes: read(&cells.failed_handshakes),
            requests: read(&cells.requests),
            pushed: read(&cells.pushed),
            pushed_bytes: read(&cells.pushed_bytes),
            body_bytes_sent: read(&cells.body_bytes_sent),
            body_bytes_received: read(&cells.body_bytes_received),
            bytes_written: read(&cells.bytes_written),
            bytes_read: read(&cells.bytes_read),
            memory: read(&cells.memory),
        }
    }

    /// Counts a connection that is open until the guard is dropped.
    pub(crate) fn connection(&self) -> Held {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        self.0.open_connections.fetch_add(1, Ordering::Relaxed);
        let mut held = Held { counters: self.clone(), memory: 0, is_connection: true };
        held.set_memory(connection_memory(None));
        held
    }

    /// Counts a request that holds memory until the guard is dropped.
    pub(crate) fn request(&self) -> Held {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.stream()
    }

    /// Counts a pushed response that holds memory until the guard is dropped.
    pub(crate) fn promise(&self) -> Held {
        self.0.pushed.fetch_add(1, Ordering::Relaxed);
        self.stream()
    }

    fn stream(&self) -> Held {
        let mut held = Held { counters: self.clone(), memory: 0, is_connection: false };
        held.set_memory(STREAM_MEMORY);
        held
    }

    pub(crate) fn handshake(&self, resumed: bool) {
        let cell = if resumed { &self.0.resumed_handshakes } else { &self.0.full_handshakes };
        cell.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn handshake_failed(&self) {
        self.0.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: u64) {
        self.0.body_bytes_sent.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn pushed(&self, bytes: u64) {
        self.0.pushed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.0.body_bytes_received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that a protocol wrote.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.0.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that a protocol read.
    pub(crate) fn read(&self, bytes: u64) {
        self.0.bytes_read.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Something that is counted as long as it lives.
#[derive(Debug)]
pub(crate) struct Held {
    counters: Counters,
    memory: u64,
    is_connection: bool,
}

impl Held {
    /// Corrects the memory that it holds.
    pub(crate) fn set_memory(&mut self, bytes: u64) {
        let cell = &self.counters.0.memory;
        cell.fetch_add(bytes, Ordering::Relaxed);
        cell.fetch_sub(self.memory, Ordering::Relaxed);
        self.memory = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set_memory(0);
        if self.is_connection {
            self.counters.0.open_connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
