//! A receiving SecY (IEEE 802.1AE-2018 §10.6).

use std::collections::BTreeMap;
use std::fmt;

use units::named;
use wire::ethernet::{EtherType, Frame};
use wire::macsec::{Channel, Protection, Sci, Tag};

use super::suite::{Nonces, in_clear};
use super::{
    ADDRESSES_LEN, Association, ChannelCounters, Confidentiality, ETHER_TYPE_LEN, ICV_LEN,
    ReceiveCounters,
};
use crate::aead::Opening;
use crate::{KeyError, Slot};

named! {
    /// What becomes of frames that are not valid (§10.7.8, validateFrames).
    #[derive(Default)]
    pub enum Validation: "validation" {
        /// Frames are not checked; what was changed by its sender is decrypted all the same.
        Disabled = "disabled",
        /// Frames are checked and counted; those that can be read are delivered, valid or not.
        Check = "check",
        /// What is not valid is dropped, and what has no tag.
        #[default]
        Strict = "strict",
    }
}

/// A key to receive with.
pub struct ReceiveAssociation {
    number: u8,
    opening: Opening,
    nonces: Nonces,
    is_extended: bool,
    confidentiality: Confidentiality,
    /// One above the highest number of a valid frame (§10.7.15); `None` after the last of all.
    next: Option<u64>,
}

impl ReceiveAssociation {
    /// The key, for a peer's channel.
    ///
    /// # Errors
    /// Key or offset do not fit the cipher suite.
    pub fn new(association: Association, sci: Sci) -> Result<Self, KeyError> {
        let nonces = association.nonces(sci)?;
        let suite = association.suite;
        let opening = Opening::new(suite.name(), suite.algorithm(), association.key.bytes())?;
        Ok(ReceiveAssociation {
            number: association.number,
            opening,
            nonces,
            is_extended: suite.is_extended(),
            confidentiality: association.confidentiality,
            next: Some(1),
        })
    }

    /// Takes no number below this one from now on: what key agreement learns of the sender (§10.7.15).
    pub fn update_next(&mut self, next: u64) {
        self.next = self.next.map(|own| own.max(next));
    }

    /// The lowest number that replay protection takes (§10.6.2): so many below the next.
    fn lowest(&self, window: u64) -> u64 {
        self.next.unwrap_or(u64::MAX).saturating_sub(window)
    }

    /// The whole number of a frame that says its lower half, by the lowest that is taken (§10.6.2): so a late
    /// frame of the round before is known as such.
    fn recover(&self, low: u32, lowest: u64) -> u64 {
        if !self.is_extended {
            return low.into();
        }
        let (upper, lowest_low) = (lowest >> 32, lowest as u32);
        // Half of the numbers ahead: the lower half has gone round since.
        let has_gone_round = low < lowest_low && lowest_low >> 31 == 1 && low >> 31 == 0;
        upper.wrapping_add(u64::from(has_gone_round)) << 32 | u64::from(low)
    }
}

impl fmt::Debug for ReceiveAssociation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveAssociation").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A peer's secure channel.
#[derive(Default)]
struct PeerChannel {
    associations: [Option<ReceiveAssociation>; 4],
    counters: ChannelCounters,
}

/// Why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It has no tag, and validation is strict.
    NoTag,
    /// Its tag is none.
    BadTag,
    /// Its channel or association is not known.
    NoAssociation,
    /// Its number is below the window.
    Late,
    /// It is not authentic.
    NotValid,
    /// It is for key agreement (E without C), not for this.
    KeyAgreement,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It came without protection and goes on as it is.
    Untagged,
    /// Tag and ICV are off; it goes on.
    Delivered,
    /// It goes nowhere.
    Dropped(Dropped),
}

/// A receiving SecY, with the channels of its peers.
pub struct Receive {
    validation: Validation,
    /// Numbers below the next that are still taken; `None`: no replay protection (§10.7.8).
    replay_window: Option<u32>,
    channels: BTreeMap<Sci, PeerChannel>,
    counters: ReceiveCounters,
}

