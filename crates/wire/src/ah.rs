//! IP's Authentication Header (RFC 4302): what it protects follows it unencrypted.

use crate::{Error, Reader};

const FORMAT: &str = "AH";

/// AH's number in an IP header.
pub const PROTOCOL: u8 = 51;

/// The protocol number and the payload behind a header (RFC 4302 §2).
///
/// # Errors
/// It is cut short, or shorter than its fields.
pub fn strip(bytes: &[u8]) -> Result<(u8, &[u8]), Error> {
    let mut reader = Reader::new(FORMAT, bytes);
    let [protocol, words] = *reader.array()?;
    // §2.2: words of 32 bits, less two.
    let len = (usize::from(words) + 2) * 4;
    // Next header, length, reserved, SPI, sequence number.
    if len < 12 {
        return Err(Error::malformed(FORMAT, "its length ends in its fields"));
    }
    reader.take(len - 2)?;
    Ok((protocol, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_length_is_in_words_less_two() {
        // An ICV of 12 bytes.
        let bytes = [&[6, 4][..], &[0; 22], &[7]].concat();
        assert_eq!(strip(&bytes), Ok((6, &[7][..])));
        assert!(strip(&[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(strip(&bytes[..20]).is_err());
    }
}
