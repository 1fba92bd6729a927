//! A virtual private wire service: whole Ethernet frames across an MPLS network (RFC 4448), whatever their
//! addresses and types are.
//!
//! One label stands for both the path and the pseudowire. Provider edges [`Push`] and [`Pop`] it with an Ethernet
//! header and a control word, 22 bytes in all; between them it is swapped ([`Swap`]). Frames are not numbered
//! (RFC 4448 §4.6: sequencing is optional). Labels are by configuration, not by BGP or LDP.

use wire::ethernet::{self, Address, EtherType, Frame};
use wire::mpls::{self, ControlWord, Entry};

use crate::{SealError, Slot};

/// Bytes that [`Push`] adds.
pub const ADDED: usize = ethernet::HEADER_LEN + mpls::HEADER_LEN + mpls::HEADER_LEN;

/// Bytes before the control word.
const HEADERS: usize = ethernet::HEADER_LEN + mpls::HEADER_LEN;

/// Hops that a label begins with.
const TIME_TO_LIVE: u8 = 255;

/// Bytes of control word and frame from which on their length is not said (RFC 4448 §4.6).
const LENGTH_UNSAID: usize = 64;

/// A label that may be given out: 16 to 2^20 - 1 (RFC 3032 §2.1 reserves those below).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

impl Label {
    /// The label; `None` if it is reserved or beyond the last.
    #[must_use]
    pub const fn new(label: u32) -> Option<Self> {
        if label < 16 || label >> 20 != 0 { None } else { Some(Label(label)) }
    }

    /// The label as in the stack entry: 20 bits.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

/// A link of the provider's network, on the way of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The router that sends on it.
    pub from: Address,
    /// The router that receives.
    pub to: Address,
    /// The label that the receiver knows the pseudowire by.
    pub label: Label,
}

/// Why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// It is for another station, or holds no MPLS.
    NotForUs,
    /// Its label is not known here.
    NoLabel,
    /// It has no hop left (RFC 3032 §2.4.2).
    Expired,
    /// It is cut short, or what follows the label is no control word.
    Malformed,
}

/// The end at which frames enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Push {
    /// The first link.
    pub link: Link,
}

/// A router on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swap {
    /// The link that frames come by.
    pub incoming: Link,
    /// The link that they leave by.
    pub outgoing: Link,
}

/// The end at which frames leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pop {
    /// The last link.
    pub link: Link,
}

/// Writes Ethernet's header and the label.
fn write(buffer: &mut [u8], link: Link, entry: mpls::Repr) -> Option<()> {
    let (destination, source) = (link.to, link.from);
    let header = ethernet::Repr { destination, source, ether_type: EtherType::MPLS };
    header.emit(buffer).ok()?;
    entry.emit(buffer.get_mut(ethernet::HEADER_LEN..)?).ok()
}

/// The label entry of a frame that came by this link.
fn entry(frame: &[u8], link: Link) -> Result<mpls::Repr, Dropped> {
    let frame = Frame::new_checked(frame).map_err(|_| Dropped::Malformed)?;
    if frame.destination() != link.to || frame.ether_type() != EtherType::MPLS {
        return Err(Dropped::NotForUs);
    }
    let entry = Entry::new_checked(frame.payload()).map_err(|_| Dropped::Malformed)?;
    if entry.label() != link.label.0 {
        return Err(Dropped::NoLabel);
    }
    Ok(mpls::Repr::parse(&entry))
}

impl Push {
    /// Puts Ethernet's header, label and control word before the frame in the slot.
    ///
    /// # Errors
    /// There is no room before it. It is then as it was.
    pub fn apply(&self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        let with_word = slot.len().saturating_add(mpls::HEADER_LEN);
        slot.grow_front(ADDED)?;
        // So that the far end can take off what Ethernet pads short frames with (RFC 4448 §4.6).
        let length = if with_word < LENGTH_UNSAID { with_word as u8 } else { 0 };
        let word = ControlWord { flags: 0, length, sequence: 0 };
        let entry = mpls::Repr {
            label: self.link.label.0,
            traffic_class: 0,
            bottom: true,
            time_to_live: TIME_TO_LIVE,
        };
        let buffer = slot.frame_mut();
        let written = write(buffer, self.link, entry)
            .and_then(|()| word.emit(buffer.get_mut(HEADERS..)?).ok());
        written.ok_or(SealError::TooShort)
    }
}

impl Swap {
    /// Writes the next link's addresses and label into the frame in the slot, which has one hop less left.
    ///
    /// # Errors
    /// The frame is to be dropped.
    pub fn apply(&self, slot: &mut Slot<'_>) -> Result<(), Dropped> {
        let found = entry(slot.frame(), self.incoming)?;
        let time_to_live = found.time_to_live.saturating_sub(1);
        if time_to_live == 0 {
            return Err(Dropped::Expired);
        }
        let entry = mpls::Repr { label: self.outgoing.label.0, time_to_live, ..found };
        write(slot.frame_mut(), self.outgoing, entry).ok_or(Dropped::Malformed)
    }
}

