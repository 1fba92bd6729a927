//! Packets that come (RFC 4303 §3.4).

use wire::esp::Packet;

use super::suite::OpeningKey;
use super::{Parameters, Suite};
use crate::replay::{Verdict, Window};
use crate::{KeyError, Slot};

/// What an association received, by what became of it: each packet counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InboundCounters {
    /// Packets that were taken.
    pub packets: u64,
    /// Bytes of what they protect.
    pub octets: u64,
    /// Packets cut short or of no length that the ciphers make.
    pub malformed: u64,
    /// Packets of another association.
    pub other_spi: u64,
    /// Packets seen before, or below the window.
    pub replayed: u64,
    /// Packets that are not authentic.
    pub not_authentic: u64,
    /// Authentic packets whose padding is wrong.
    pub bad_padding: u64,
    /// Dummy packets, which protect nothing (RFC 4303 §2.6).
    pub dummies: u64,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// Cut short or of no length that the ciphers make.
    Malformed,
    /// Of another association.
    OtherSpi,
    /// Seen before, or below the window.
    Replayed,
    /// Its integrity check failed (RFC 4303 §3.4.4).
    NotAuthentic,
    /// Authentic, but its padding is wrong.
    BadPadding,
    /// Authentic, but a dummy: its next header is 59 (RFC 4303 §2.6).
    Dummy,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The slot holds what it protected.
    Delivered {
        /// What that is, in IP's numbers.
        next_header: u8,
    },
    /// It goes nowhere.
    Dropped(Dropped),
}

/// A security association to receive with.
pub struct Inbound {
    spi: u32,
    suite: Suite,
    extended: bool,
    key: OpeningKey,
    /// Anti-replay; `None`: every number is taken.
    window: Option<Window>,
    /// The highest number taken: of it come the upper halves of extended numbers.
    top: u64,
    counters: InboundCounters,
}

/// The numbers that extended ones are recovered by where nothing is checked (RFC 4303 Appendix A2.1).
const RECOVERY: u64 = 64;

impl Inbound {
    /// The association, with an anti-replay window of so many packets; `None`: without.
    ///
    /// # Errors
    /// The key does not fit the ciphers, or the index is 0.
    pub fn new(parameters: Parameters, window: Option<u32>) -> Result<Self, KeyError> {
        let Parameters { spi, suite, key, extended } = parameters;
        if spi == 0 {
            return Err(KeyError::OutOfRange("the security parameters index"));
        }
        let key = OpeningKey::new(suite, &key)?;
        let (window, counters) = (window.map(Window::new), InboundCounters::default());
        Ok(Inbound { spi, suite, extended, key, window, top: 0, counters })
    }

    /// Takes over from who received before: up to this number all count as seen.
    pub fn continue_after(&mut self, sequence: u64) {
        self.top = self.top.max(sequence);
        if let Some(window) = &mut self.window {
            let size = window.size();
            (sequence.saturating_sub(size)..=sequence).for_each(|number| {
                window.take(number);
            });
        }
    }

    /// What was received so far.
    #[must_use]
    pub const fn counters(&self) -> &InboundCounters {
        &self.counters
    }

    /// Checks the ESP packet in the slot, and takes its protection off in place.
    pub fn open(&mut self, slot: &mut Slot<'_>) -> Opened {
        match self.try_open(slot) {
            Ok(next_header) => {
                self.counters.packets += 1;
                self.counters.octets += slot.len() as u64;
                Opened::Delivered { next_header }
            }
            Err(dropped) => {
                *self.counter(dropped) += 1;
                Opened::Dropped(dropped)
            }
        }
    }

    /// Drops a packet that came no further than to its headers.
    pub(super) fn refuse(&mut self, dropped: Dropped) -> Opened {
        *self.counter(dropped) += 1;
        Opened::Dropped(dropped)
    }

    fn counter(&mut self, dropped: Dropped) -> &mut u64 {
        let counters = &mut self.counters;
        match dropped {
            Dropped::Malformed => &mut counters.malformed,
            Dropped::OtherSpi => &mut counters.other_spi,
            Dropped::Replayed => &mut counters.replayed,
            Dropped::NotAuthentic => &mut counters.not_authentic,
            Dropped::BadPadding => &mut counters.bad_padding,
            Dropped::Dummy => &mut counters.dummies,
        }
    }

    fn try_open(&mut self, slot: &mut Slot<'_>) -> Result<u8, Dropped> {
        let (before, icv) = (wire::esp::HEADER_LEN + self.suite.iv_len(), self.suite.icv_len());
        let packet = Packet::new_checked(slot.frame()).map_err(|_| Dropped::Malformed)?;
        if packet.spi() != self.spi {
            return Err(Dropped::OtherSpi);
        }
        let text = slot.len().checked_sub(before.saturating_add(icv));
        let is_whole = |text: &usize| *text > 0 && text.is_multiple_of(self.suite.block_len());
        let text = text.filter(is_whole).ok_or(Dropped::Malformed)?;
        let sequence = self.recover(packet.sequence()).ok_or(Dropped::Replayed)?;
        // Before the packet is authenticated, so that a flood of old ones costs little (§3.4.3).
        let is_old = |window: &Window| window.check(sequence) != Verdict::New;
        if sequence == 0 || self.window.as_ref().is_some_and(is_old) {
            return Err(Dropped::Replayed);
        }
        if !self.key.open(self.spi, sequence, self.extended, slot.frame_mut()) {
            return Err(Dropped::NotAuthentic);
        }
        if let Some(window) = &mut self.window {
            window.take(sequence);
        }
        self.top = self.top.max(sequence);
        slot.shrink_front(before);
        slot.shrink_back(slot.len().saturating_sub(text));
        let (payload, next_header) =
            wire::esp::strip_trailer(slot.frame()).map_err(|_| Dropped::BadPadding)?;
        let payload = payload.len();
        slot.shrink_back(slot.len().saturating_sub(payload));
        match next_header {
            wire::esp::NO_NEXT_HEADER => Err(Dropped::Dummy),
            next_header => Ok(next_header),
        }
    }

    /// The whole number of a packet that says its lower half (RFC 4303 Appendix A2.2); `None` before the first.
    fn recover(&self, low: u32) -> Option<u64> {
        if !self.extended {
            return Some(low.into());
        }
        let size = self.window.as_ref().map_or(RECOVERY, Window::size);
        let (high, top_low, low) = (self.top >> 32, self.top & 0xffff_ffff, u64::from(low));
        // The window's lower end, in the lower halves' numbers.
        let bottom = top_low.wrapping_sub(size.saturating_sub(1)) & 0xffff_ffff;
        let high = if top_low >= size.saturating_sub(1) {
            // The window lies in one round: what is below it is of the next.
            if low >= bottom { Some(high) } else { high.checked_add(1) }
        } else if low >= bottom {
            // It began in the round before.
            high.checked_sub(1)
        } else {
            Some(high)
        };
        high.filter(|high| *high <= u64::from(u32::MAX)).map(|high| high << 32 | low)
    }
}
