//! QUIC: what every version shares (RFC 8999), packets of versions 1 (RFC 9000) and 2 (RFC 9369)
//! and of drafts 23 to 34, the frames of their Initial packets ([`frame`]) and of any ([`AnyFrames`]).
//! Nothing here decrypts; header protection is undone by whoever has the keys, with
//! [`LongPacket::packet_number_offset`] and [`LongPacket::protected_len`].

mod any_frame;
pub mod frame;
mod version;

pub use self::any_frame::{AnyFrame, AnyFrames, StreamType};
pub use self::version::Version;
use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "QUIC";

/// The longest connection identifier of versions 1 and 2 (RFC 9000 §17.2).
pub const MAX_CID_LEN: usize = 20;

/// Reads a variable-length integer (RFC 9000 §16).
pub fn read_varint(reader: &mut Reader<'_>) -> Result<u64, Error> {
    let first = reader.u8()?;
    let mut value = u64::from(first & 0x3f);
    for _ in 1..1u32 << (first >> 6) {
        value = value << 8 | u64::from(reader.u8()?);
    }
    Ok(value)
}

/// Appends a variable-length integer in its shortest form; above 2^62 - 1 nothing can be written.
pub fn put_varint(value: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend((value as u32 | 0x8000_0000).to_be_bytes()),
        0x4000_0000..=0x3fff_ffff_ffff_ffff => {
            out.extend((value | 0xc000_0000_0000_0000).to_be_bytes());
        }
        _ => return Err(Error::DoesNotFit { format: FORMAT, field: "variable-length integer" }),
    }
    Ok(())
}

/// A client's first datagram has at least this many bytes (RFC 9000 §14.1).
pub const MIN_FIRST_DATAGRAM: usize = 1200;

/// The version of a datagram that looks like a client's first one, if packets of it cannot be read
/// here: a long header with plausible identifiers, in a datagram of `len` bytes of which `bytes` were
/// captured. RFC 9443 §3 gives QUIC the first bytes that have both high bits set.
#[must_use]
pub fn unread_version(bytes: &[u8], len: usize) -> Option<Version> {
    let common = Invariants::new_checked(bytes).ok()?;
    let plausible = common.first & 0xc0 == 0xc0
        && len >= MIN_FIRST_DATAGRAM
        && (8..=MAX_CID_LEN).contains(&common.destination.len())
        && common.source.len() <= MAX_CID_LEN;
    let version = common.version;
    (plausible && version != Version::NEGOTIATION && !version.is_known()).then_some(version)
}

/// A long header packet's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PacketType {
    /// Carries the hellos under keys that anyone can derive.
    Initial,
    /// Carries early data, 0-RTT (RFC 9000 §17.2.3).
    ZeroRtt,
    /// Carries the rest of the handshake.
    Handshake,
    /// The server asks for the address to be proven.
    Retry,
}

impl PacketType {
    /// The type that two bits mean; version 2 turns them by one (RFC 9369 §3.2).
    const fn from_bits(version: Version, bits: u8) -> Self {
        let turned = match version {
            Version::V2 => bits.wrapping_sub(1),
            _ => bits,
        };
        match turned & 3 {
            0 => PacketType::Initial,
            1 => PacketType::ZeroRtt,
            2 => PacketType::Handshake,
            _ => PacketType::Retry,
        }
    }

    const fn bits(self, version: Version) -> u8 {
        let bits: u8 = match self {
            PacketType::Initial => 0,
            PacketType::ZeroRtt => 1,
            PacketType::Handshake => 2,
            PacketType::Retry => 3,
        };
        match version {
            Version::V2 => bits.wrapping_add(1) & 3,
            _ => bits,
        }
    }
}

/// The part of a long header that every version shares (RFC 8999 §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariants<'a> {
    /// The first byte; its low seven bits are the version's own.
    pub first: u8,
    /// The version; 0 is version negotiation.
    pub version: Version,
    /// The receiver's connection identifier.
    pub destination: &'a [u8],
    /// The sender's connection identifier.
    pub source: &'a [u8],
    /// What follows the two identifiers; the version says what it is.
    pub rest: &'a [u8],
}

