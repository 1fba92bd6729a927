//! HyStart++ (RFC 9406): leaves slow start when the round-trip time begins to grow, before the
//! queue overflows.

use super::Progress;
use std::time::Duration;

/// RFC 9406 §4.3.
const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// Slow start's rounds and their least round-trip times.
#[derive(Debug, Clone, Default)]
pub(super) struct HyStart {
    /// The round ends when this offset is acknowledged; `None` before the first acknowledgment.
    round_end: Option<u64>,
    samples: u32,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    conservative: Option<Conservative>,
}

/// Conservative slow start (RFC 9406 §4.2).
#[derive(Debug, Clone)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl HyStart {
    /// Takes an acknowledgment and says by what slow start's growth is to be divided.
    pub(super) fn on_ack(&mut self, progress: &Progress) -> u64 {
        match self.round_end {
            None => self.round_end = Some(progress.sent),
            Some(end) if progress.acknowledged >= end => self.next_round(progress.sent),
            Some(_) => {}
        }
        if let Some(rtt) = progress.rtt {
            self.this_round = Some(self.this_round.map_or(rtt, |least| least.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        self.judge();
        if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 }
    }

    /// Whether conservative slow start has had its rounds.
    pub(super) fn is_over(&self) -> bool {
        self.conservative.as_ref().is_some_and(|css| css.rounds >= CSS_ROUNDS)
    }

    fn next_round(&mut self, sent: u64) {
        self.round_end = Some(sent);
        self.last_round = self.this_round.take().or(self.last_round);
        self.samples = 0;
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
        }
    }

    fn judge(&mut self) {
        let (Some(last), Some(this)) = (self.last_round, self.this_round) else { return };
        if self.samples < RTT_SAMPLES {
            return;
        }
        match &self.conservative {
            None => {
                let threshold =
                    (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
                if this >= last + threshold {
                    self.conservative = Some(Conservative { baseline: this, rounds: 0 });
                }
            }
            // The growth was a passing one: back to slow start
            Some(css) if this < css.baseline => self.conservative = None,
            Some(_) => {}
        }
    }
}
