//! Frames that were captured more than once: on a bridge and its ports, on any interface of a router. A copy
//! comes soon after the first, and says the same; what is sent again comes after a timeout.

use std::time::Duration;

use units::{SeqNumber, Time};

use super::{Input, TcpFlow};
use crate::side::Sender;

/// The longest time between copies without TCP timestamps: no SYN is sent again so soon (RFC 6298 §2.1 waits
/// for a second).
const NEAR: Duration = Duration::from_millis(100);
/// The longest time between copies whose timestamps are the same: what is sent again has later ones.
const NEAR_WITH_TIMESTAMPS: Duration = Duration::from_millis(900);

/// A SYN or SYN+ACK.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    at: Time,
    sequence: SeqNumber,
    acknowledged: Option<u32>,
    payload_len: usize,
    timestamp: Option<u32>,
}

impl Seen {
    fn is_copied_by(&self, other: &Seen) -> bool {
        let same = (self.sequence, self.acknowledged, self.payload_len, self.timestamp)
            == (other.sequence, other.acknowledged, other.payload_len, other.timestamp);
        let near = if self.timestamp.is_some() { NEAR_WITH_TIMESTAMPS } else { NEAR };
        same && apart(self.at, other.at) <= near
    }
}

fn apart(one: Time, other: Time) -> Duration {
    one.max(other).saturating_since(one.min(other))
}

impl TcpFlow {
    /// Whether a SYN or SYN+ACK is a copy of the one before.
    pub(super) fn is_copied_syn(&mut self, input: &Input<'_>, sequence: SeqNumber) -> bool {
        let one = Seen {
            at: input.mark.at,
            sequence,
            acknowledged: input.segment.acknowledgment(),
            payload_len: input.payload_len,
            timestamp: input.segment.timestamp(),
        };
        let before = &mut self.seen[input.side];
        let copied = before.is_some_and(|before| before.is_copied_by(&one));
        if !copied {
            *before = Some(one);
        }
        copied
    }

    /// Whether payload that was captured before is a copy: its connection's SYN or SYN+ACK has one, too.
    pub(super) fn is_copied(&self, side: Sender, at: Time) -> bool {
        let near = |sent: Time| apart(sent, at) <= NEAR;
        self.facts.copies > 0 && self.sides[side].advanced_at.is_some_and(near)
    }
}