impl<'a> Invariants<'a> {
    /// Reads them, if `bytes` begin with a long header.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let first = reader.u8()?;
        if first & 0x80 == 0 {
            return Err(Error::malformed(FORMAT, "its header is short"));
        }
        let version = Version(reader.u32()?);
        let destination = reader.vec8()?;
        let source = reader.vec8()?;
        Ok(Invariants { first, version, destination, source, rest: reader.rest() })
    }
}

/// The bit that tells QUIC from other protocols on a port (RFC 9000 §17.2, RFC 9287).
const FIXED_BIT: u8 = 0x40;

/// A view of a long header packet of a known version, protected as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongPacket<'a> {
    kind: PacketType,
    version: Version,
    destination: &'a [u8],
    source: &'a [u8],
    token: &'a [u8],
    bytes: &'a [u8],
    packet_number_offset: usize,
}

impl<'a> LongPacket<'a> {
    /// A view of the packet at the front of `bytes`, and what follows it in the datagram.
    ///
    /// A Retry takes all of `bytes`: it has no length, and is never followed (RFC 9000 §12.2).
    pub fn new_checked(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        // RFC 9000 §17.2: the fixed bit is 1.
        if bytes.first().is_some_and(|first| first & FIXED_BIT == 0) {
            return Err(Error::malformed(FORMAT, "its fixed bit is not set"));
        }
        Self::new_greased(bytes)
    }

    /// As [`LongPacket::new_checked`], whatever the fixed bit is: a peer that announced
    /// `grease_quic_bit` in its first flight is sent both (RFC 9287 §3).
    pub fn new_greased(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let common = Invariants::new_checked(bytes)?;
        let version = common.version;
        if !version.is_known() {
            return Err(Error::malformed(FORMAT, "its version is not read"));
        }
        if common.destination.len() > MAX_CID_LEN || common.source.len() > MAX_CID_LEN {
            return Err(Error::malformed(FORMAT, "a connection identifier is above 20 bytes"));
        }
        let kind = PacketType::from_bits(version, common.first >> 4 & 3);
        let (destination, source) = (common.destination, common.source);
        let mut reader = Reader::new(FORMAT, common.rest);
        if kind == PacketType::Retry {
            let Some(token_len) = common.rest.len().checked_sub(16) else {
                return Err(Error::malformed(FORMAT, "a Retry shorter than its integrity tag"));
            };
            let token = reader.take(token_len)?;
            let packet_number_offset = bytes.len();
            let packet = LongPacket {
                kind,
                version,
                destination,
                source,
                token,
                bytes,
                packet_number_offset,
            };
            return Ok((packet, &[]));
        }
        let token = if kind == PacketType::Initial {
            let length = read_varint(&mut reader)?;
            reader.take(usize::try_from(length).unwrap_or(usize::MAX))?
        } else {
            &[]
        };
        let length = usize::try_from(read_varint(&mut reader)?).unwrap_or(usize::MAX);
        let packet_number_offset = bytes.len().saturating_sub(reader.rest().len());
        reader.take(length)?;
        let (bytes, rest) = bytes.split_at(bytes.len().saturating_sub(reader.rest().len()));
        let packet =
            LongPacket { kind, version, destination, source, token, bytes, packet_number_offset };
        Ok((packet, rest))
    }

    /// The packet's type.
    #[must_use]
    pub const fn kind(&self) -> PacketType {
        self.kind
    }

    /// The packet's version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// The receiver's connection identifier.
    #[must_use]
    pub const fn destination(&self) -> &'a [u8] {
        self.destination
    }

    /// The sender's connection identifier.
    #[must_use]
    pub const fn source(&self) -> &'a [u8] {
        self.source
    }

    /// The token of an Initial or a Retry.
    #[must_use]
    pub const fn token(&self) -> &'a [u8] {
        self.token
    }

    /// The whole packet.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the protected packet number begins in [`LongPacket::bytes`].
    #[must_use]
    pub const fn packet_number_offset(&self) -> usize {
        self.packet_number_offset
    }

    /// The Length field: bytes of packet number, payload and tag; 0 for a Retry.
    #[must_use]
    pub const fn protected_len(&self) -> usize {
        self.bytes.len().saturating_sub(self.packet_number_offset)
    }
}

