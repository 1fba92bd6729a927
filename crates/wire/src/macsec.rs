//! The MAC security tag (IEEE 802.1AE-2018 §9): what follows the EtherType of MACsec.

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "MACsec";

/// Bytes of a tag without a secure channel identifier, after the EtherType (§9.3).
pub const SHORT_LEN: usize = 6;

/// Bytes of a tag with one.
pub const LONG_LEN: usize = SHORT_LEN + 8;

/// Bytes of secure data from which on the short length is 0 (§9.7).
pub const SHORT_DATA: usize = 48;

const VERSION: u8 = 0x80;
const END_STATION: u8 = 0x40;
const EXPLICIT: u8 = 0x20;
const SINGLE_COPY_BROADCAST: u8 = 0x10;
const ENCRYPTED: u8 = 0x08;
const CHANGED: u8 = 0x04;
const ASSOCIATION: u8 = 0x03;

/// A secure channel identifier: the sender's MAC address and a port number (§8.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sci(pub [u8; 8]);

impl Sci {
    /// The port of an end station that has but one (§9.9).
    pub const END_STATION_PORT: u16 = 1;
    /// The port of frames of a single copy broadcast capability (§9.9).
    pub const SINGLE_COPY_PORT: u16 = 0;

    /// The identifier of a port of the station with this address.
    #[must_use]
    pub const fn new(address: crate::ethernet::Address, port: u16) -> Self {
        let ([a, b, c, d, e, f], [g, h]) = (address.0, port.to_be_bytes());
        Sci([a, b, c, d, e, f, g, h])
    }
}

impl std::fmt::Display for Sci {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// How a tag names the secure channel (§9.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Its identifier is in the tag.
    Explicit(Sci),
    /// Not in the tag: the group has two members, or a receiver knows its one peer.
    Implicit,
    /// Not in the tag: the source address with port 1 (the bit ES).
    EndStation,
    /// Not in the tag: the source address with port 0 (the bits SCB, and ES if `end_station`).
    SingleCopyBroadcast {
        /// Whether the bit ES is set too.
        end_station: bool,
    },
}

/// What was done with the user data (§9.5, Table 9-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Neither E nor C: as they were, integrity alone, by an ICV of 16 bytes.
    IntegrityOnly,
    /// C alone: changed by the cipher suite, but not for secrecy.
    Changed,
    /// E and C: encrypted, behind the confidentiality offset.
    Encrypted,
    /// E without C: not for the SecY but for key agreement.
    KeyAgreement,
}

/// A view of a tag and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Tag<'a> {
    control: u8,
    short_length: u8,
    packet_number: u32,
    channel: Channel,
    rest: &'a [u8],
}

impl<'a> Tag<'a> {
    /// A view of `bytes`, which begin after the EtherType. The checks are those of §9.12 that need no ICV
    /// length; [`Tag::secure_data`] makes the others.
    ///
    /// # Errors
    /// It is cut short, of another version, names its channel twice, or has an impossible short length.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let (control, short_length) = (reader.u8()?, reader.u8()?);
        if control & VERSION != 0 {
            return Err(Error::malformed(FORMAT, "its version is not 0"));
        }
        if usize::from(short_length) >= SHORT_DATA {
            return Err(Error::malformed(FORMAT, "its short length is above 47"));
        }
        let packet_number = reader.u32()?;
        let end_station = control & END_STATION != 0;
        let single_copy = control & SINGLE_COPY_BROADCAST != 0;
        let channel = match (control & EXPLICIT != 0, single_copy) {
            (true, _) if end_station || single_copy => {
                let problem = "it has an identifier of the channel beside the bit ES or SCB";
                return Err(Error::malformed(FORMAT, problem));
            }
            (true, _) => Channel::Explicit(Sci(*reader.array()?)),
            (false, true) => Channel::SingleCopyBroadcast { end_station },
            (false, false) if end_station => Channel::EndStation,
            (false, false) => Channel::Implicit,
        };
        Ok(Tag { control, short_length, packet_number, channel, rest: reader.rest() })
    }

    /// The association number, 0 to 3.
    #[must_use]
    pub const fn association(&self) -> u8 {
        self.control & ASSOCIATION
    }

    /// What was done with the user data.
    #[must_use]
    pub const fn protection(&self) -> Protection {
        match (self.control & ENCRYPTED != 0, self.control & CHANGED != 0) {
            (true, true) => Protection::Encrypted,
            (true, false) => Protection::KeyAgreement,
            (false, true) => Protection::Changed,
            (false, false) => Protection::IntegrityOnly,
        }
    }

    /// The packet number; with extended numbering its lower half.
    #[must_use]
    pub const fn packet_number(&self) -> u32 {
        self.packet_number
    }

    /// How the channel is named.
    #[must_use]
    pub const fn channel(&self) -> Channel {
        self.channel
    }

    /// Bytes of the tag.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        match self.channel {
            Channel::Explicit(_) => LONG_LEN,
            _ => SHORT_LEN,
        }
    }

    /// Secure data and ICV, with what else is behind them in a short frame: padding.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes of secure data, if the ICV has `icv_len` (§9.12 f to i): as many as the short length says, or all
    /// but the ICV, at least 48. A short frame may be padded behind its ICV.
    ///
    /// # Errors
    /// There are fewer than these.
    pub fn secure_data(&self, icv_len: usize) -> Result<usize, Error> {
        let had = self.rest.len();
        let truncated = |needed| Error::Truncated { format: FORMAT, needed, had };
        match usize::from(self.short_length) {
            0 => {
                let data = had.checked_sub(icv_len).filter(|data| *data >= SHORT_DATA);
                data.ok_or(truncated(SHORT_DATA.saturating_add(icv_len)))
            }
            data => {
                let needed = data.saturating_add(icv_len);
                if had < needed { Err(truncated(needed)) } else { Ok(data) }
            }
        }
    }
}

