//! ICMP (RFC 792), as far as Wiretax uses it: "fragmentation needed" (RFC 1191 §4).

use crate::checksum::Sum;
use crate::error::room;
use crate::icmp::QuotedTcp;
use crate::{Error, Reader};

const FORMAT: &str = "ICMP";

/// ICMP's number in an IPv4 header.
pub const PROTOCOL: u8 = 1;

/// Bytes of a message before its body.
pub const HEADER_LEN: usize = 8;

/// A view of a message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LEN],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// A view of `bytes`, the payload of an IPv4 packet, if they hold a header.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header = reader.array()?;
        Ok(Message { bytes, header, body: reader.rest() })
    }

    /// The message's type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code, which divides a type.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.header[1]
    }

    /// Whether the checksum, over the whole message, is right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        Sum::new().plus(self.bytes).finish() == 0
    }

    /// What follows the header.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// "Destination unreachable, fragmentation needed and DF set" (RFC 1191 §4): a router could not
/// pass a packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentationNeeded<'a> {
    /// The MTU of the link that the packet does not fit, bytes of IP packet; 0 from routers that
    /// do not tell it.
    pub next_hop_mtu: u16,
    /// The packet's header and beginning.
    pub quoted: &'a [u8],
}

impl<'a> FragmentationNeeded<'a> {
    /// The type "destination unreachable".
    pub const KIND: u8 = 3;
    /// The code "fragmentation needed".
    pub const CODE: u8 = 4;

    /// What a message says, if it is one of these and its checksum is right.
    #[must_use]
    pub fn parse(message: &Message<'a>) -> Option<Self> {
        if (message.kind(), message.code()) != (Self::KIND, Self::CODE) || !message.checksum_ok() {
            return None;
        }
        let next_hop_mtu = u16::from_be_bytes([message.header[6], message.header[7]]);
        Some(FragmentationNeeded { next_hop_mtu, quoted: message.body })
    }

    /// The TCP segment that is quoted.
    pub fn segment(&self) -> Result<QuotedTcp, Error> {
        QuotedTcp::parse_v4(self.quoted)
    }

    /// The MTU to try: what the router says, or below the quoted packet's length the next of
    /// RFC 1191 §7.1's plateaus, at least 68 bytes.
    #[must_use]
    pub fn mtu(&self, quoted: &QuotedTcp) -> u16 {
        const PLATEAUS: [u16; 10] = [32_000, 17_914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68];
        match self.next_hop_mtu {
            0 => {
                let below = |plateau: &u16| usize::from(*plateau) < quoted.packet_len;
                PLATEAUS.into_iter().find(below).unwrap_or(68)
            }
            mtu => mtu.max(68),
        }
    }

    /// Bytes that [`FragmentationNeeded::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        self.quoted.len().saturating_add(HEADER_LEN)
    }

    /// Writes the message, checksum included, to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let buffer = room(FORMAT, buffer, self.buffer_len())?;
        let [high, low] = self.next_hop_mtu.to_be_bytes();
        let mut header = [Self::KIND, Self::CODE, 0, 0, 0, 0, high, low];
        let sum = Sum::new().plus(&header).plus(self.quoted).finish();
        [header[2], header[3]] = sum.to_be_bytes();
        for (to, from) in buffer.iter_mut().zip(header.iter().chain(self.quoted)) {
            *to = *from;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ipv4, tcp};
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    /// Header and 8 bytes of a segment from 10.77.1.101:4000 to 10.77.1.2:80 of `payload_len`.
    fn quoted(payload_len: usize) -> Vec<u8> {
        let repr = ipv4::Repr {
            source: Ipv4Addr::new(10, 77, 1, 101),
            destination: Ipv4Addr::new(10, 77, 1, 2),
            protocol: tcp::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len,
        };
        let mut packet = vec![0; 28];
        repr.emit(&mut packet).unwrap();
        packet[20..].copy_from_slice(&[0x0f, 0xa0, 0, 80, 1, 2, 3, 4]);
        packet
    }

    #[test]
    fn the_quoted_segment_is_found() {
        let quoted = quoted(1480);
        let sent = FragmentationNeeded { next_hop_mtu: 1400, quoted: &quoted };
        let mut buffer = vec![0; sent.buffer_len()];
        sent.emit(&mut buffer).unwrap();
        let message = Message::new_checked(&buffer).unwrap();
        let got = FragmentationNeeded::parse(&message).unwrap();
        assert_eq!(got, sent);
        let segment = got.segment().unwrap();
        assert_eq!(segment.source, "10.77.1.101:4000".parse().unwrap());
        assert_eq!(segment.destination, "10.77.1.2:80".parse().unwrap());
        assert_eq!((segment.sequence, segment.packet_len), (0x0102_0304, 1500));
        assert_eq!(got.mtu(&segment), 1400);
    }

    #[test]
    fn a_router_that_tells_no_mtu_leads_to_the_next_plateau() {
        // RFC 1191 §7.1's table.
        for (packet_len, mtu) in [(1500, 1492), (1492, 1006), (9000, 8166), (68, 68), (40, 68)] {
            let quoted = quoted(packet_len - 20);
            let needed = FragmentationNeeded { next_hop_mtu: 0, quoted: &quoted };
            assert_eq!(needed.mtu(&needed.segment().unwrap()), mtu, "{packet_len}");
        }
    }

    #[test]
    fn a_wrong_checksum_and_other_messages_say_nothing() {
        let quoted = quoted(1480);
        let sent = FragmentationNeeded { next_hop_mtu: 1400, quoted: &quoted };
        let mut buffer = vec![0; sent.buffer_len()];
        sent.emit(&mut buffer).unwrap();
        buffer[7] ^= 1;
        assert_eq!(FragmentationNeeded::parse(&Message::new_checked(&buffer).unwrap()), None);
        let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
        let echo = Message::new_checked(&echo).unwrap();
        assert!(echo.checksum_ok());
        assert_eq!(FragmentationNeeded::parse(&echo), None);
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
            crate::fuzz::icmp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            next_hop_mtu: u16, quoted in proptest::collection::vec(any::<u8>(), 0..99),
        ) {
            let repr = FragmentationNeeded { next_hop_mtu, quoted: &quoted };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            let message = Message::new_checked(&buffer).unwrap();
            prop_assert_eq!(FragmentationNeeded::parse(&message), Some(repr));
        }
    }
}