impl Pop {
    /// Takes what [`Push`] put before the frame off, and what Ethernet padded behind it.
    ///
    /// # Errors
    /// The frame is to be dropped.
    pub fn apply(&self, slot: &mut Slot<'_>) -> Result<(), Dropped> {
        let found = entry(slot.frame(), self.link)?;
        if !found.bottom {
            return Err(Dropped::NoLabel);
        }
        let behind = slot.frame().get(HEADERS..).unwrap_or_default();
        let (word, _) = ControlWord::parse(behind).map_err(|_| Dropped::Malformed)?;
        let len = match usize::from(word.length) {
            0 => slot.len().checked_sub(ADDED),
            said => said.checked_sub(mpls::HEADER_LEN),
        };
        let padded = slot.len().saturating_sub(ADDED);
        let len = len.filter(|len| *len <= padded).ok_or(Dropped::Malformed)?;
        slot.shrink_front(ADDED);
        slot.shrink_back(padded.saturating_sub(len));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn link(number: u8, label: u32) -> Link {
        let station = |side| Address([2, 0, 0, 0, number, side]);
        Link { from: station(1), to: station(2), label: Label::new(label).unwrap() }
    }

    fn way() -> (Push, Swap, Pop) {
        let (first, second) = (link(2, 100), link(3, 101));
        (Push { link: first }, Swap { incoming: first, outgoing: second }, Pop { link: second })
    }

    /// A frame, and what became of it after the first two of three routers.
    fn on_its_way(frame: &[u8]) -> Vec<u8> {
        let (push, swap, _) = way();
        let mut buffer = [&[0; ADDED][..], frame].concat();
        let end = buffer.len();
        let mut slot = Slot::new(&mut buffer, ADDED..end).unwrap();
        push.apply(&mut slot).unwrap();
        assert_eq!(slot.len(), frame.len() + ADDED);
        swap.apply(&mut slot).unwrap();
        slot.frame().to_vec()
    }

    fn popped(bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let mut buffer = bytes.to_vec();
        let end = buffer.len();
        let mut slot = Slot::new(&mut buffer, 0..end).unwrap();
        way().2.apply(&mut slot).map(|()| slot.frame().to_vec())
    }

    proptest! {
        #[test]
        fn any_frame_comes_out_as_it_went_in(
            frame in proptest::collection::vec(any::<u8>(), 0..200), padding in 0usize..30,
        ) {
            let mut bytes = on_its_way(&frame);
            prop_assert_eq!(&popped(&bytes).unwrap(), &frame);
            // Padding is taken off short frames; of longer ones Ethernet pads none.
            if frame.len() + 4 < 64 {
                bytes.extend(vec![0xee; padding]);
                prop_assert_eq!(&popped(&bytes).unwrap(), &frame);
            }
        }
    }

    #[test]
    fn key_agreement_passes_the_pseudowire() {
        // IEEE 802.1X's group address, which no bridge would let pass.
        let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 3, 2, 0, 0, 0, 0, 1, 0x88, 0x8e];
        frame.extend([0; 60]);
        assert_eq!(popped(&on_its_way(&frame)).unwrap(), frame);
    }

    #[test]
    fn what_is_not_for_the_pseudowire_is_dropped() {
        let good = on_its_way(&[7; 80]);
        for (at, value, why) in [
            (0, 9, Dropped::NotForUs),
            (13, 0x48, Dropped::NotForUs),
            (15, 9, Dropped::NoLabel),
            (16, 0x50, Dropped::NoLabel),
            (18, 0x40, Dropped::Malformed),
            (19, 3, Dropped::Malformed),
        ] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert_eq!(popped(&bytes), Err(why), "byte {at}");
        }
        for kept in 0..ADDED {
            assert!(popped(&good[..kept]).is_err(), "{kept} bytes");
        }
    }

    #[test]
    fn a_label_without_hops_left_is_not_swapped() {
        let (push, swap, _) = way();
        let mut buffer = [0; 100];
        let mut slot = Slot::new(&mut buffer, 40..100).unwrap();
        push.apply(&mut slot).unwrap();
        slot.frame_mut()[17] = 1;
        assert_eq!(swap.apply(&mut slot), Err(Dropped::Expired));
    }

    #[test]
    fn reserved_labels_are_none() {
        assert_eq!((Label::new(15), Label::new(1 << 20)), (None, None));
        assert_eq!(Label::new(16).map(Label::value), Some(16));
    }
}
