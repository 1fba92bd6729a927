//! TZSP, in which access points and routers send captured frames over UDP (as tcpdump and Wireshark
//! read it; there is no standard).

use crate::capwap::Payload;
use crate::{Error, Reader};

const FORMAT: &str = "TZSP";

/// The port that datagrams go to (IANA).
pub const PORT: u16 = 37008;

const VERSION: u8 = 1;
/// Types that carry a frame: one that was received, one to be sent.
const WITH_FRAME: [u8; 2] = [0, 1];
/// Kinds of frames.
const ETHERNET: u16 = 1;
const IEEE_80211: u16 = 18;
/// Tags without a length: padding, and the last one.
const PADDING: u8 = 0;
const END: u8 = 1;

/// The frame in `bytes`, a datagram's payload.
///
/// # Errors
/// It is cut short, of another version, carries no frame, or one of an unknown kind.
pub fn strip(bytes: &[u8]) -> Result<Payload<'_>, Error> {
    let mut reader = Reader::new(FORMAT, bytes);
    let [version, kind] = *reader.array()?;
    if version != VERSION || !WITH_FRAME.contains(&kind) {
        return Err(Error::malformed(FORMAT, "its version is not 1, or it carries no frame"));
    }
    let encapsulated = reader.u16()?;
    loop {
        match reader.u8()? {
            END => break,
            PADDING => {}
            _ => {
                let len = reader.u8()?;
                reader.take(len.into())?;
            }
        }
    }
    match encapsulated {
        ETHERNET => Ok(Payload::Ethernet(reader.rest())),
        IEEE_80211 => Ok(Payload::Ieee80211(reader.rest())),
        _ => Err(Error::malformed(FORMAT, "its frame is of an unknown kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_passed_until_the_last() {
        assert_eq!(strip(&[1, 0, 0, 1, 1, 7]), Ok(Payload::Ethernet(&[7])));
        // A signal's strength, padding.
        assert_eq!(strip(&[1, 1, 0, 18, 10, 1, 0xd0, 0, 1, 8]), Ok(Payload::Ieee80211(&[8])));
        for bytes in
            [&[2, 0, 0, 1, 1, 7][..], &[1, 4, 0, 1, 1], &[1, 0, 0, 9, 1], &[1, 0, 0, 1, 10, 5]]
        {
            assert!(strip(bytes).is_err(), "{bytes:?}");
        }
    }
}
