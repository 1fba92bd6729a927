//! GTP-U (3GPP TS 29.281): subscribers' packets in UDP datagrams to port 2152.

use crate::{Error, Reader};

const FORMAT: &str = "GTP-U";

/// The port that datagrams go to (TS 29.281 §4.4.2).
pub const PORT: u16 = 2152;

/// The message that carries a subscriber's packet (TS 29.281 §6.1).
const G_PDU: u8 = 255;

/// Version 1 and protocol type GTP, with the flags left out (TS 29.281 §5.1).
const VERSION: u8 = 0x30;
/// The flag of extension headers, and with those of a sequence number and an N-PDU number.
const EXTENDED: u8 = 0x04;
const OPTIONAL: u8 = 0x07;

/// A view of a message that carries a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    tunnel: u32,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, a datagram's payload, which may be cut by the capture's snapshot length.
    pub fn new_captured(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let (flags, kind, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
        if flags & !(OPTIONAL | 0x08) != VERSION {
            return Err(Error::malformed(FORMAT, "its version is not 1, or it is charging's GTP'"));
        }
        if kind != G_PDU {
            return Err(Error::malformed(FORMAT, "it carries no packet of a subscriber"));
        }
        let tunnel = reader.u32()?;
        // The length counts what follows the first eight bytes.
        let rest = reader.rest();
        let mut reader = Reader::new(FORMAT, rest.get(..length.into()).unwrap_or(rest));
        if flags & OPTIONAL != 0 {
            reader.take(3)?;
            let mut next = reader.u8()?;
            // TS 29.281 §5.2.1: each is a length in units of four bytes, its content, and the next
            // one's type. The length bounds the loop.
            while next != 0 && flags & EXTENDED != 0 {
                let content = (usize::from(reader.u8()?) * 4).checked_sub(2);
                let Some(content) = content else {
                    return Err(Error::malformed(FORMAT, "an extension header of no length"));
                };
                reader.take(content)?;
                next = reader.u8()?;
            }
        }
        Ok(Packet { tunnel, payload: reader.rest() })
    }

    /// The tunnel endpoint identifier.
    #[must_use]
    pub const fn tunnel(&self) -> u32 {
        self.tunnel
    }

    /// The packet inside: IPv4 or IPv6 by its first four bits, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), flags in 0u8..8) {
            crate::fuzz::gtpu(&bytes);
            if let Some(front) = bytes.first_chunk_mut::<2>() {
                *front = [VERSION | flags, G_PDU];
            }
            crate::fuzz::gtpu(&bytes);
        }
    }

    #[test]
    fn extension_headers_are_passed_over() {
        // With a sequence number and a PDU session container, as 5G has it (TS 38.415).
        let bytes = [0x34, 255, 0, 10, 0, 0, 0, 7, 0, 1, 0, 0x85, 1, 0x10, 9, 0, 0x45, 0x46, 99];
        let packet = Packet::new_captured(&bytes).unwrap();
        assert_eq!((packet.tunnel(), packet.payload()), (7, &[0x45, 0x46][..]));
        let plain = [0x30, 255, 0, 1, 0, 0, 0, 7, 0x60];
        assert_eq!(Packet::new_captured(&plain).unwrap().payload(), [0x60]);
    }

    #[test]
    fn echoes_other_versions_and_empty_extensions_are_refused() {
        assert!(Packet::new_captured(&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Packet::new_captured(&[0x48, 255, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Packet::new_captured(&[0x34, 255, 0, 6, 0, 0, 0, 7, 0, 1, 0, 0x85, 0, 0]).is_err());
    }
}