impl Receive {
    /// Without peers as yet.
    #[must_use]
    pub fn new(validation: Validation, replay_window: Option<u32>) -> Self {
        let counters = ReceiveCounters::default();
        Receive { validation, replay_window, channels: BTreeMap::new(), counters }
    }

    /// Has a peer's key; one of the same channel and number is dropped.
    pub fn install(&mut self, sci: Sci, association: ReceiveAssociation) {
        let channel = self.channels.entry(sci).or_default();
        let number = usize::from(association.number);
        if let Some(place) = channel.associations.get_mut(number) {
            *place = Some(association);
        }
    }

    /// Drops a key.
    pub fn remove(&mut self, sci: Sci, number: u8) {
        let channel = self.channels.get_mut(&sci);
        if let Some(place) =
            channel.and_then(|channel| channel.associations.get_mut(usize::from(number)))
        {
            *place = None;
        }
    }

    /// Drops a peer with its keys.
    pub fn remove_channel(&mut self, sci: Sci) {
        self.channels.remove(&sci);
    }

    /// A peer's key, if it is there.
    pub fn association(&mut self, sci: Sci, number: u8) -> Option<&mut ReceiveAssociation> {
        self.channels.get_mut(&sci)?.associations.get_mut(usize::from(number))?.as_mut()
    }

    /// What was received so far.
    #[must_use]
    pub const fn counters(&self) -> &ReceiveCounters {
        &self.counters
    }

    /// What came on a peer's channel.
    #[must_use]
    pub fn channel_counters(&self, sci: Sci) -> Option<&ChannelCounters> {
        self.channels.get(&sci).map(|channel| &channel.counters)
    }

    /// Checks a frame, and takes its protection off in place.
    pub fn open(&mut self, slot: &mut Slot<'_>) -> Opened {
        let Some(head) = Head::read(slot.frame()) else {
            return self.untagged();
        };
        let Some(head) = head else {
            self.counters.bad_tag += 1;
            return Opened::Dropped(Dropped::BadTag);
        };
        if head.protection == Protection::KeyAgreement {
            return Opened::Dropped(Dropped::KeyAgreement);
        }
        let Receive { validation, replay_window, channels, counters } = self;
        let channel = match head.sci {
            Some(sci) => channels.get_mut(&sci),
            // The one peer that there is (§9.5).
            None if channels.len() == 1 => channels.values_mut().next(),
            None => None,
        };
        let known = channel.and_then(|PeerChannel { associations, counters }| {
            let association = associations.get_mut(usize::from(head.association))?.as_mut()?;
            Some((association, counters))
        });
        let Some((association, of_channel)) = known else {
            return unknown(*validation, &head, counters, slot);
        };
        let lowest = association.lowest(replay_window.unwrap_or(0).into());
        let number = association.recover(head.low, lowest);
        if number == 0 {
            counters.bad_tag += 1;
            return Opened::Dropped(Dropped::BadTag);
        }
        if replay_window.is_some() && number < lowest {
            of_channel.late += 1;
            return Opened::Dropped(Dropped::Late);
        }
        if *validation == Validation::Disabled && !head.is_changed() {
            of_channel.unchecked += 1;
            head.take_off(slot);
            return Opened::Delivered;
        }
        let is_valid = association.is_valid(&head, number, slot.frame_mut());
        let octets = head.user_data as u64;
        if head.protection == Protection::IntegrityOnly {
            counters.octets_validated += octets;
        } else {
            counters.octets_decrypted += octets;
        }
        let judged = judge(is_valid, number < lowest, *validation, head.is_changed(), of_channel);
        if is_valid {
            association.advance(number);
        }
        if judged == Opened::Delivered {
            head.take_off(slot);
        }
        judged
    }

    fn untagged(&mut self) -> Opened {
        if self.validation == Validation::Strict {
            self.counters.no_tag += 1;
            Opened::Dropped(Dropped::NoTag)
        } else {
            self.counters.untagged += 1;
            Opened::Untagged
        }
    }
}

