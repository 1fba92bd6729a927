//! A transmitting secure channel (IEEE 802.1AE-2018 §10.5).

use std::fmt;

use wire::ethernet::EtherType;
use wire::macsec::{Channel, Protection, Repr, Sci};

use super::suite::{Nonces, in_clear};
use super::{
    ADDRESSES_LEN, Association, Confidentiality, ETHER_TYPE_LEN, ICV_LEN, TransmitCounters,
};
use crate::aead::Sealing;
use crate::numbers::Numbers;
use crate::{KeyError, SealError, Slot};

/// How frames name their channel (§10.5.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Naming {
    /// By its identifier: as many senders as one likes.
    #[default]
    Explicit,
    /// By the source address, the sender being an end station.
    EndStation,
    /// Not at all: the receiver has one peer.
    Implicit,
}

/// A key to send with.
pub struct TransmitAssociation {
    number: u8,
    sealing: Sealing,
    nonces: Nonces,
    confidentiality: Confidentiality,
}

impl TransmitAssociation {
    /// The key, for a channel; its first frame has the packet number `first` (1 with a fresh key).
    ///
    /// # Errors
    /// Key, numbers or offset do not fit the cipher suite.
    pub fn new(association: Association, sci: Sci, first: u64) -> Result<Self, KeyError> {
        let nonces = association.nonces(sci)?;
        let suite = association.suite;
        if first == 0 || first > suite.last_number() {
            return Err(KeyError::OutOfRange("the first packet number"));
        }
        let numbers = Numbers::new(first, suite.last_number());
        let key = association.key.bytes();
        let sealing = Sealing::new(suite.name(), suite.algorithm(), key, numbers)?;
        let (number, confidentiality) = (association.number, association.confidentiality);
        Ok(TransmitAssociation { number, sealing, nonces, confidentiality })
    }
}

impl fmt::Debug for TransmitAssociation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransmitAssociation").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A transmitting secure channel: one key is sent with, the others of its four wait.
pub struct Transmit {
    sci: Sci,
    naming: Naming,
    /// By association number.
    associations: [Option<TransmitAssociation>; 4],
    /// The association that is sent with; `None` between a key that took its number and the next order.
    encoding: Option<u8>,
    counters: TransmitCounters,
}

impl Transmit {
    /// A channel without keys as yet.
    #[must_use]
    pub fn new(sci: Sci, naming: Naming) -> Self {
        let counters = TransmitCounters::default();
        Transmit { sci, naming, associations: [const { None }; 4], encoding: Some(0), counters }
    }

    /// The secure channel identifier that its frames carry or imply.
    #[must_use]
    pub const fn sci(&self) -> Sci {
        self.sci
    }

    /// Has a key; one of the same number is dropped. The channel sends with it at once if it sends with this number,
    /// which is 0 at the start.
    pub fn install(&mut self, association: TransmitAssociation) {
        let number = association.number;
        if let Some(place) = self.associations.get_mut(usize::from(number)) {
            *place = Some(association);
        }
    }

    /// Has a key as [`Transmit::install`], but sends with it only after [`Transmit::use_association`].
    pub fn prepare(&mut self, association: TransmitAssociation) {
        self.encoding = self.encoding.filter(|encoding| *encoding != association.number);
        self.install(association);
    }

    /// Drops a key.
    pub fn remove(&mut self, number: u8) {
        if let Some(place) = self.associations.get_mut(usize::from(number)) {
            *place = None;
        }
    }

    /// Sends with this association from now on (§10.7.21, encodingSA). Whether there is one.
    pub fn use_association(&mut self, number: u8) -> bool {
        let is_there = self.associations.get(usize::from(number)).is_some_and(Option::is_some);
        if is_there {
            self.encoding = Some(number);
        }
        is_there
    }

    /// The packet number that the next frame has; `None` without a key or number.
    #[must_use]
    pub fn next_number(&self) -> Option<u64> {
        let current = self.associations.get(usize::from(self.encoding?))?.as_ref()?;
        current.sealing.numbers().peek()
    }

