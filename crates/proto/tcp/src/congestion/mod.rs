//! Congestion control: how much may be in flight.
//!
//! A [`Controller`] counts in bytes and knows nothing of segments' fates: the recovery tells it
//! what was delivered and when a loss began. Within fast recovery the recovery paces itself by
//! proportional rate reduction (RFC 9937) and comes back with [`Controller::leave_recovery`].

mod cubic;
mod hystart;
mod new_reno;

use cubic::Cubic;
use hystart::HyStart;
use std::time::Duration;
use units::Time;

/// Segments in the initial window (RFC 6928 §2).
const INITIAL_SEGMENTS: u64 = 10;
/// Bytes in the initial window, unless two segments are more (RFC 6928 §2).
const INITIAL_BYTES: u64 = 14_600;
/// Smallest slow-start threshold, in segments (RFC 5681 §3.1 equation 4).
const LEAST_SEGMENTS: u64 = 2;
/// Slow start adds at most so many segments for one acknowledgment, since sending is not paced
/// (RFC 9406 §4.2: L).
const BURST_SEGMENTS: u64 = 8;

/// Which congestion control a connection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Congestion {
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    #[default]
    Cubic,
    /// Reno's additive increase and halving (RFC 5681, RFC 6582).
    NewReno,
}

/// What an acknowledgment tells the controller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub now: Time,
    /// Bytes delivered (acknowledged or selectively acknowledged) that were not before.
    pub delivered: u64,
    /// Bytes in flight before this acknowledgment.
    pub in_flight: u64,
    /// Whether the window, and not the application or the peer, was what held data back.
    pub limited: bool,
    /// Round-trip time of the segment acknowledged last, if it was not sent twice.
    pub rtt: Option<Duration>,
    pub smoothed: Option<Duration>,
    /// First offset not acknowledged, and first not sent.
    pub acknowledged: u64,
    pub sent: u64,
}

/// Congestion window and slow-start threshold, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    mss: u64,
    window: u64,
    threshold: u64,
    hystart: HyStart,
    avoidance: Avoidance,
}

#[derive(Debug, Clone)]
enum Avoidance {
    Cubic(Cubic),
    NewReno,
}

impl Controller {
    pub(crate) fn new(algorithm: Congestion, mss: u64) -> Self {
        let mss = mss.max(1);
        Self {
            mss,
            window: initial_window(mss),
            threshold: u64::MAX,
            hystart: HyStart::default(),
            avoidance: match algorithm {
                Congestion::Cubic => Avoidance::Cubic(Cubic::default()),
                Congestion::NewReno => Avoidance::NewReno,
            },
        }
    }

    /// The congestion window in bytes; at least one segment.
    pub(crate) fn window(&self) -> u64 {
        self.window.max(self.mss)
    }

    /// The slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The largest segment changed. Windows are in bytes and stay; before any data were sent the
    /// initial window follows.
    pub(crate) fn set_mss(&mut self, mss: u64) {
        let mss = mss.max(1);
        if self.threshold == u64::MAX && self.window == initial_window(self.mss) {
            self.window = initial_window(mss);
        }
        self.mss = mss;
    }

    /// More than one SYN or SYN-ACK was lost: begin with one segment (RFC 6928 §2).
    pub(crate) fn handshake_was_lossy(&mut self) {
        self.window = self.mss;
    }

    /// New data were acknowledged outside fast recovery.
    pub(crate) fn on_ack(&mut self, progress: &Progress) {
        if self.window < self.threshold {
            self.slow_start(progress);
        } else if progress.limited {
            self.window += match &mut self.avoidance {
                Avoidance::Cubic(cubic) => cubic.growth(self.window, self.mss, progress),
                Avoidance::NewReno => new_reno::growth(self.window, self.mss, progress.delivered),
            };
        }
    }

    /// A loss begins an episode: sets the slow-start threshold (RFC 5681 §3.2, RFC 9438 §4.6). The
    /// window itself follows by proportional rate reduction. `flight` is FlightSize.
    pub(crate) fn on_congestion(&mut self, flight: u64) {
        let floor = LEAST_SEGMENTS * self.mss;
        self.threshold = match &mut self.avoidance {
            Avoidance::Cubic(cubic) => cubic.reduce(self.window, self.mss),
            Avoidance::NewReno => new_reno::reduce(self.window.min(flight)),
        }
        .max(floor);
        self.hystart = HyStart::default();
    }

    /// The retransmission timer expired (RFC 5681 §3.1) with `flight` bytes outstanding, of which
    /// `left` may still be under way. `first` says that this is a new episode and not a repeated
    /// timeout for the same data.
    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool, left: u64) {
        if first {
            self.on_congestion(flight);
        }
        if let Avoidance::Cubic(cubic) = &mut self.avoidance {
            cubic.on_timeout();
        }
        // One segment, besides what is still under way
        self.window = left + self.mss;
    }

    /// Fast recovery ends: the window is what the reduction was for (RFC 9937 §6).
    pub(crate) fn leave_recovery(&mut self) {
        self.window = self.threshold;
    }

    /// The loss was none: takes back what `before` had (RFC 4015 §3.4), and keeps what was gained since.
    pub(crate) fn undo(&mut self, before: &Controller) {
        let window = self.window.max(before.window);
        let mss = self.mss;
        *self = before.clone();
        self.window = window;
        self.mss = mss;
    }

    /// Nothing was sent for longer than a retransmission timeout (RFC 5681 §4.1). The threshold
    /// remembers three quarters of the window (RFC 2861 §3).
    pub(crate) fn restart_after_idle(&mut self) {
        let restart = initial_window(self.mss);
        if self.window > restart {
            if self.threshold != u64::MAX {
                self.threshold = self.threshold.max(self.window / 4 * 3);
            }
            self.window = restart;
        }
        self.hystart = HyStart::default();
    }

    /// Sending begins again after `idle` without data in flight: that time does not count as
    /// growth (RFC 9438 §5.8).
    pub(crate) fn resume(&mut self, idle: Duration) {
        if let Avoidance::Cubic(cubic) = &mut self.avoidance {
            cubic.shift_epoch(idle);
        }
    }

    fn slow_start(&mut self, progress: &Progress) {
        // Growth needs use: at least half of the window was in flight.
        if !progress.limited && progress.in_flight.saturating_mul(2) < self.window {
            return;
        }
        let divisor = self.hystart.on_ack(progress);
        let growth = progress.delivered.min(BURST_SEGMENTS * self.mss) / divisor;
        self.window = self.window.saturating_add(growth).min(self.threshold);
        if self.hystart.is_over() {
            self.threshold = self.window; // RFC 9406 §4.2: exit to congestion avoidance
        }
    }
}

/// RFC 6928 §2: min(10 * MSS, max(2 * MSS, 14600)).
fn initial_window(mss: u64) -> u64 {
    (INITIAL_SEGMENTS * mss).min(INITIAL_BYTES.max(2 * mss))
}

#[cfg(test)]
mod tests;
