//! What a server saw of each connection.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;
use units::Time;

use crate::CpuScope;

/// Most records that wait in a [`ServerLog`] unless said otherwise.
pub const DEFAULT_LOG_CAPACITY: usize = 65_536;

/// One connection as the server saw it, by CLOCK_MONOTONIC. A step that did not happen is `None`.
#[derive(Debug, Clone, Serialize)]
pub struct ServerRecord {
    /// The client's address and port.
    pub peer: SocketAddr,
    /// The application got the connection: `accept()` returned, or quinn gave the first datagram.
    pub accepted: Time,
    /// The first bytes were read.
    pub first_bytes: Option<Time>,
    /// The ClientHello was there wholly and its answer was ready to be written.
    pub hello_received: Option<Time>,
    /// The client's Finished was read.
    pub handshake_complete: Option<Time>,
    /// The whole request was there.
    pub request_received: Option<Time>,
    /// The response was given to the transport: just before the call.
    pub response_sent: Option<Time>,
    /// The connection's end on this side.
    pub closed: Option<Time>,
    /// Whether the request was there before the client's Finished: in early data.
    pub early_request: bool,
    /// Whether data in the client's SYN was taken: by TCP Fast Open, as TCP_INFO says, or by SSLmTCP.
    pub syn_data: bool,
    /// CPU time spent on it.
    pub cpu: Duration,
    /// What `cpu` covers.
    pub cpu_scope: CpuScope,
    /// CPU time inside the TLS library until the response was sent; `None` where it is not told apart.
    pub crypto: Option<Duration>,
    /// What TLS says; `None` for plain TCP, and for QUIC where the handshake did not get so far.
    pub facts: Option<tls::Facts>,
    /// Writes to TCP, and how many of them took only a part (each flight is one write).
    pub writes: u32,
    /// Of `writes`, those that took only a part.
    pub partial_writes: u32,
    /// Why it ended, if not by the client's orderly close.
    pub error: Option<String>,
}

impl ServerRecord {
    pub(crate) fn new(peer: SocketAddr, accepted: Time, cpu_scope: CpuScope) -> Self {
        ServerRecord {
            peer,
            accepted,
            first_bytes: None,
            hello_received: None,
            handshake_complete: None,
            request_received: None,
            response_sent: None,
            closed: None,
            early_request: false,
            syn_data: false,
            cpu: Duration::ZERO,
            cpu_scope,
            crypto: None,
            facts: None,
            writes: 0,
            partial_writes: 0,
            error: None,
        }
    }
}

/// Records of finished connections, until they are taken. Past its capacity new ones are counted and
/// dropped. A clone is another handle to the same log; any thread may hold one.
#[derive(Debug, Clone)]
pub struct ServerLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    records: VecDeque<ServerRecord>,
    dropped: u64,
}

impl ServerLog {
    /// An empty log of at most `capacity` records.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let shared = Shared { state: Mutex::default(), arrived: Notify::new(), capacity };
        ServerLog { shared: Arc::new(shared) }
    }

    /// Takes all records, oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<ServerRecord> {
        self.state().records.drain(..).collect()
    }

    /// Takes the newest record of the client at `peer`, if it is there.
    #[must_use]
    pub fn take(&self, peer: SocketAddr) -> Option<ServerRecord> {
        let mut state = self.state();
        let at = state.records.iter().rposition(|record| record.peer == peer)?;
        state.records.remove(at)
    }

    /// Waits for the record of the client at `peer` and takes it; `None` when `patience` is over.
    pub async fn wait_for(&self, peer: SocketAddr, patience: Duration) -> Option<ServerRecord> {
        tokio::time::timeout(patience, async {
            loop {
                // Registered before looking, so that a record in between is not missed.
                let arrived = self.shared.arrived.notified();
                let mut arrived = std::pin::pin!(arrived);
                arrived.as_mut().enable();
                if let Some(record) = self.take(peer) {
                    return record;
                }
                arrived.await;
            }
        })
        .await
        .ok()
    }

    /// Records dropped because the log was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    pub(crate) fn push(&self, record: ServerRecord) {
        {
            let mut state = self.state();
            if state.records.len() < self.shared.capacity {
                state.records.push_back(record);
            } else {
                state.dropped += 1;
            }
        }
        self.shared.arrived.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-changed.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ServerLog {
    fn default() -> Self {
        ServerLog::new(DEFAULT_LOG_CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(port: u16) -> ServerRecord {
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        ServerRecord::new(peer, Time::ZERO, CpuScope::Connection)
    }

    #[test]
    fn a_full_log_counts_what_it_drops() {
        let log = ServerLog::new(2);
        for port in 1..=5 {
            log.push(record(port));
        }
        assert_eq!(log.dropped(), 3);
        let ports: Vec<u16> = log.drain().iter().map(|record| record.peer.port()).collect();
        assert_eq!(ports, [1, 2]);
        assert!(log.drain().is_empty());
    }

    #[tokio::test]
    async fn waiting_finds_what_is_there_and_what_comes() {
        let log = ServerLog::default();
        log.push(record(1));
        let wait = Duration::from_secs(5);
        assert!(log.wait_for(record(1).peer, wait).await.is_some());
        let later = log.clone();
        let (found, ()) = tokio::join!(log.wait_for(record(2).peer, wait), async move {
            tokio::task::yield_now().await;
            later.push(record(3));
            later.push(record(2));
        });
        assert_eq!(found.unwrap().peer.port(), 2);
        assert_eq!(log.drain().len(), 1);
        assert!(log.wait_for(record(9).peer, Duration::from_millis(1)).await.is_none());
    }
}
