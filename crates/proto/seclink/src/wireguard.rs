//! WireGuard's transport data (the WireGuard paper §5.4.6): a session's keys, by configuration.

use aws_lc_rs::aead::CHACHA20_POLY1305;
use wire::wireguard::{BLOCK_LEN, DATA_HEADER_LEN, DataRepr, Message, TAG_LEN};

use crate::aead::{Opening, Sealing};
use crate::numbers::Numbers;
use crate::replay::{Verdict, Window};
use crate::{KeyError, SealError, Secret, Slot};

const CIPHER: &str = "ChaCha20-Poly1305";

/// Messages that a session seals or opens at most (§6.1, Reject-After-Messages).
pub const REJECT_AFTER_MESSAGES: u64 = u64::MAX - (1 << 13);

/// Counters that a receiver remembers (§5.4.6 asks for a sliding window; the Linux kernel's has as many).
pub const WINDOW: u32 = 8128;

/// A nonce: the counter behind four bytes of zero (§5.4.6).
fn nonce(counter: u64) -> [u8; 12] {
    let [a, b, c, d, e, f, g, h] = counter.to_le_bytes();
    [0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// A session's sending half.
pub struct Sender {
    receiver: u32,
    sealing: Sealing,
    /// The longest packet that padding makes.
    mtu: usize,
}

impl Sender {
    /// The half whose peer calls the session `receiver`.
    ///
    /// # Errors
    /// The key has not 32 bytes.
    pub fn new(receiver: u32, key: Secret) -> Result<Self, KeyError> {
        Sender::beginning(receiver, key, 0)
    }

    /// The same, whose first message has this counter.
    ///
    /// # Errors
    /// The key has not 32 bytes.
    #[allow(clippy::needless_pass_by_value, reason = "a key is used up by who seals with it")]
    pub fn beginning(receiver: u32, key: Secret, first: u64) -> Result<Self, KeyError> {
        let numbers = Numbers::new(first, REJECT_AFTER_MESSAGES - 1);
        let sealing = Sealing::new(CIPHER, &CHACHA20_POLY1305, key.bytes(), numbers)?;
        Ok(Sender { receiver, sealing, mtu: usize::MAX })
    }

    /// The same, whose padding makes no packet longer than the interface's MTU, in bytes, as Linux and wireguard-go have
    /// it.
    #[must_use]
    pub fn limited_to(self, mtu: usize) -> Self {
        Sender { mtu, ..self }
    }

    /// Makes the IP packet in the slot a message; an empty one is a keep-alive.
    ///
    /// # Errors
    /// There is no room around it, or no counter left. It is then as it was, but for an error of the cipher.
    pub fn seal(&mut self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        let packet = slot.len();
        let padding = packet.wrapping_neg() % BLOCK_LEN;
        let padding = padding.min(self.mtu.saturating_sub(packet));
        if self.sealing.numbers().peek().is_none() {
            return Err(SealError::Exhausted);
        }
        slot.grow_back(padding.saturating_add(TAG_LEN))?;
        if let Err(error) = slot.grow_front(DATA_HEADER_LEN) {
            slot.shrink_back(padding.saturating_add(TAG_LEN));
            return Err(error);
        }
        let turn = self.sealing.turn()?;
        let head = DataRepr { receiver: self.receiver, counter: turn.number() };
        let message = slot.frame_mut();
        head.emit(message).map_err(|_| SealError::TooShort)?;
        let text = message.get_mut(DATA_HEADER_LEN..).unwrap_or_default();
        let end = packet.saturating_add(padding);
        text.get_mut(packet..end).unwrap_or_default().fill(0);
        let (text, tag) = text.split_at_mut_checked(end).ok_or(SealError::TooShort)?;
        turn.seal(nonce, &[], text, tag)
    }
}

/// Why a message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It is no transport data.
    Malformed,
    /// It is of another session.
    OtherSession,
    /// Its counter was seen, is too old, or is beyond the last.
    Replayed,
    /// It is not authentic.
    NotAuthentic,
    /// It is authentic and holds no IP packet.
    NoPacket,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The slot holds its IP packet, without padding.
    Delivered,
    /// It keeps the session alive and holds nothing.
    KeepAlive,
    /// It goes nowhere.
    Dropped(Dropped),
}

/// What a session received, by what became of it: each message counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were delivered.
    pub packets: u64,
    /// Authentic messages without content: keep-alives.
    pub keep_alives: u64,
    /// Messages that are no transport data.
    pub malformed: u64,
    /// Messages of other sessions.
    pub other_session: u64,
    /// Messages seen before, or too old to tell.
    pub replayed: u64,
    /// Messages that are not authentic.
    pub not_authentic: u64,
    /// Authentic messages without an IP packet.
    pub no_packet: u64,
}

/// A session's receiving half.
pub struct Receiver {
    index: u32,
    opening: Opening,
    /// Of counters plus one: the first message has the counter 0.
    window: Window,
    counters: Counters,
}

impl Receiver {
    /// The half that calls the session `index`.
    ///
    /// # Errors
    /// The key has not 32 bytes.
    #[allow(clippy::needless_pass_by_value, reason = "a key goes to who uses it")]
    pub fn new(index: u32, key: Secret) -> Result<Self, KeyError> {
        let opening = Opening::new(CIPHER, &CHACHA20_POLY1305, key.bytes())?;
        let (window, counters) = (Window::new(WINDOW), Counters::default());
        Ok(Receiver { index, opening, window, counters })
    }

    /// What was received so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Checks the message in the slot, and takes its protection off in place.
    pub fn open(&mut self, slot: &mut Slot<'_>) -> Opened {
        let opened = match self.try_open(slot) {
            Ok(opened) => opened,
            Err(dropped) => Opened::Dropped(dropped),
        };
        let counters = &mut self.counters;
        *match opened {
            Opened::Delivered => &mut counters.packets,
            Opened::KeepAlive => &mut counters.keep_alives,
            Opened::Dropped(Dropped::Malformed) => &mut counters.malformed,
            Opened::Dropped(Dropped::OtherSession) => &mut counters.other_session,
            Opened::Dropped(Dropped::Replayed) => &mut counters.replayed,
            Opened::Dropped(Dropped::NotAuthentic) => &mut counters.not_authentic,
            Opened::Dropped(Dropped::NoPacket) => &mut counters.no_packet,
        } += 1;
        opened
    }

    fn try_open(&mut self, slot: &mut Slot<'_>) -> Result<Opened, Dropped> {
        let message = Message::new_checked(slot.frame());
        let Ok(Message::Data { receiver, counter, sealed: _ }) = message else {
            return Err(Dropped::Malformed);
        };
        if receiver != self.index {
            return Err(Dropped::OtherSession);
        }
        let number = counter.saturating_add(1);
        if counter >= REJECT_AFTER_MESSAGES || self.window.check(number) != Verdict::New {
            return Err(Dropped::Replayed);
        }
        let sealed = slot.frame_mut().get_mut(DATA_HEADER_LEN..).unwrap_or_default();
        if !self.opening.open(nonce(counter), &[], sealed) {
            return Err(Dropped::NotAuthentic);
        }
        self.window.take(number);
        slot.shrink_front(DATA_HEADER_LEN);
        slot.shrink_back(TAG_LEN);
        if slot.is_empty() {
            return Ok(Opened::KeepAlive);
        }
        // The packet says its own length; what is behind it is padding.
        let packet = crate::ip_packet_len(slot.frame()).ok_or(Dropped::NoPacket)?;
        slot.shrink_back(slot.len().saturating_sub(packet));
        Ok(Opened::Delivered)
    }
}
