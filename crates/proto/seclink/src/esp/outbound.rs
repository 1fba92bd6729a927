//! Packets that leave (RFC 4303 §3.3).

use super::suite::{SealingKey, overhead};
use super::{Parameters, Suite};
use crate::numbers::Numbers;
use crate::{KeyError, SealError, Slot};

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutboundCounters {
    /// How many packets.
    pub packets: u64,
    /// Bytes of what they protect.
    pub octets: u64,
}

/// A security association to send with.
pub struct Outbound {
    spi: u32,
    suite: Suite,
    extended: bool,
    key: SealingKey,
    counters: OutboundCounters,
}

impl Outbound {
    /// The association; its first packet has the number 1 (RFC 4303 §3.3.3).
    ///
    /// # Errors
    /// The key does not fit the ciphers, or the index is 0.
    pub fn new(parameters: Parameters) -> Result<Self, KeyError> {
        Outbound::beginning(parameters, 1)
    }

    /// The association, whose first packet has this number.
    ///
    /// # Errors
    /// As [`Outbound::new`]; or the number is 0 or beyond the last.
    pub fn beginning(parameters: Parameters, first: u64) -> Result<Self, KeyError> {
        let Parameters { spi, suite, key, extended } = parameters;
        let last = if extended { u64::MAX } else { u32::MAX.into() };
        if spi == 0 {
            return Err(KeyError::OutOfRange("the security parameters index"));
        }
        if first == 0 || first > last {
            return Err(KeyError::OutOfRange("the first sequence number"));
        }
        let key = SealingKey::new(suite, &key, Numbers::new(first, last))?;
        Ok(Outbound { spi, suite, extended, key, counters: OutboundCounters::default() })
    }

    /// What was sent.
    #[must_use]
    pub const fn counters(&self) -> &OutboundCounters {
        &self.counters
    }

    /// The sequence number of the next packet; `None` after the last.
    #[must_use]
    pub const fn next_number(&self) -> Option<u64> {
        self.key.numbers().peek()
    }

    /// The ciphers that packets are sealed with.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Bytes that [`Outbound::seal`] adds before a payload.
    #[must_use]
    pub const fn added_before(&self) -> usize {
        wire::esp::HEADER_LEN + self.suite.iv_len()
    }

    /// Makes the payload in the slot an ESP packet. `next_header`: what the payload is, in IP's numbers.
    ///
    /// # Errors
    /// There is no room around it, or no number left. It is then as it was, but for an error of the cipher.
    pub fn seal(&mut self, slot: &mut Slot<'_>, next_header: u8) -> Result<(), SealError> {
        let payload = slot.len();
        let padding = wire::esp::padding(payload, self.suite.block_len());
        let before = self.added_before();
        let behind = overhead(self.suite, payload).saturating_sub(before);
        if self.next_number().is_none() {
            return Err(SealError::Exhausted);
        }
        slot.grow_back(behind)?;
        if let Err(error) = slot.grow_front(before) {
            slot.shrink_back(behind);
            return Err(error);
        }
        let packet = slot.frame_mut();
        let trailer = packet.get_mut(before.saturating_add(payload)..).unwrap_or_default();
        wire::esp::emit_trailer(trailer, padding, next_header).map_err(|_| SealError::TooShort)?;
        self.key.seal(self.spi, self.extended, packet)?;
        self.counters.packets += 1;
        self.counters.octets += payload as u64;
        Ok(())
    }
}
