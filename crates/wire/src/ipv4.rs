//! IPv4 packets (RFC 791).

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "IPv4";

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
    payload_len: usize,
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, if the whole packet is there; link padding after it is left out.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let packet = Self::new_captured(bytes)?;
        let (needed, had) = (packet.payload_len, packet.payload.len());
        if had < needed {
            return Err(Error::Truncated { format: FORMAT, needed, had });
        }
        Ok(packet)
    }

    /// As [`Packet::new_checked`], but the payload may be cut by the capture's snapshot length.
    ///
    /// A total length of 0, which the kernel writes into super-segments above 64 KiB before the
    /// device cuts them, is taken as all of `bytes`.
    pub fn new_captured(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        if header[0] >> 4 != 4 {
            return Err(Error::malformed(FORMAT, "its version is not 4"));
        }
        let header_len = usize::from(header[0] & 0x0f).saturating_mul(4);
        let Some(options_len) = header_len.checked_sub(HEADER_LEN) else {
            return Err(Error::malformed(FORMAT, "its header length is below 20 bytes"));
        };
        let options = reader.take(options_len)?;
        let total = match u16::from_be_bytes([header[2], header[3]]) {
            0 => bytes.len(),
            total => usize::from(total),
        };
        let Some(payload_len) = total.checked_sub(header_len) else {
            return Err(Error::malformed(FORMAT, "its total length is shorter than its header"));
        };
        let rest = reader.rest();
        let payload = rest.get(..payload_len).unwrap_or(rest);
        Ok(Packet { header, options, payload, payload_len })
    }

    /// The DSCP and ECN byte (RFC 2474, RFC 3168).
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        self.header[1]
    }

    /// What fragments of one packet share.
    #[must_use]
    pub const fn identification(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    const fn flags_and_offset(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// Whether routers must not fragment it.
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.flags_and_offset() & 0x4000 != 0
    }

    /// Whether fragments follow this one.
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.flags_and_offset() & 0x2000 != 0
    }

    /// Where the payload stands in the whole packet, bytes.
    #[must_use]
    pub const fn fragment_offset(&self) -> usize {
        (self.flags_and_offset() & 0x1fff) as usize * 8
    }

    /// Whether this is a fragment: its payload is not, or not all of, an upper packet.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.flags_and_offset() & 0x3fff != 0
    }

    /// Time to live: hops left (RFC 791 §3.1).
    #[must_use]
    pub const fn time_to_live(&self) -> u8 {
        self.header[8]
    }

    /// The upper protocol's number.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.header[9]
    }

    /// Whether the header's checksum is right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        Sum::new().plus(self.header).plus(self.options).finish() == 0
    }

    /// Who sent it.
    #[must_use]
    pub const fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.header[12], self.header[13], self.header[14], self.header[15])
    }

    /// Where it goes.
    #[must_use]
    pub const fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.header[16], self.header[17], self.header[18], self.header[19])
    }

    /// The options, not parsed.
    #[must_use]
    pub const fn options(&self) -> &'a [u8] {
        self.options
    }

    /// Bytes of payload that the header states.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// The payload, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A header without options and fragmentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Who sends it.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// The upper protocol's number.
    pub protocol: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// What fragments of one packet would share.
    pub identification: u16,
    /// Whether routers must not fragment it.
    pub dont_fragment: bool,
    /// Time to live: hops left (RFC 791 §3.1).
    pub time_to_live: u8,
    /// Bytes of payload that follow the header.
    pub payload_len: usize,
}

impl Repr {
    /// The header that a packet has; `None` for a fragment or one with options.
    #[must_use]
    pub fn parse(packet: &Packet<'_>) -> Option<Self> {
        (!packet.is_fragment() && packet.options.is_empty()).then(|| Repr {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            traffic_class: packet.traffic_class(),
            identification: packet.identification(),
            dont_fragment: packet.dont_fragment(),
            time_to_live: packet.time_to_live(),
            payload_len: packet.payload_len(),
        })
    }

    /// Bytes that [`Repr::emit`] writes: the header.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header, checksum included, to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let total = u16::try_from(self.payload_len.saturating_add(HEADER_LEN))
            .map_err(|_| Error::DoesNotFit { format: FORMAT, field: "payload length" })?;
        let [a, b] = total.to_be_bytes();
        let [c, d] = self.identification.to_be_bytes();
        let [e, f] = (u16::from(self.dont_fragment) << 14).to_be_bytes();
        let [s0, s1, s2, s3] = self.source.octets();
        let [d0, d1, d2, d3] = self.destination.octets();
        let mut header = [
            0x45,
            self.traffic_class,
            a,
            b,
            c,
            d,
            e,
            f,
            self.time_to_live,
            self.protocol,
            0,
            0,
            s0,
            s1,
            s2,
            s3,
            d0,
            d1,
            d2,
            d3,
        ];
        let [g, h] = Sum::new().plus(&header).finish().to_be_bytes();
        (header[10], header[11]) = (g, h);
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&header);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            crate::fuzz::ipv4(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | (*first & 0x0f);
            }
            crate::fuzz::ipv4(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            source: u32, destination: u32, protocol: u8, traffic_class: u8, identification: u16,
            dont_fragment: bool, time_to_live: u8, payload_len in 0usize..200,
        ) {
            let repr = Repr {
                source: source.into(), destination: destination.into(), protocol, traffic_class,
                identification, dont_fragment, time_to_live, payload_len,
            };
            let mut buffer = vec![0; repr.buffer_len() + payload_len];
            repr.emit(&mut buffer).unwrap();
            let packet = Packet::new_checked(&buffer).unwrap();
            prop_assert!(packet.checksum_ok());
            prop_assert_eq!(Repr::parse(&packet), Some(repr));
        }
    }

    /// A header with a router alert option, as an IGMP report has it.
    const ROUTER_ALERT: [u8; 24] = [
        0x46, 0xc0, 0x00, 0x18, 0x00, 0x00, 0x40, 0x00, 0x01, 0x02, 0x00, 0x00, 0xc0, 0xa8, 0x01,
        0x02, 0xe0, 0x00, 0x00, 0x16, 0x94, 0x04, 0x00, 0x00,
    ];

    #[test]
    fn options_are_not_payload() {
        let packet = Packet::new_checked(&ROUTER_ALERT).unwrap();
        assert_eq!(packet.options(), [0x94, 0x04, 0x00, 0x00]);
        assert_eq!(packet.payload(), []);
        assert_eq!(Repr::parse(&packet), None);
    }

    #[test]
    fn fragments_say_so() {
        let mut bytes = ROUTER_ALERT;
        bytes[6] = 0x20;
        assert!(Packet::new_checked(&bytes).unwrap().is_fragment());
        (bytes[6], bytes[7]) = (0, 3);
        let last = Packet::new_checked(&bytes).unwrap();
        assert!(last.is_fragment() && !last.more_fragments());
        assert_eq!(last.fragment_offset(), 24);
    }

    #[test]
    fn a_cut_packet_is_refused_unless_captured_so() {
        let mut bytes = ROUTER_ALERT;
        bytes[3] = 0x40;
        assert!(Packet::new_checked(&bytes).is_err());
        let cut = Packet::new_captured(&bytes).unwrap();
        assert_eq!((cut.payload_len(), cut.payload().len()), (0x40 - 24, 0));
    }
}
