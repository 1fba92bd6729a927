//! RACK: loss detection by time (RFC 8985 §6).

use super::scoreboard::Sent;
use std::time::Duration;
use units::Time;

/// Recoveries that a widened reordering window outlives (RFC 8985 §6.2 step 4).
const PERSISTENCE: u32 = 16;
/// RFC 8985 §3.3: three later segments delivered, as in RFC 5681.
const DUPLICATE_THRESHOLD: u64 = 3;
/// How long a least round-trip time counts: one to two of these.
const MIN_RTT_SPAN: Duration = Duration::from_secs(150);

/// The last segment delivered, by time of sending, and the reordering window.
#[derive(Debug, Clone)]
pub(super) struct Rack {
    newest: Option<(Time, u64)>,
    rtt: Duration,
    /// RACK.fack: the highest byte delivered.
    highest: u64,
    reordering_seen: bool,
    /// RACK.reo_wnd_mult.
    multiplier: u32,
    persistence: u32,
    /// RACK.dsack_round: no further widening before this offset is acknowledged.
    widened_until: Option<u64>,
    min_rtt: MinRtt,
}

/// A minimum over the last while, in two halves.
#[derive(Debug, Clone, Default)]
struct MinRtt {
    since: Time,
    this: Option<Duration>,
    last: Option<Duration>,
}

impl MinRtt {
    fn sample(&mut self, now: Time, rtt: Duration) {
        if now.saturating_since(self.since) >= MIN_RTT_SPAN {
            self.since = now;
            self.last = self.this.take();
        }
        self.this = Some(self.this.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        match (self.this, self.last) {
            (Some(this), Some(last)) => Some(this.min(last)),
            (this, last) => this.or(last),
        }
    }
}

/// `a` was sent after `b`: by time, and by offset if at once (RFC 8985 §6.1, RACK_sent_after).
fn sent_after(a: (Time, u64), b: (Time, u64)) -> bool {
    a > b
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            highest: 0,
            reordering_seen: false,
            multiplier: 1,
            persistence: 0,
            widened_until: None,
            min_rtt: MinRtt::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    pub(super) fn sample(&mut self, now: Time, rtt: Duration) {
        self.min_rtt.sample(now, rtt);
    }

    /// Steps 2 and 3 of RFC 8985 §6.2 for a part just delivered. `echoed_after` says, where
    /// timestamps do, that the acknowledgment answers the last transmission.
    pub(super) fn delivered(&mut self, now: Time, part: &Sent, echoed_after: Option<bool>) {
        let rtt = now.saturating_since(part.at);
        let ambiguous = part.again
            && (echoed_after == Some(false) || self.min_rtt.get().is_some_and(|least| rtt < least));
        if !ambiguous && !rtt.is_zero() {
            self.rtt = rtt;
            let key = (part.at, part.end);
            if self.newest.is_none_or(|newest| sent_after(key, newest)) {
                self.newest = Some(key);
            }
        }
        if part.end > self.highest {
            self.highest = part.end;
        } else if part.end < self.highest && !part.again {
            self.reordering_seen = true;
        }
    }

    #[cfg(test)]
    pub(super) fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// A D-SACK came: the window was too small (step 4).
    pub(super) fn widen(&mut self, acknowledged: u64, next: u64) {
        if self.widened_until.is_some_and(|until| acknowledged >= until) {
            self.widened_until = None;
        }
        if self.widened_until.is_none() {
            self.widened_until = Some(next);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persistence = PERSISTENCE;
        }
    }

    /// A recovery ended (step 4).
    pub(super) fn recovery_ended(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
        if self.persistence == 0 {
            self.multiplier = 1;
        }
    }

    /// RACK.reo_wnd (step 4). `sacked` bytes are delivered beyond a gap.
    pub(super) fn window(
        &self,
        in_recovery: bool,
        sacked: u64,
        mss: u64,
        smoothed: Option<Duration>,
    ) -> Duration {
        if !self.reordering_seen && (in_recovery || sacked >= DUPLICATE_THRESHOLD * mss) {
            return Duration::ZERO;
        }
        let quarter = self.min_rtt.get().unwrap_or_default() / 4;
        let window = quarter.saturating_mul(self.multiplier);
        smoothed.map_or(window, |smoothed| window.min(smoothed))
    }

    /// When `sent` is to be taken for lost (step 5); `None` while nothing later was delivered.
    pub(super) fn deadline(&self, sent: &Sent, window: Duration) -> Option<Time> {
        let newest = self.newest?;
        sent_after(newest, (sent.at, sent.end)).then(|| sent.at + self.rtt + window)
    }

    /// When `sent` is lost if the retransmission timer expired (§6.3).
    pub(super) fn deadline_on_timeout(&self, sent: &Sent, window: Duration) -> Time {
        sent.at + self.rtt + window
    }
}
