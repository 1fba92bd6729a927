//! Failed connections in the log: a line each, but strangers cannot flood it.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in one period.
const MOST: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// Writes at most [`MOST`] lines a [`PERIOD`], and how many it left out.
#[derive(Debug)]
pub(crate) struct Complaints(Mutex<Window>);

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u32,
    left_out: u64,
}

impl Complaints {
    pub(crate) fn new() -> Complaints {
        Complaints(Mutex::new(Window { began: Instant::now(), lines: 0, left_out: 0 }))
    }

    /// Says what went wrong with the connection from or to `with`.
    pub(crate) fn say(&self, with: SocketAddr, what: &str, why: &dyn Display) {
        let (may, left_out) = self.admit(Instant::now());
        if left_out > 0 {
            tracing::warn!(left_out, "more connections failed than there are lines for");
        }
        if may {
            tracing::warn!(%with, "{what}: {why}");
        }
    }

    /// Whether another line may be written, and how many the period before left out.
    fn admit(&self, now: Instant) -> (bool, u64) {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left_out = 0;
        if now.saturating_duration_since(window.began) >= PERIOD {
            left_out = window.left_out;
            *window = Window { began: now, lines: 0, left_out: 0 };
        }
        if window.lines == MOST {
            window.left_out += 1;
            return (false, left_out);
        }
        window.lines += 1;
        (true, left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let complaints = Complaints::new();
        let now = Instant::now();
        let written = (0..1000).filter(|_| complaints.admit(now).0).count();
        assert_eq!(written, MOST as usize);
        assert_eq!(complaints.admit(now + PERIOD), (true, 990));
        assert_eq!(complaints.admit(now + PERIOD), (true, 0));
    }
}
