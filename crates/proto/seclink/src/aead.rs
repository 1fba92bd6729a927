//! Keys of AEAD ciphers that seal each number once.

use aws_lc_rs::aead::{Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::numbers::{Number, Numbers};
use crate::{KeyError, SealError};

/// Bytes of the tag of every cipher here.
pub(crate) const TAG_LEN: usize = 16;

fn key(
    cipher: &'static str,
    algorithm: &'static Algorithm,
    bytes: &[u8],
) -> Result<LessSafeKey, KeyError> {
    let wrong = KeyError::Length { cipher, needed: algorithm.key_len(), had: bytes.len() };
    UnboundKey::new(algorithm, bytes).map(LessSafeKey::new).map_err(|_| wrong)
}

/// A key that seals, and its numbers.
pub(crate) struct Sealing {
    key: LessSafeKey,
    numbers: Numbers,
}

/// A number of a key, with which one packet can be sealed.
pub(crate) struct Turn<'k> {
    key: &'k LessSafeKey,
    number: Number,
}

impl Sealing {
    pub(crate) fn new(
        cipher: &'static str,
        algorithm: &'static Algorithm,
        bytes: &[u8],
        numbers: Numbers,
    ) -> Result<Self, KeyError> {
        Ok(Sealing { key: key(cipher, algorithm, bytes)?, numbers })
    }

    /// The next number's turn.
    pub(crate) fn turn(&mut self) -> Result<Turn<'_>, SealError> {
        let number = self.numbers.take().ok_or(SealError::Exhausted)?;
        Ok(Turn { key: &self.key, number })
    }

    pub(crate) const fn numbers(&self) -> &Numbers {
        &self.numbers
    }
}

impl Turn<'_> {
    pub(crate) const fn number(&self) -> u64 {
        self.number.value()
    }

    /// Encrypts `text` in place and writes its tag. `nonce` makes the number a nonce, which must differ for
    /// numbers that differ.
    pub(crate) fn seal(
        self,
        nonce: impl FnOnce(u64) -> [u8; NONCE_LEN],
        authenticated: &[u8],
        text: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), SealError> {
        let nonce = Nonce::assume_unique_for_key(nonce(self.number.value()));
        let made = self.key.seal_in_place_separate_tag(nonce, Aad::from(authenticated), text);
        let made = made.map_err(|_| SealError::Cipher)?;
        if tag.len() != made.as_ref().len() {
            return Err(SealError::Cipher);
        }
        tag.copy_from_slice(made.as_ref());
        Ok(())
    }
}

/// A key that opens.
pub(crate) struct Opening(LessSafeKey);

impl Opening {
    pub(crate) fn new(
        cipher: &'static str,
        algorithm: &'static Algorithm,
        bytes: &[u8],
    ) -> Result<Self, KeyError> {
        key(cipher, algorithm, bytes).map(Opening)
    }

    /// Decrypts the first bytes of `text_and_tag` in place. Whether it is authentic.
    #[must_use]
    pub(crate) fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        authenticated: &[u8],
        text_and_tag: &mut [u8],
    ) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.open_in_place(nonce, Aad::from(authenticated), text_and_tag).is_ok()
    }
}
