//! Bytes that are nobody's business.

use std::fmt;

use zeroize::Zeroizing;

use crate::KeyError;

/// A key. It is not printed, cannot be cloned, and is overwritten when dropped.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// The key of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// The key that is written in hexadecimal digits, colons or spaces between them or not.
    ///
    /// # Errors
    /// Something else is written there.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let digits = text.chars().filter(|letter| !matches!(letter, ':' | ' '));
        let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
        let mut high = None;
        for letter in digits {
            let digit = letter.to_digit(16).ok_or(KeyError::NotHex)? as u8;
            match high.take() {
                None => high = Some(digit << 4),
                Some(high) => bytes.push(high | digit),
            }
        }
        match high {
            None => Ok(Secret(bytes)),
            Some(_) => Err(KeyError::NotHex),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key split in two after `at` bytes; `None` if it is shorter.
    pub(crate) fn split_at(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.0.split_at_checked(at)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_read_and_nothing_else_is() {
        assert_eq!(Secret::from_hex("00 ff:1a").unwrap().bytes(), [0, 0xff, 0x1a]);
        assert_eq!(Secret::from_hex("").unwrap().bytes(), []);
        for wrong in ["0", "0g", "é0", "0x00"] {
            assert_eq!(Secret::from_hex(wrong).unwrap_err(), KeyError::NotHex, "{wrong}");
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let secret = Secret::from_hex("deadbeef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(4 bytes)");
    }
}