/// One packet of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A long header packet of a known version.
    Long(LongPacket<'a>),
    /// A version negotiation packet or one of an unknown version: all the rest of the datagram.
    Other(Invariants<'a>),
    /// A 1-RTT packet: all the rest of the datagram.
    Short(&'a [u8]),
}

/// Walks the packets coalesced in a datagram (RFC 9000 §12.2). Bytes that are no packet, such as
/// padding, end the walk.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
    greased: bool,
    /// A packet was given already: zeros that follow are padding, not a greased 1-RTT packet.
    begun: bool,
}

impl<'a> Packets<'a> {
    /// A walk over a datagram's payload; a packet without the fixed bit ends it.
    #[must_use]
    pub const fn new(datagram: &'a [u8]) -> Self {
        Packets { rest: datagram, greased: false, begun: false }
    }

    /// A walk over a datagram known to be QUIC by its addresses and ports: the fixed bit may be
    /// either (RFC 9287 §3).
    #[must_use]
    pub const fn of_known_flow(datagram: &'a [u8]) -> Self {
        Packets { rest: datagram, greased: true, begun: false }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        let first = *bytes.first()?;
        let begun = std::mem::replace(&mut self.begun, true);
        if first & 0x80 == 0 {
            // RFC 9000 §17.3.1: the fixed bit is 1; RFC 9001 §5.4.2 makes 21 bytes the least.
            let padding = begun && bytes.iter().all(|byte| *byte == 0);
            let fixed = first & FIXED_BIT != 0 || (self.greased && !padding);
            return (fixed && bytes.len() >= 21).then_some(Packet::Short(bytes));
        }
        let long = match self.greased {
            true => LongPacket::new_greased(bytes),
            false => LongPacket::new_checked(bytes),
        };
        match long {
            Ok((packet, rest)) => {
                self.rest = rest;
                Some(Packet::Long(packet))
            }
            Err(_) => Invariants::new_checked(bytes)
                .ok()
                .filter(|common| !common.version.is_known())
                .map(Packet::Other),
        }
    }
}

/// A long header to emit, up to the Length field; not for Retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongRepr<'a> {
    /// The packet's type, not Retry.
    pub kind: PacketType,
    /// A known version.
    pub version: Version,
    /// The receiver's connection identifier, at most 20 bytes.
    pub destination: &'a [u8],
    /// The sender's connection identifier, at most 20 bytes.
    pub source: &'a [u8],
    /// The token of an Initial; empty for others.
    pub token: &'a [u8],
    /// Bytes of the packet number that follows, 1 to 4.
    pub packet_number_len: usize,
    /// Bytes of packet number, payload and tag.
    pub protected_len: usize,
}

impl<'a> LongRepr<'a> {
    /// The header of a view whose header protection has been undone.
    #[must_use]
    pub fn parse(packet: &LongPacket<'a>) -> Option<Self> {
        let first = *packet.bytes.first()?;
        (packet.kind != PacketType::Retry).then(|| LongRepr {
            kind: packet.kind,
            version: packet.version,
            destination: packet.destination,
            source: packet.source,
            token: packet.token,
            packet_number_len: usize::from(first & 3).saturating_add(1),
            protected_len: packet.protected_len(),
        })
    }

    /// Bytes that [`LongRepr::emit`] writes.
    pub fn buffer_len(&self) -> Result<usize, Error> {
        self.header().map(|header| header.len())
    }

