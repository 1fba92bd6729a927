//! Servers that took an envelope for stream data, to be spared another.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use units::Time;

/// Destinations remembered at once; beyond it the oldest is forgotten.
pub const CAPACITY: usize = 1024;

/// How long a destination is remembered: RFC 7413 §4.1.3.1 leaves it open, we take an hour.
pub const LIFETIME: Duration = Duration::from_secs(3600);

/// Destinations that are to get ordinary TCP and TLS for a while. Clones share it.
///
/// The default is shared by the whole process; [`Destinations::new`] makes a separate one.
#[derive(Clone, Debug)]
pub struct Destinations(Arc<Mutex<VecDeque<(SocketAddr, Time)>>>);

static SHARED: LazyLock<Destinations> = LazyLock::new(Destinations::new);

impl Destinations {
    /// An empty memory of one's own.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Whether `destination` is remembered at `now`.
    #[must_use]
    pub fn contains(&self, now: Time, destination: SocketAddr) -> bool {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(_, since)| now.saturating_since(*since) < LIFETIME);
        entries.iter().any(|(known, _)| *known == destination)
    }

    /// Remembers `destination` from `now` on.
    pub fn insert(&self, now: Time, destination: SocketAddr) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(known, _)| *known != destination);
        if entries.len() >= CAPACITY {
            entries.pop_front();
        }
        entries.push_back((destination, now));
    }

    /// Forgets all destinations, in every clone.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Default for Destinations {
    fn default() -> Self {
        SHARED.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn a_destination_is_remembered_for_a_while() {
        let memory = Destinations::new();
        memory.insert(Time::ZERO, address(1));
        assert!(memory.contains(Time::ZERO + (LIFETIME - Duration::from_nanos(1)), address(1)));
        assert!(!memory.contains(Time::ZERO, address(2)));
        assert!(!memory.contains(Time::ZERO + LIFETIME, address(1)));
    }

    #[test]
    fn the_oldest_is_forgotten_first() {
        let memory = Destinations::new();
        for port in 0..=CAPACITY as u16 {
            memory.insert(Time::ZERO, address(port));
        }
        assert!(!memory.contains(Time::ZERO, address(0)));
        assert!(memory.contains(Time::ZERO, address(1)));
        let shared = memory.clone();
        shared.clear();
        assert!(!memory.contains(Time::ZERO, address(1)));
    }
}
