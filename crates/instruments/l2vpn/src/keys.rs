//! Keys, made of a seed.

use std::fmt;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use seclink::Secret;
use seclink::path::Protection;
use zeroize::Zeroizing;

use crate::ends::Direction;

/// What these keys are for, so that the seed can be used for other things too.
const PURPOSE: &[u8] = b"wiretax l2vpn key";

/// A key. It is not printed, cannot be cloned, and is overwritten when dropped.
pub struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// The key as a data plane takes it.
    #[must_use]
    pub fn into_secret(mut self) -> Secret {
        Secret::new(std::mem::take(&mut *self.0))
    }

    /// Its hexadecimal digits, for a program's standard input.
    pub(crate) fn hex(&self) -> Zeroizing<String> {
        hex(&self.0)
    }

    /// Its bytes, for what is no data plane of ours: they are to go nowhere else.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = String::with_capacity(bytes.len().saturating_mul(2));
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    text.extend(digits.filter_map(|digit| char::from_digit(digit.into(), 16)));
    Zeroizing::new(text)
}

/// The key of `len` bytes of what goes one way over a span ([`crate::Span::number`]): another one for each seed,
/// protection, span and direction. Made again, it is the same: whoever seals with it makes it once.
#[must_use]
pub fn keys(seed: u64, protection: Protection, span: u8, direction: Direction, len: usize) -> Key {
    let mut bytes = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(SHA256_OUTPUT_LEN)));
    for block in 0u32.. {
        if bytes.len() >= len {
            break;
        }
        let mut input = Zeroizing::new(PURPOSE.to_vec());
        input.extend_from_slice(&seed.to_be_bytes());
        input.extend_from_slice(&[span, direction.sender().number()]);
        input.extend_from_slice(&block.to_be_bytes());
        // Last, so that no name can run into what follows it.
        input.extend_from_slice(protection.name().as_bytes());
        bytes.extend_from_slice(digest(&SHA256, &input).as_ref());
    }
    bytes.truncate(len);
    Key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_differ_by_seed_protection_span_and_direction_and_are_made_again() {
        let mut all = BTreeSet::new();
        for seed in [0, 1] {
            for protection in Protection::ALL {
                for span in 0..=8 {
                    for direction in Direction::ALL {
                        let key = keys(seed, *protection, span, *direction, 36);
                        let again = keys(seed, *protection, span, *direction, 36);
                        assert_eq!((key.expose().len(), key.expose()), (36, again.expose()));
                        all.insert(key.expose().to_vec());
                    }
                }
            }
        }
        assert_eq!(all.len(), 2 * Protection::ALL.len() * 9 * 2);
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = keys(7, Protection::MacSec, 0, Direction::Forward, 16);
        assert_eq!(format!("{key:?}"), "Key(16 bytes)");
        assert_eq!(key.hex().len(), 32);
        assert_eq!(seclink::Secret::from_hex(&key.hex()).map(|_| ()), Ok(()));
        assert_eq!(format!("{:?}", key.into_secret()), "Secret(16 bytes)");
    }
}
