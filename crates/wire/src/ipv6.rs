//! IPv6 packets and the walk over their extension headers (RFC 8200).

use std::net::Ipv6Addr;

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "IPv6";

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;

/// Extension headers that [`Packet::upper`] passes at most. RFC 8200 §4.1 lists each once and
/// destination options twice, seven in all.
pub const MAX_EXTENSIONS: usize = 8;

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
    payload_len: usize,
}

/// What stands behind the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upper<'a> {
    /// The upper protocol's number; 59 says that there is none.
    pub protocol: u8,
    /// Its packet, as far as captured.
    pub payload: &'a [u8],
    /// Bytes that it has by the IPv6 header.
    pub payload_len: usize,
    /// The fragment header, if there is one: the payload is then part of a packet.
    pub fragment: Option<Fragment>,
}

/// A fragment header (RFC 8200 §4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Where the payload stands in the whole packet, bytes.
    pub offset: usize,
    /// Whether fragments follow this one.
    pub more: bool,
    /// What fragments of one packet share.
    pub identification: u32,
}

impl Fragment {
    /// Whether it is the whole packet all the same (an atomic fragment, RFC 6946).
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more
    }
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
    /// A payload length of 0 is taken as all of `bytes`: a jumbogram (RFC 2675) or a super-segment
    /// that the device has not cut yet.
    pub fn new_captured(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        if header[0] >> 4 != 6 {
            return Err(Error::malformed(FORMAT, "its version is not 6"));
        }
        let rest = reader.rest();
        let payload_len = match u16::from_be_bytes([header[4], header[5]]) {
            0 => rest.len(),
            length => usize::from(length),
        };
        Ok(Packet { header, payload: rest.get(..payload_len).unwrap_or(rest), payload_len })
    }

    /// DSCP and ECN.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        self.header[0] << 4 | self.header[1] >> 4
    }

    /// The flow label, 20 bits.
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.header[1] & 0x0f, self.header[2], self.header[3]])
    }

    /// The number of the first header after this one.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        self.header[6]
    }

    /// Hop limit: hops left (RFC 8200 §3).
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        self.header[7]
    }

    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.address::<8>()
    }

    /// Where it goes.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.address::<24>()
    }

    fn address<const AT: usize>(&self) -> Ipv6Addr {
        let octets = self.header.get(AT..).and_then(|rest| rest.first_chunk::<16>());
        Ipv6Addr::from(*octets.unwrap_or(&[0; 16]))
    }

    /// Bytes after the fixed header that it states.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// What follows the fixed header, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Walks the extension headers: see [`walk`].
    pub fn upper(&self) -> Result<Upper<'a>, Error> {
        walk(self.next_header(), self.payload, self.payload_len)
    }
}

/// Walks the extension headers at the front of `payload`, of which the first is a `protocol` and
/// which had `payload_len` bytes before the capture cut it: at most [`MAX_EXTENSIONS`], and no
/// further than the fragment header of a packet in parts. What stands behind that one, extension
/// headers or not, is walked when the parts are together.
pub fn walk(mut protocol: u8, payload: &[u8], payload_len: usize) -> Result<Upper<'_>, Error> {
    let mut reader = Reader::new("IPv6 extension header", payload);
    let mut fragment = None;
    let upper = |protocol, rest: &'_ [u8]| {
        let passed = payload.len().saturating_sub(rest.len());
        (protocol, payload_len.saturating_sub(passed))
    };
    for _ in 0..=MAX_EXTENSIONS {
        let [next, length] = match protocol {
            // Hop-by-hop options, routing, destination options (RFC 8200 §4.3, 4.4, 4.6),
            // mobility, HIP, shim6: the length counts 8 bytes beyond the first 8.
            // Authentication (RFC 4302 §2.2): 4 bytes, beyond the first 8.
            0 | 43 | 60 | 135 | 139 | 140 | 51 => *reader.array::<2>()?,
            44 => {
                let [next, _, high, low, a, b, c, d] = *reader.array::<8>()?;
                let field = u16::from_be_bytes([high, low]);
                let header = Fragment {
                    offset: usize::from(field & 0xfff8),
                    more: field & 1 != 0,
                    identification: u32::from_be_bytes([a, b, c, d]),
                };
                fragment = Some(header);
                protocol = next;
                if header.is_atomic() {
                    continue;
                }
                let (protocol, payload_len) = upper(protocol, reader.rest());
                return Ok(Upper { protocol, payload: reader.rest(), payload_len, fragment });
            }
            _ => {
                let (protocol, payload_len) = upper(protocol, reader.rest());
                return Ok(Upper { protocol, payload: reader.rest(), payload_len, fragment });
            }
        };
        let unit = if protocol == 51 { 4 } else { 8 };
        reader.take(usize::from(length).saturating_mul(unit).saturating_add(6))?;
        protocol = next;
    }
    Err(Error::malformed(FORMAT, "more extension headers than the protocol has"))
}

