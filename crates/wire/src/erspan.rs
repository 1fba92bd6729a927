//! ERSPAN, in which switches send mirrored frames through GRE (draft-foschiano-erspan-03).

use crate::{Error, Reader, gre};

const FORMAT: &str = "ERSPAN";

/// Bytes of the header of type II (§4.2).
const SECOND_LEN: usize = 8;
/// Bytes of the header of type III, and of what its flag O says that follows (§4.3).
const THIRD_LEN: usize = 12;
const OPTION_LEN: usize = 8;
/// The frame type of type III that is Ethernet, in the five bits behind P.
const ETHERNET: u8 = 0;

/// The mirrored frame in a GRE packet whose EtherType is ERSPAN's.
///
/// # Errors
/// It is cut short, of an unknown version, or what it mirrors is no Ethernet frame.
pub fn strip<'a>(packet: &gre::Packet<'a>) -> Result<&'a [u8], Error> {
    // §4.1: type I has no header, and GRE then no sequence number.
    if packet.sequence().is_none() {
        return Ok(packet.payload());
    }
    let mut reader = Reader::new(FORMAT, packet.payload());
    let [first, ..]: [u8; SECOND_LEN] = *reader.array()?;
    match first >> 4 {
        1 => Ok(reader.rest()),
        2 => {
            let [.., kind, flags]: [u8; THIRD_LEN - SECOND_LEN] = *reader.array()?;
            if kind >> 2 & 0x1f != ETHERNET {
                return Err(Error::malformed(FORMAT, "it mirrors no Ethernet frame"));
            }
            if flags & 1 == 1 {
                reader.take(OPTION_LEN)?;
            }
            Ok(reader.rest())
        }
        _ => Err(Error::malformed(FORMAT, "its version is not known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ethernet::EtherType;

    fn stripped(sequence: Option<u32>, header: &[u8]) -> Option<Vec<u8>> {
        let gre = gre::Repr { ether_type: EtherType::ERSPAN, checksum: None, key: None, sequence };
        let mut bytes = vec![0; gre.buffer_len()];
        gre.emit(&mut bytes).unwrap();
        bytes.extend(header);
        bytes.push(7);
        strip(&gre::Packet::new_checked(&bytes).unwrap()).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn three_types_have_headers_of_four_lengths() {
        assert_eq!(stripped(None, &[]), Some(vec![7]));
        assert_eq!(stripped(Some(1), &[0x10, 0, 0, 0, 0, 0, 0, 0]), Some(vec![7]));
        let third = [0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(stripped(Some(1), &third), Some(vec![7]));
        let [mut option, mut ip] = [third; 2];
        option[11] = 1;
        assert_eq!(stripped(Some(1), &[&option[..], &[0; 8]].concat()), Some(vec![7]));
        // Mirrored IP.
        ip[10] = 2 << 2;
        assert_eq!(stripped(Some(1), &ip), None);
        assert_eq!(stripped(Some(1), &[0x30; 12]), None);
        assert_eq!(stripped(Some(1), &[0x10, 0]), None);
    }
}