/// A frame of no known channel or association (§10.6.1): it goes on if it can be read and need not be valid.
fn unknown(
    validation: Validation,
    head: &Head,
    counters: &mut ReceiveCounters,
    slot: &mut Slot<'_>,
) -> Opened {
    if validation == Validation::Strict || head.is_changed() {
        counters.no_association_error += 1;
        return Opened::Dropped(Dropped::NoAssociation);
    }
    counters.no_association += 1;
    head.take_off(slot);
    Opened::Delivered
}

/// What becomes of a checked frame, and its counter (§10.6.5).
fn judge(
    is_valid: bool,
    is_late: bool,
    validation: Validation,
    is_changed: bool,
    counters: &mut ChannelCounters,
) -> Opened {
    match (is_valid, validation) {
        (false, Validation::Strict) => counters.not_valid += 1,
        (false, _) if is_changed => counters.not_valid += 1,
        (false, _) => {
            counters.invalid += 1;
            return Opened::Delivered;
        }
        (true, _) => {
            // Without replay protection a late frame is delivered.
            let counter = if is_late { &mut counters.delayed } else { &mut counters.ok };
            *counter += 1;
            return Opened::Delivered;
        }
    }
    Opened::Dropped(Dropped::NotValid)
}

impl ReceiveAssociation {
    /// Whether a frame is authentic; if so, it is decrypted.
    fn is_valid(&self, head: &Head, number: u64, frame: &mut [u8]) -> bool {
        let clear = match head.protection {
            Protection::IntegrityOnly => head.user_data,
            _ => match self.confidentiality {
                // Changed, though this side expects integrity alone: no offset is known.
                Confidentiality::None => 0,
                other => in_clear(other, head.user_data),
            },
        };
        let end = head.before.saturating_add(head.user_data).saturating_add(ICV_LEN);
        let authenticated = head.before.saturating_add(clear);
        let split =
            frame.get_mut(..end).and_then(|frame| frame.split_at_mut_checked(authenticated));
        split.is_some_and(|(authenticated, text)| {
            self.opening.open(self.nonces.of(number), authenticated, text)
        })
    }

    /// After a valid frame of this number (§10.6.5).
    fn advance(&mut self, number: u64) {
        if self.next.is_some_and(|next| number >= next) {
            self.next = number.checked_add(1);
        }
    }
}

/// What a frame's tag says.
struct Head {
    /// Bytes before the user data.
    before: usize,
    /// Bytes of user data.
    user_data: usize,
    protection: Protection,
    association: u8,
    low: u32,
    /// `None`: not named.
    sci: Option<Sci>,
}

impl Head {
    /// The tag of a frame: `None` without one, `Some(None)` with one that is none.
    #[allow(clippy::option_option)]
    fn read(frame: &[u8]) -> Option<Option<Head>> {
        let view = Frame::new_checked(frame).ok()?;
        if view.ether_type() != EtherType::MACSEC {
            return None;
        }
        Some(Head::of(&view))
    }

    fn of(frame: &Frame<'_>) -> Option<Head> {
        let tag = Tag::new_checked(frame.payload()).ok()?;
        let user_data = tag.secure_data(ICV_LEN).ok()?;
        let of_port = |port| Some(Sci::new(frame.source(), port));
        Some(Head {
            before: ADDRESSES_LEN + ETHER_TYPE_LEN + tag.header_len(),
            user_data,
            protection: tag.protection(),
            association: tag.association(),
            low: tag.packet_number(),
            sci: match tag.channel() {
                Channel::Explicit(sci) => Some(sci),
                Channel::EndStation => of_port(Sci::END_STATION_PORT),
                Channel::SingleCopyBroadcast { .. } => of_port(Sci::SINGLE_COPY_PORT),
                Channel::Implicit => None,
            },
        })
    }

    /// Whether user data cannot be read as they came.
    fn is_changed(&self) -> bool {
        self.protection != Protection::IntegrityOnly
    }

    /// Takes tag, ICV and padding off.
    fn take_off(&self, slot: &mut Slot<'_>) {
        let end = self.before.saturating_add(self.user_data);
        slot.shrink_back(slot.len().saturating_sub(end));
        slot.close_gap(ADDRESSES_LEN, self.before.saturating_sub(ADDRESSES_LEN));
    }
}
