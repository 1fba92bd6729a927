//! Proportional rate reduction (RFC 9937): how much may be sent for each acknowledgment during
//! fast recovery, so that the window reaches the threshold when the recovery ends.

/// The bookkeeping of one fast recovery, in bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Prr {
    delivered: u64,
    sent: u64,
    /// RecoverFS: what was in flight when the recovery began.
    flight: u64,
    window: u64,
}

/// What one acknowledgment did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub delivered: u64,
    pub in_flight: u64,
    pub threshold: u64,
    pub mss: u64,
    /// SafeACK: new data were acknowledged and no further loss was seen.
    pub safe: bool,
}

impl Prr {
    pub(super) fn begin(flight: u64, window: u64) -> Self {
        Self { delivered: 0, sent: 0, flight: flight.max(1), window }
    }

    /// The window now, in bytes.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
    }

    /// RFC 9937 §6.2.
    pub(super) fn on_ack(&mut self, step: &Step) {
        if step.delivered == 0 {
            return;
        }
        self.delivered = self.delivered.saturating_add(step.delivered);
        let mut count = if step.in_flight > step.threshold {
            let due = (u128::from(self.delivered) * u128::from(step.threshold))
                .div_ceil(u128::from(self.flight));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.sent)
        } else {
            let conserved = self.delivered.saturating_sub(self.sent).max(step.delivered);
            let growing = if step.safe { conserved + step.mss } else { conserved };
            growing.min(step.threshold.saturating_sub(step.in_flight))
        };
        // The first retransmission always goes.
        if self.sent == 0 {
            count = count.max(step.mss);
        }
        // Whole segments, as if counted in them; what is too much now is too little later.
        self.window = step.in_flight + count.div_ceil(step.mss) * step.mss;
    }
}