/// A header without extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Who sends it.
    pub source: Ipv6Addr,
    /// Where it goes.
    pub destination: Ipv6Addr,
    /// The upper protocol's number.
    pub next_header: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// The flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit: hops left (RFC 8200 §3).
    pub hop_limit: u8,
    /// Bytes of payload that follow the header, at least 1.
    pub payload_len: usize,
}

impl Repr {
    /// The header that a packet has, whatever follows it.
    #[must_use]
    pub fn parse(packet: &Packet<'_>) -> Self {
        Repr {
            source: packet.source(),
            destination: packet.destination(),
            next_header: packet.next_header(),
            traffic_class: packet.traffic_class(),
            flow_label: packet.flow_label(),
            hop_limit: packet.hop_limit(),
            payload_len: packet.payload_len(),
        }
    }

    /// Bytes that [`Repr::emit`] writes: the header.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let Ok(length @ 1..) = u16::try_from(self.payload_len) else {
            return Err(Error::DoesNotFit { format: FORMAT, field: "payload length" });
        };
        if self.flow_label > 0xf_ffff {
            return Err(Error::DoesNotFit { format: FORMAT, field: "flow label" });
        }
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let buffer = room(FORMAT, buffer, HEADER_LEN)?;
        let [a, b] = length.to_be_bytes();
        let parts: [&[u8]; 4] = [
            &first.to_be_bytes(),
            &[a, b, self.next_header, self.hop_limit],
            &self.source.octets(),
            &self.destination.octets(),
        ];
        for (to, from) in buffer.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            crate::fuzz::ipv6(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 0x60 | (*first & 0x0f);
            }
            crate::fuzz::ipv6(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            source: u128, destination: u128, next_header: u8, traffic_class: u8,
            flow_label in 0u32..(1 << 20), hop_limit: u8, payload_len in 1usize..200,
        ) {
            let repr = Repr {
                source: source.into(), destination: destination.into(), next_header,
                traffic_class, flow_label, hop_limit, payload_len,
            };
            let mut buffer = vec![0; repr.buffer_len() + payload_len];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&buffer).unwrap()), repr);
        }
    }

    fn packet_with(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let repr = Repr {
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::LOCALHOST,
            next_header,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            payload_len: payload.len(),
        };
        let mut bytes = vec![0; HEADER_LEN];
        repr.emit(&mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn extension_headers_are_passed() {
        // Hop-by-hop (8 bytes), destination options (16 bytes), then TCP.
        let mut payload = vec![60, 0, 1, 4, 0, 0, 0, 0];
        payload.extend_from_slice(&[6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend_from_slice(b"tcp");
        let bytes = packet_with(0, &payload);
        let upper = Packet::new_checked(&bytes).unwrap().upper().unwrap();
        let expected = Upper { protocol: 6, payload: b"tcp", payload_len: 3, fragment: None };
        assert_eq!(upper, expected);
    }

    #[test]
    fn a_later_fragment_is_not_read_as_an_upper_packet() {
        let payload = [6, 0, 0x05, 0xa9, 0, 0, 0, 7, 1, 2];
        let bytes = packet_with(44, &payload);
        let upper = Packet::new_checked(&bytes).unwrap().upper().unwrap();
        let fragment = Fragment { offset: 1448, more: true, identification: 7 };
        assert_eq!(upper.fragment, Some(fragment));
        assert!(!fragment.is_atomic());
    }

    #[test]
    fn the_first_fragment_is_not_walked_beyond_its_header() {
        // Destination options behind the fragment header may go on in the next fragment.
        let payload = [60, 0, 0, 1, 0, 0, 0, 7, 6, 0, 1, 4, 0, 0, 0, 0];
        let bytes = packet_with(44, &payload);
        let upper = Packet::new_checked(&bytes).unwrap().upper().unwrap();
        assert_eq!((upper.protocol, upper.payload, upper.payload_len), (60, &payload[8..], 8));
        let joined = [6, 0, 1, 4, 0, 0, 0, 0, 9, 9];
        let upper = walk(60, &joined, joined.len()).unwrap();
        assert_eq!((upper.protocol, upper.payload, upper.fragment), (6, &[9, 9][..], None));
    }

    #[test]
    fn a_chain_without_end_is_refused() {
        let bytes = packet_with(60, &[60, 0, 1, 4, 0, 0, 0, 0].repeat(20));
        assert!(Packet::new_checked(&bytes).unwrap().upper().is_err());
    }
}
