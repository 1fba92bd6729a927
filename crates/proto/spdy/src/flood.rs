//! A bound on frames that cost this side work and bring neither side forward: PING, SETTINGS, resets,
//! refused streams, empty data, frames for streams that are gone.

use units::Time;

/// How many such frames a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloodLimit {
    /// In a burst, before `per_second` limits them.
    pub burst: u32,
    /// In a second, for ever. Each frame that carries data, in either direction, allows one more.
    pub per_second: u32,
}

impl Default for FloodLimit {
    fn default() -> Self {
        FloodLimit { burst: 1000, per_second: 10 }
    }
}

/// The bucket: in billionths of a frame.
#[derive(Debug)]
pub(crate) struct Flood {
    limit: FloodLimit,
    tokens: u64,
    filled: Option<Time>,
}

const FRAME: u64 = 1_000_000_000;

impl Flood {
    pub(crate) fn new(limit: FloodLimit) -> Self {
        Flood { limit, tokens: u64::from(limit.burst) * FRAME, filled: None }
    }

    /// A frame that brought nothing; whether it is still allowed.
    pub(crate) fn idle_frame(&mut self, now: Time) -> bool {
        if let Some(filled) = self.filled {
            let nanos = now.saturating_since(filled).as_nanos();
            let more = nanos.saturating_mul(u128::from(self.limit.per_second));
            self.add(u64::try_from(more).unwrap_or(u64::MAX));
        }
        self.filled = Some(now);
        match self.tokens.checked_sub(FRAME) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }

    /// A frame that carried data.
    pub(crate) fn useful_frame(&mut self) {
        self.add(FRAME);
    }

    fn add(&mut self, tokens: u64) {
        let full = u64::from(self.limit.burst) * FRAME;
        self.tokens = self.tokens.saturating_add(tokens).min(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_a_rate() {
        let mut flood = Flood::new(FloodLimit { burst: 3, per_second: 2 });
        let at = Time::from_millis;
        assert!((0..3).all(|_| flood.idle_frame(at(0))));
        assert!(!flood.idle_frame(at(0)));
        assert!(flood.idle_frame(at(500)) && !flood.idle_frame(at(500)));
        flood.useful_frame();
        assert!(flood.idle_frame(at(500)) && !flood.idle_frame(at(500)));
    }
}