    /// What was sent.
    #[must_use]
    pub const fn counters(&self) -> &TransmitCounters {
        &self.counters
    }

    /// Bytes that [`Transmit::seal`] adds before a frame.
    #[must_use]
    pub fn added_before(&self) -> usize {
        let tag = match self.naming {
            Naming::Explicit => wire::macsec::LONG_LEN,
            Naming::EndStation | Naming::Implicit => wire::macsec::SHORT_LEN,
        };
        ETHER_TYPE_LEN + tag
    }

    /// Protects the frame in place.
    ///
    /// # Errors
    /// The frame has no whole header, there is no room around it, no key, or no number left. It is
    /// then as it was.
    pub fn seal(&mut self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        let added = self.added_before();
        let before = slot.range();
        // At least an EtherType: 0 bytes could not be told from 48 and more (§9.7).
        let user_data = before.len().checked_sub(ADDRESSES_LEN);
        let user_data = user_data.filter(|user_data| *user_data >= ETHER_TYPE_LEN);
        let user_data = user_data.ok_or(SealError::TooShort)?;
        let encoding = self.encoding.map(usize::from).ok_or(SealError::NoKey)?;
        let place = self.associations.get_mut(encoding);
        let current = place.and_then(Option::as_mut).ok_or(SealError::NoKey)?;
        slot.grow_back(ICV_LEN)?;
        if let Err(error) = slot.open_gap(ADDRESSES_LEN, added) {
            slot.shrink_back(ICV_LEN);
            return Err(error);
        }
        let sealed = current.seal(self.sci, self.naming, user_data, slot.frame_mut());
        if let Err(error) = sealed {
            slot.close_gap(ADDRESSES_LEN, added);
            slot.shrink_back(ICV_LEN);
            return Err(error);
        }
        let octets = user_data as u64;
        if current.confidentiality == Confidentiality::None {
            self.counters.protected += 1;
            self.counters.octets_protected += octets;
        } else {
            self.counters.encrypted += 1;
            self.counters.octets_encrypted += octets;
        }
        Ok(())
    }
}

impl TransmitAssociation {
    /// Fills in tag, ciphertext and ICV of a frame that has room for them.
    fn seal(
        &mut self,
        sci: Sci,
        naming: Naming,
        user_data: usize,
        frame: &mut [u8],
    ) -> Result<(), SealError> {
        let turn = self.sealing.turn()?;
        let tag = Repr {
            association: self.number,
            channel: match naming {
                Naming::Explicit => Channel::Explicit(sci),
                Naming::EndStation => Channel::EndStation,
                Naming::Implicit => Channel::Implicit,
            },
            protection: match self.confidentiality {
                Confidentiality::None => Protection::IntegrityOnly,
                _ => Protection::Encrypted,
            },
            short_length: Repr::short_length(user_data),
            // Of an extended number the lower half is sent (§9.8).
            packet_number: turn.number() as u32,
        };
        let head = frame.get_mut(ADDRESSES_LEN..).unwrap_or_default();
        let (ether_type, rest) =
            head.split_first_chunk_mut::<ETHER_TYPE_LEN>().ok_or(SealError::TooShort)?;
        *ether_type = EtherType::MACSEC.0.to_be_bytes();
        tag.emit(rest).map_err(|_| SealError::TooShort)?;
        let clear = ADDRESSES_LEN + ETHER_TYPE_LEN + tag.buffer_len();
        let authenticated = clear.saturating_add(in_clear(self.confidentiality, user_data));
        let (authenticated, rest) =
            frame.split_at_mut_checked(authenticated).ok_or(SealError::TooShort)?;
        let text = rest.len().checked_sub(ICV_LEN).ok_or(SealError::TooShort)?;
        let (text, icv) = rest.split_at_mut_checked(text).ok_or(SealError::TooShort)?;
        turn.seal(|number| self.nonces.of(number), authenticated, text, icv)
    }
}
