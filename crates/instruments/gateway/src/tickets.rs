//! Session tickets between connections: newest first, each used once, a bounded number.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tickets kept. A burst of more connections than this goes on with full handshakes.
const MOST: usize = 64;
/// A ticket older than this is not offered: rustls servers change their keys every six hours and take
/// the keys of the turn before.
const OLDEST: Duration = Duration::from_secs(6 * 3600);

/// The tickets of one server. `T` is the ticket.
#[derive(Debug)]
pub(crate) struct Tickets<T>(Mutex<VecDeque<(Instant, T)>>);

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Tickets(Mutex::new(VecDeque::new()))
    }
}

impl<T> Tickets<T> {
    /// Keeps a ticket that has just come, in place of the oldest if there are too many.
    pub(crate) fn put(&self, now: Instant, ticket: T) {
        let mut kept = self.lock();
        kept.push_back((now, ticket));
        if kept.len() > MOST {
            kept.pop_front();
        }
    }

    /// The newest ticket, for one use.
    pub(crate) fn take(&self, now: Instant) -> Option<T> {
        let mut kept = self.lock();
        kept.retain(|(came, _)| now.saturating_duration_since(*came) < OLDEST);
        kept.pop_back().map(|(_, ticket)| ticket)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(Instant, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_once_and_bounded() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        for number in 0..MOST + 10 {
            tickets.put(now, number);
        }
        assert_eq!(tickets.len(), MOST);
        assert_eq!(tickets.take(now), Some(MOST + 9));
        assert_eq!(tickets.take(now), Some(MOST + 8));
        assert_eq!(tickets.take(now + OLDEST), None, "all are too old");
        assert_eq!(tickets.len(), 0);
    }
}
