//! Tags before a frame's EtherType: VLAN tags, which follow an EtherType 0x8100, 0x88a8 or 0x9100
//! (IEEE 802.1Q §9.6), and those of others, which are passed.

use crate::error::room;
use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "802.1Q";

/// Bytes of a tag after the EtherType that announced it.
pub const HEADER_LEN: usize = 4;

/// Tags that [`strip`] passes at most: QinQ has two; more than four is not seen in the field.
pub const MAX_TAGS: usize = 4;

/// A view of a tag and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Tag<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Tag<'a> {
    /// A view of `bytes`, which begin after the EtherType that announced the tag.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header = reader.array()?;
        Ok(Tag { header, payload: reader.rest() })
    }

    const fn control(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// The VLAN identifier, 12 bits; 0 is a priority tag.
    #[must_use]
    pub const fn vlan(&self) -> u16 {
        self.control() & 0x0fff
    }

    /// The priority code point, 3 bits.
    #[must_use]
    pub const fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Whether the frame may be dropped first.
    #[must_use]
    pub const fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// What the payload is.
    #[must_use]
    pub const fn ether_type(&self) -> EtherType {
        EtherType(u16::from_be_bytes([self.header[2], self.header[3]]))
    }

    /// What follows the tag.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A tag as its values (IEEE 802.1Q §9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// VLAN identifier, below 4096.
    pub vlan: u16,
    /// Priority code point, below 8.
    pub priority: u8,
    /// Whether the frame may be dropped first.
    pub drop_eligible: bool,
    /// What follows the tag.
    pub ether_type: EtherType,
}

impl Repr {
    /// The tag that a view shows.
    #[must_use]
    pub const fn parse(tag: &Tag<'_>) -> Self {
        Repr {
            vlan: tag.vlan(),
            priority: tag.priority(),
            drop_eligible: tag.drop_eligible(),
            ether_type: tag.ether_type(),
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the tag to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.vlan > 0x0fff {
            return Err(Error::DoesNotFit { format: FORMAT, field: "VLAN identifier" });
        }
        if self.priority > 7 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "priority" });
        }
        let control =
            self.vlan | u16::from(self.priority) << 13 | u16::from(self.drop_eligible) << 12;
        let ([a, b], [c, d]) = (control.to_be_bytes(), self.ether_type.0.to_be_bytes());
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&[a, b, c, d]);
        Ok(())
    }
}

/// Bytes of an I-TAG before the customer's frame (IEEE 802.1Q §9.7).
pub const I_TAG_LEN: usize = 4;

/// Passes the tags after a header that says `ether_type`: the inner EtherType and its payload.
/// `None` if a tag is cut or there are more than [`MAX_TAGS`].
#[must_use]
pub fn strip(mut ether_type: EtherType, mut payload: &[u8]) -> Option<(EtherType, &[u8])> {
    for _ in 0..MAX_TAGS {
        let Some(len) = before_type(ether_type, payload) else {
            return Some((ether_type, payload));
        };
        let mut reader = Reader::new(FORMAT, payload);
        reader.take(len).ok()?;
        ether_type = EtherType(reader.u16().ok()?);
        payload = reader.rest();
    }
    before_type(ether_type, payload).is_none().then_some((ether_type, payload))
}

/// Bytes of a tag before the next EtherType; `None` if `ether_type` announces no tag.
fn before_type(ether_type: EtherType, payload: &[u8]) -> Option<usize> {
    match ether_type {
        EtherType::VLAN | EtherType::QINQ | EtherType::QINQ_OLD => Some(2),
        // An HSR tag: path, size, sequence number (IEC 62439-3).
        EtherType::VN_TAG | EtherType::HSR => Some(4),
        // IEEE 802.1BR §7.5.
        EtherType::E_TAG => Some(6),
        // Version, a length in words of 32 bits, and so many of these.
        EtherType::CISCO_METADATA => Some(2 + usize::from(*payload.get(1)?) * 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..32)) {
            crate::fuzz::vlan(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            vlan in 0u16..4096, priority in 0u8..8, drop_eligible: bool, ether_type: u16,
        ) {
            let repr = Repr { vlan, priority, drop_eligible, ether_type: EtherType(ether_type) };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Tag::new_checked(&buffer).unwrap()), repr);
        }
    }

    #[test]
    fn qinq_has_two_tags_and_a_tower_of_tags_is_refused() {
        let bytes = [0x00, 0x64, 0x81, 0x00, 0x20, 0xc8, 0x08, 0x00, 0x45];
        assert_eq!(strip(EtherType::QINQ, &bytes), Some((EtherType::IPV4, &[0x45][..])));
        for (ether_type, tag) in [
            (EtherType::VN_TAG, &[0x80, 0x01, 0, 0][..]),
            (EtherType::E_TAG, &[0, 0, 0x10, 1, 0, 0]),
            (EtherType::CISCO_METADATA, &[1, 1, 0, 1, 0, 9]),
        ] {
            let bytes = [tag, &[0x81, 0x00], &bytes[..4], &bytes[4..]].concat();
            assert_eq!(strip(ether_type, &bytes), Some((EtherType::IPV4, &[0x45][..])));
        }
        let tower = [0x00, 0x01, 0x81, 0x00].repeat(9);
        assert_eq!(strip(EtherType::VLAN, &tower), None);
    }
}