/// A SecTAG as its values (IEEE 802.1AE §9.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The association number, below 4.
    pub association: u8,
    /// How the channel is named.
    pub channel: Channel,
    /// What was done with the user data.
    pub protection: Protection,
    /// Bytes of secure data where these are below 48, or 0.
    pub short_length: u8,
    /// The packet number; with extended numbering its lower half.
    pub packet_number: u32,
}

impl Repr {
    /// The short length of so many bytes of secure data (§9.7).
    #[must_use]
    pub const fn short_length(data: usize) -> u8 {
        if data < SHORT_DATA { data as u8 } else { 0 }
    }

    /// The tag that a view shows.
    #[must_use]
    pub const fn parse(tag: &Tag<'_>) -> Self {
        Repr {
            association: tag.association(),
            channel: tag.channel,
            protection: tag.protection(),
            short_length: tag.short_length,
            packet_number: tag.packet_number,
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        match self.channel {
            Channel::Explicit(_) => LONG_LEN,
            _ => SHORT_LEN,
        }
    }

    /// Writes the tag, without its EtherType, to the front of `buffer`.
    ///
    /// # Errors
    /// A field does not fit, or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.association > ASSOCIATION {
            return Err(Error::DoesNotFit { format: FORMAT, field: "association number" });
        }
        if usize::from(self.short_length) >= SHORT_DATA {
            return Err(Error::DoesNotFit { format: FORMAT, field: "short length" });
        }
        let channel = match self.channel {
            Channel::Explicit(_) => EXPLICIT,
            Channel::Implicit => 0,
            Channel::EndStation => END_STATION,
            Channel::SingleCopyBroadcast { end_station: false } => SINGLE_COPY_BROADCAST,
            Channel::SingleCopyBroadcast { end_station: true } => {
                SINGLE_COPY_BROADCAST | END_STATION
            }
        };
        let protection = match self.protection {
            Protection::IntegrityOnly => 0,
            Protection::Changed => CHANGED,
            Protection::Encrypted => ENCRYPTED | CHANGED,
            Protection::KeyAgreement => ENCRYPTED,
        };
        let buffer = room(FORMAT, buffer, self.buffer_len())?;
        let (head, sci) = buffer.split_at_mut(SHORT_LEN);
        let [a, b, c, d] = self.packet_number.to_be_bytes();
        let control = channel | protection | self.association;
        head.copy_from_slice(&[control, self.short_length, a, b, c, d]);
        if let Channel::Explicit(identifier) = self.channel {
            sci.copy_from_slice(&identifier.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::Address;
    use proptest::prelude::*;

    fn any_channel() -> impl Strategy<Value = Channel> {
        prop_oneof![
            any::<[u8; 8]>().prop_map(|sci| Channel::Explicit(Sci(sci))),
            Just(Channel::Implicit),
            Just(Channel::EndStation),
            any::<bool>().prop_map(|end_station| Channel::SingleCopyBroadcast { end_station }),
        ]
    }

    fn any_protection() -> impl Strategy<Value = Protection> {
        prop_oneof![
            Just(Protection::IntegrityOnly),
            Just(Protection::Changed),
            Just(Protection::Encrypted),
            Just(Protection::KeyAgreement),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..90)) {
            crate::fuzz::macsec(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            association in 0u8..4, channel in any_channel(), protection in any_protection(),
            short_length in 0u8..48, packet_number: u32,
        ) {
            let repr = Repr { association, channel, protection, short_length, packet_number };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Tag::new_checked(&buffer).unwrap()), repr);
        }
    }

    #[test]
    fn a_tag_of_the_standards_example_is_read() {
        // IEEE 802.1AE-2018 Annex C.6: 60 bytes, encrypted.
        let bytes =
            [0x2e, 0x00, 0xb2, 0xc2, 0x84, 0x65, 0x12, 0x15, 0x35, 0x24, 0xc0, 0x89, 0x5e, 0x81];
        let tag = Tag::new_checked(&bytes).unwrap();
        let sender = Address([0x12, 0x15, 0x35, 0x24, 0xc0, 0x89]);
        assert_eq!(tag.channel(), Channel::Explicit(Sci::new(sender, 0x5e81)));
        assert_eq!(tag.protection(), Protection::Encrypted);
        assert_eq!((tag.association(), tag.packet_number()), (2, 0xb2c2_8465));
    }

    #[test]
    fn a_tag_that_contradicts_itself_is_refused() {
        for control in [0x80, 0x60, 0x30, 0x70] {
            let bytes = [&[control, 0, 0, 0, 0, 1][..], &[0; 80]].concat();
            assert!(Tag::new_checked(&bytes).is_err(), "{control:02x}");
        }
        assert!(Tag::new_checked(&[0, 48, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn secure_data_end_where_the_short_length_says_and_else_before_the_icv() {
        let tag =
            |short: u8, rest: usize| [&[0x0c, short, 0, 0, 0, 1][..], &vec![0; rest]].concat();
        let data = |short, rest| Tag::new_checked(&tag(short, rest)).unwrap().secure_data(16).ok();
        assert_eq!(data(0, 48 + 16), Some(48));
        assert_eq!(data(0, 47 + 16), None);
        assert_eq!(data(20, 20 + 16), Some(20));
        // Padding behind the ICV.
        assert_eq!(data(20, 20 + 16 + 9), Some(20));
        assert_eq!(data(20, 20 + 15), None);
    }
}
