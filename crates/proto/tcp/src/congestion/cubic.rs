//! CUBIC's window growth and reduction (RFC 9438). Windows here are in segments, as there.

use super::Progress;
use std::time::Duration;
use units::Time;

/// RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// RFC 9438 §5: segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 §4.3: additive increase that shares fairly with Reno, given the factor above.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// What CUBIC remembers of the last reduction.
#[derive(Debug, Clone, Default)]
pub(super) struct Cubic {
    /// W_max: the window when it was reduced last, lowered by fast convergence.
    max: f64,
    /// cwnd_prior: the window just before that reduction.
    prior: f64,
    /// Growth of less than a byte, kept for the next acknowledgment.
    carry: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Debug, Clone)]
struct Epoch {
    start: Time,
    /// K: seconds from the start until the plateau.
    k: f64,
    /// W_max, or the window at the start if that is larger; in segments.
    origin: f64,
    /// W_est: what Reno would have.
    reno: f64,
}

impl Cubic {
    /// Bytes to add to a window of `window` bytes (RFC 9438 §4.2 to §4.5).
    pub(super) fn growth(&mut self, window: u64, mss: u64, progress: &Progress) -> u64 {
        let unit = mss.max(1) as f64;
        let cwnd = window as f64 / unit;
        let acked = progress.delivered as f64 / unit;
        let (max, prior) = (self.max, self.prior);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(progress.now, cwnd, max));
        let elapsed = progress.now.saturating_since(epoch.start);
        let ahead = elapsed.saturating_add(progress.smoothed.unwrap_or_default());
        // RFC 9438 §4.3: as steep as Reno once it has what was lost
        let alpha = if epoch.reno >= prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * acked / cwnd;
        let grown = if epoch.at(elapsed) < epoch.reno {
            epoch.reno
        } else {
            // RFC 9438 §4.4 and §4.5, at most half a window in a round trip (§4.2)
            let target = epoch.at(ahead).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * acked / cwnd
        };
        // Never more than the data acknowledged: slow start is the fastest growth there is.
        self.carry += (grown - cwnd).clamp(0.0, acked) * unit;
        let whole = self.carry.floor();
        self.carry -= whole;
        whole as u64
    }

    /// The threshold after a loss, in bytes (RFC 9438 §4.6 and §4.7).
    pub(super) fn reduce(&mut self, window: u64, mss: u64) -> u64 {
        let cwnd = window as f64 / mss.max(1) as f64;
        self.epoch = None;
        self.prior = cwnd;
        // Fast convergence: give way when the last plateau was not reached
        self.max = if cwnd < self.max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        (window as f64 * BETA) as u64
    }

    /// RFC 9438 §4.8: the next epoch begins with congestion avoidance.
    pub(super) fn on_timeout(&mut self) {
        self.epoch = None;
    }

    /// Time without data in flight is not part of the epoch (RFC 9438 §5.8).
    pub(super) fn shift_epoch(&mut self, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

impl Epoch {
    fn begin(now: Time, cwnd: f64, max: f64) -> Self {
        // RFC 9438 §4.2; without a plateau above, growth starts from here
        let k = if cwnd < max { ((max - cwnd) / C).cbrt() } else { 0.0 };
        Self { start: now, k, origin: max.max(cwnd), reno: cwnd }
    }

    /// W_cubic(t), RFC 9438 §4.2 figure 1.
    fn at(&self, elapsed: Duration) -> f64 {
        let t = elapsed.as_secs_f64() - self.k;
        C * t * t * t + self.origin
    }
}