    /// Writes the header, not protected, to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let header = self.header()?;
        room(FORMAT, buffer, header.len())?.copy_from_slice(&header);
        Ok(())
    }

    fn header(&self) -> Result<Vec<u8>, Error> {
        let does_not_fit = |field| Error::DoesNotFit { format: FORMAT, field };
        let number_bits = match self.packet_number_len {
            1..=4 => self.packet_number_len.saturating_sub(1) as u8,
            _ => return Err(does_not_fit("packet number")),
        };
        if self.destination.len() > MAX_CID_LEN || self.source.len() > MAX_CID_LEN {
            return Err(does_not_fit("connection identifier"));
        }
        if self.kind == PacketType::Retry {
            return Err(does_not_fit("Retry"));
        }
        let mut out = vec![0xc0 | self.kind.bits(self.version) << 4 | number_bits];
        out.extend(self.version.0.to_be_bytes());
        out.push(self.destination.len() as u8);
        out.extend_from_slice(self.destination);
        out.push(self.source.len() as u8);
        out.extend_from_slice(self.source);
        if self.kind == PacketType::Initial {
            put_varint(self.token.len() as u64, &mut out)?;
            out.extend_from_slice(self.token);
        }
        put_varint(self.protected_len as u64, &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120), v2: bool,
        ) {
            crate::fuzz::quic(&bytes);
            let version = if v2 { Version::V2 } else { Version::V1 };
            for (to, from) in bytes.iter_mut().skip(1).zip(version.0.to_be_bytes()) {
                *to = from;
            }
            if let Some(first) = bytes.first_mut() {
                *first |= 0xc0;
            }
            crate::fuzz::quic(&bytes);
        }

        #[test]
        fn integers_are_read_back(value in 0u64..1 << 62) {
            let mut bytes = Vec::new();
            put_varint(value, &mut bytes).unwrap();
            prop_assert_eq!(read_varint(&mut Reader::new("test", &bytes)), Ok(value));
        }

        #[test]
        fn emitted_is_parsed_back(
            kind in 0usize..3, v2: bool,
            destination in proptest::collection::vec(any::<u8>(), 0..=20),
            source in proptest::collection::vec(any::<u8>(), 0..=20),
            token in proptest::collection::vec(any::<u8>(), 0..99),
            packet_number_len in 1usize..=4, protected_len in 4usize..200, after in 0usize..9,
        ) {
            let kind = [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake][kind];
            let repr = LongRepr {
                kind, version: if v2 { Version::V2 } else { Version::V1 },
                destination: &destination, source: &source,
                token: if kind == PacketType::Initial { &token } else { &[] },
                packet_number_len, protected_len,
            };
            let mut bytes = vec![0; repr.buffer_len().unwrap() + protected_len + after];
            repr.emit(&mut bytes).unwrap();
            let (packet, rest) = LongPacket::new_checked(&bytes).unwrap();
            prop_assert_eq!(LongRepr::parse(&packet), Some(repr));
            prop_assert_eq!(rest.len(), after);
        }
    }

    #[test]
    fn a_greased_fixed_bit_is_taken_on_a_known_flow_only() {
        // RFC 9287 §3.
        let repr = LongRepr {
            kind: PacketType::Initial,
            version: Version::V1,
            destination: &[1; 8],
            source: &[2; 8],
            token: &[],
            packet_number_len: 1,
            protected_len: 40,
        };
        let mut datagram = vec![0; repr.buffer_len().unwrap() + 40];
        repr.emit(&mut datagram).unwrap();
        datagram[0] &= !FIXED_BIT;
        let long = datagram.len();
        datagram.extend([0x1f; 30]);
        assert_eq!(Packets::new(&datagram).count(), 0);
        let kinds: Vec<_> = Packets::of_known_flow(&datagram).collect();
        assert!(matches!(kinds[..], [Packet::Long(_), Packet::Short(_)]), "{kinds:?}");
        // Zeros behind a packet are padding.
        datagram[long..].fill(0);
        assert_eq!(Packets::of_known_flow(&datagram).count(), 1);
    }

    #[test]
    fn rfc_9000_integers() {
        // RFC 9000 §A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ] {
            assert_eq!(read_varint(&mut Reader::new("test", bytes)), Ok(value));
        }
        assert!(put_varint(1 << 62, &mut Vec::new()).is_err());
    }

    #[test]
    fn version_2_turns_the_types() {
        // RFC 9369 §3.2.
        let types = [0, 1, 2, 3].map(|bits| PacketType::from_bits(Version::V2, bits));
        let expected =
            [PacketType::Retry, PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake];
        assert_eq!(types, expected);
    }

    #[test]
    fn a_retry_and_version_negotiation_are_told_apart() {
        // RFC 9001 §A.4: the Retry packet.
        let retry = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62,
            0xb5, 0x74, 0x6f, 0x6b, 0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82,
            0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba,
        ];
        let Some(Packet::Long(packet)) = Packets::new(&retry).next() else { panic!("a Retry") };
        assert_eq!(packet.kind(), PacketType::Retry);
        assert_eq!(packet.source(), [0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5]);
        assert_eq!(packet.token(), b"token");
        let negotiation = [0x80, 0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 1];
        let Some(Packet::Other(other)) = Packets::new(&negotiation).next() else { panic!("other") };
        assert_eq!(other.version, Version::NEGOTIATION);
    }
}
