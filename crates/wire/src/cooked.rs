//! Linux cooked captures: what stands before a packet where an interface has no common link header
//! (LINKTYPE_LINUX_SLL, 113, and LINKTYPE_LINUX_SLL2, 276); and BSD loopback headers
//! (LINKTYPE_NULL, 0, and LINKTYPE_LOOP, 108).

use crate::error::room;
use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "Linux cooked capture";

/// Bytes of the first version's header.
pub const HEADER_LEN_V1: usize = 16;
/// Bytes of the second version's header.
pub const HEADER_LEN_V2: usize = 20;
/// Bytes of a BSD loopback header.
pub const HEADER_LEN_LOOPBACK: usize = 4;

/// A header of either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// What the payload is; values below 1536 are no EtherTypes.
    pub ether_type: EtherType,
    /// The device's type, an ARPHRD_ value of Linux.
    pub device_type: u16,
    /// To us 0, broadcast 1, multicast 2, to another 3, from us 4.
    pub packet_type: u8,
    /// The interface's index: the second version alone has it.
    pub interface: Option<u32>,
}

impl Repr {
    /// Reads a header of the first version, and gives what follows it.
    pub fn parse_v1(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let (packet_type, device_type) = (reader.u16()?, reader.u16()?);
        reader.array::<10>()?;
        let ether_type = EtherType(reader.u16()?);
        let packet_type = u8::try_from(packet_type)
            .map_err(|_| Error::malformed(FORMAT, "its packet type is unknown"))?;
        Ok((Repr { ether_type, device_type, packet_type, interface: None }, reader.rest()))
    }

    /// Reads a header of the second version, and gives what follows it.
    pub fn parse_v2(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let ether_type = EtherType(reader.u16()?);
        reader.u16()?;
        let interface = Some(reader.u32()?);
        let device_type = reader.u16()?;
        let packet_type = reader.u8()?;
        reader.array::<9>()?;
        Ok((Repr { ether_type, device_type, packet_type, interface }, reader.rest()))
    }

    /// Bytes that [`Repr::emit`] writes: the second version if there is an interface.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        if self.interface.is_some() { HEADER_LEN_V2 } else { HEADER_LEN_V1 }
    }

    /// Writes the header to the front of `buffer`, without a link address.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let buffer = room(FORMAT, buffer, self.buffer_len())?;
        buffer.fill(0);
        let ([a, b], [c, d]) = (self.ether_type.0.to_be_bytes(), self.device_type.to_be_bytes());
        let mut v1 = [0; HEADER_LEN_V1];
        (v1[1], v1[2], v1[3], v1[14], v1[15]) = (self.packet_type, c, d, a, b);
        let mut v2 = [0; HEADER_LEN_V2];
        let header: &[u8] = match self.interface {
            None => &v1,
            Some(interface) => {
                let [e, f, g, h] = interface.to_be_bytes();
                (v2[0], v2[1], v2[4], v2[5], v2[6], v2[7]) = (a, b, e, f, g, h);
                (v2[8], v2[9], v2[10]) = (c, d, self.packet_type);
                &v2
            }
        };
        buffer.copy_from_slice(header);
        Ok(())
    }
}

/// Passes a BSD loopback header: what follows it and is IPv4 or IPv6. The address family stands in
/// the byte order of the machine that captured, or in network order; which number IPv6 has depends
/// on the system.
pub fn strip_loopback(bytes: &[u8]) -> Result<(EtherType, &[u8]), Error> {
    let mut reader = Reader::new("BSD loopback", bytes);
    let family = reader.u32()?;
    // A family is below 256: in the other byte order its low half is empty.
    let family = if family & 0xffff == 0 { family.swap_bytes() } else { family };
    match family {
        2 => Ok((EtherType::IPV4, reader.rest())),
        // Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        10 | 24 | 28 | 30 => Ok((EtherType::IPV6, reader.rest())),
        _ => Err(Error::malformed("BSD loopback", "its address family is not of IP")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::cooked(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            ether_type: u16, device_type: u16, packet_type: u8, interface: Option<u32>,
        ) {
            let ether_type = EtherType(ether_type);
            let repr = Repr { ether_type, device_type, packet_type, interface };
            let mut buffer = vec![7; repr.buffer_len() + 1];
            repr.emit(&mut buffer).unwrap();
            let parsed = match interface {
                None => Repr::parse_v1(&buffer),
                Some(_) => Repr::parse_v2(&buffer),
            };
            prop_assert_eq!(parsed.unwrap(), (repr, &[7][..]));
        }
    }

    #[test]
    fn loopback_in_either_byte_order() {
        assert_eq!(strip_loopback(&[2, 0, 0, 0, 9]), Ok((EtherType::IPV4, &[9][..])));
        assert_eq!(strip_loopback(&[0, 0, 0, 2, 9]), Ok((EtherType::IPV4, &[9][..])));
        assert_eq!(strip_loopback(&[30, 0, 0, 0]), Ok((EtherType::IPV6, &[][..])));
        assert!(strip_loopback(&[7, 0, 0, 0]).is_err() && strip_loopback(&[2, 0, 0]).is_err());
    }
}
