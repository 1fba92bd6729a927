//! LLC with SNAP (IEEE 802.2, RFC 1042): an EtherType in frames that have a length in its place.

use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "LLC";

/// Both service access points SNAP, an unnumbered frame; the organisation's code follows.
const SNAP: [u8; 3] = [0xaa, 0xaa, 3];

/// Codes whose protocol number is an EtherType: RFC 1042's, and IEEE 802.1H's bridge tunnel.
const ETHERNET: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// The EtherType and the payload behind a SNAP header.
///
/// # Errors
/// It is cut short, or has no SNAP header with an EtherType.
pub fn strip(bytes: &[u8]) -> Result<(EtherType, &[u8]), Error> {
    let mut reader = Reader::new(FORMAT, bytes);
    if *reader.array()? != SNAP || !ETHERNET.contains(reader.array()?) {
        return Err(Error::malformed(FORMAT, "it has no SNAP header with an EtherType"));
    }
    let ether_type = EtherType(reader.u16()?);
    Ok((ether_type, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snap_of_ethernet_is_passed_and_nothing_else() {
        for code in [0, 0xf8] {
            let bytes = [0xaa, 0xaa, 3, 0, 0, code, 0x08, 0, 0x45];
            assert_eq!(strip(&bytes), Ok((EtherType::IPV4, &[0x45][..])));
        }
        // Spanning tree, Cisco's own, and one that is cut.
        for bytes in [
            &[0x42, 0x42, 3, 0, 0, 0, 0, 0][..],
            &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0],
            &[0xaa, 0xaa, 3, 0, 0, 0, 8],
        ] {
            assert!(strip(bytes).is_err(), "{bytes:?}");
        }
    }
}
