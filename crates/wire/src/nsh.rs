//! Network Service Headers (RFC 8300), which service chains put before packets.

use crate::{Error, Reader};

const FORMAT: &str = "NSH";

/// Bytes of the base header and the service path header (RFC 8300 §2).
const HEADER_LEN: usize = 8;

/// The next protocol, by the numbers of RFC 8300 §2.2, which VXLAN-GPE shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// IPv4, 1.
    Ipv4,
    /// IPv6, 2.
    Ipv6,
    /// An Ethernet frame, 3.
    Ethernet,
    /// Another header, 4.
    Nsh,
    /// An MPLS label stack, 5.
    Mpls,
}

impl Next {
    /// The protocol with this number; `None` for one that is not read.
    #[must_use]
    pub const fn of(number: u8) -> Option<Next> {
        Some(match number {
            1 => Next::Ipv4,
            2 => Next::Ipv6,
            3 => Next::Ethernet,
            4 => Next::Nsh,
            5 => Next::Mpls,
            _ => return None,
        })
    }
}

/// The protocol number and the payload behind a header.
///
/// # Errors
/// It is cut short, of another version, or its length ends in its fields.
pub fn strip(bytes: &[u8]) -> Result<(u8, &[u8]), Error> {
    let mut reader = Reader::new(FORMAT, bytes);
    let [first, second, _, protocol]: [u8; 4] = *reader.array()?;
    if first >> 6 != 0 {
        return Err(Error::malformed(FORMAT, "its version is not 0"));
    }
    // §2.2: six bits, in words of 32 bits.
    let len = usize::from(second & 0x3f) * 4;
    let Some(rest) = len.checked_sub(4).filter(|_| len >= HEADER_LEN) else {
        return Err(Error::malformed(FORMAT, "its length ends in its fields"));
    };
    reader.take(rest)?;
    Ok((protocol, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_length_has_the_context_in_it() {
        // Metadata of type 1 has 16 bytes of context (RFC 8300 §2.4).
        let bytes = [&[0x0f, 0xc6, 1, 3][..], &[0; 20], &[9]].concat();
        assert_eq!(strip(&bytes), Ok((3, &[9][..])));
        assert_eq!(Next::of(3), Some(Next::Ethernet));
        assert!(strip(&[0x0f, 0xc1, 1, 3, 0, 0, 0, 0]).is_err());
        assert!(strip(&[0x4f, 0xc2, 1, 3, 0, 0, 0, 0]).is_err());
        assert!(strip(&bytes[..20]).is_err());
    }
}
