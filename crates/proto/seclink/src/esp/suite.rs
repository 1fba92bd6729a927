//! Ciphers of ESP.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Algorithm, CHACHA20_POLY1305};
use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use units::named;

use crate::aead::{Opening, Sealing, TAG_LEN, Turn};
use crate::numbers::{Number, Numbers};
use crate::{KeyError, SealError, Secret};

named! {
    /// Encryption and integrity together.
    #[derive(Default)]
    pub enum Suite: "ESP cipher suite" {
        /// AES-128 in Galois counter mode, ICV of 16 bytes (RFC 4106).
        #[default]
        AesGcm128 = "aes-gcm-128",
        /// AES-256 in the same.
        AesGcm256 = "aes-gcm-256",
        /// ChaCha20-Poly1305 (RFC 7634).
        ChaCha20Poly1305 = "chacha20-poly1305",
        /// AES-128 in CBC mode with HMAC-SHA1-96 (RFC 3602, RFC 2404): the MACsec paper's.
        AesCbc128Sha1 = "aes-cbc-128-sha1",
    }
}

/// Bytes of an AES block, and of a CBC initialisation vector.
const BLOCK_LEN: usize = 16;
/// Bytes of the AEAD ciphers' salt and of their vector.
const SALT_LEN: usize = 4;
const COUNTER_IV_LEN: usize = 8;
/// Bytes of HMAC-SHA1's key, and of what is sent of its tag.
const SHA1_KEY_LEN: usize = 20;
const SHA1_96_LEN: usize = 12;

impl Suite {
    /// Bytes of key material: the cipher's key, then salt or authentication key.
    #[must_use]
    pub const fn key_material(self) -> usize {
        match self {
            Suite::AesGcm128 => 16 + SALT_LEN,
            Suite::AesGcm256 | Suite::ChaCha20Poly1305 => 32 + SALT_LEN,
            Suite::AesCbc128Sha1 => 16 + SHA1_KEY_LEN,
        }
    }

    /// Bytes of the initialisation vector that is sent.
    #[must_use]
    pub const fn iv_len(self) -> usize {
        match self {
            Suite::AesCbc128Sha1 => BLOCK_LEN,
            _ => COUNTER_IV_LEN,
        }
    }

    /// What payload and trailer are padded to a multiple of (RFC 4303 §2.4).
    #[must_use]
    pub const fn block_len(self) -> usize {
        match self {
            Suite::AesCbc128Sha1 => BLOCK_LEN,
            _ => 4,
        }
    }

    /// Bytes of the ICV.
    #[must_use]
    pub const fn icv_len(self) -> usize {
        match self {
            Suite::AesCbc128Sha1 => SHA1_96_LEN,
            _ => TAG_LEN,
        }
    }

    fn algorithm(self) -> Option<&'static Algorithm> {
        match self {
            Suite::AesGcm128 => Some(&AES_128_GCM),
            Suite::AesGcm256 => Some(&AES_256_GCM),
            Suite::ChaCha20Poly1305 => Some(&CHACHA20_POLY1305),
            Suite::AesCbc128Sha1 => None,
        }
    }

    /// Key material as cipher key and the rest.
    fn split(self, key: &Secret) -> Result<(&[u8], &[u8]), KeyError> {
        let (needed, had) = (self.key_material(), key.bytes().len());
        let wrong = KeyError::Length { cipher: self.name(), needed, had };
        let behind = if self == Suite::AesCbc128Sha1 { SHA1_KEY_LEN } else { SALT_LEN };
        if had != needed {
            return Err(wrong);
        }
        key.split_at(needed - behind).ok_or(wrong)
    }

    /// The AEAD ciphers' key, whose algorithm this is, and salt.
    fn aead(self, key: &Secret) -> Result<(&'static Algorithm, &[u8], [u8; SALT_LEN]), KeyError> {
        let (cipher_key, salt) = self.split(key)?;
        let unable = KeyError::Unable { cipher: self.name(), what: "a salt" };
        let salt = <[u8; SALT_LEN]>::try_from(salt).map_err(|_| unable)?;
        Ok((self.algorithm().ok_or(unable)?, cipher_key, salt))
    }
}

/// Bytes that ESP adds to so many of payload: header, vector, padding, trailer and ICV.
#[must_use]
pub const fn overhead(suite: Suite, payload: usize) -> usize {
    wire::esp::HEADER_LEN
        + suite.iv_len()
        + wire::esp::padding(payload, suite.block_len())
        + wire::esp::TRAILER_LEN
        + suite.icv_len()
}

/// A nonce: the salt, then the vector (RFC 4106 §4, RFC 7634 §2).
fn nonce(salt: [u8; SALT_LEN], iv: [u8; COUNTER_IV_LEN]) -> [u8; 12] {
    let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (salt, iv);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// What an AEAD authenticates beside the ciphertext, index and whole number (RFC 4106 §5), and its length.
fn associated_data(spi: u32, sequence: u64, extended: bool) -> ([u8; 12], usize) {
    let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (spi.to_be_bytes(), sequence.to_be_bytes());
    if extended {
        ([a, b, c, d, e, f, g, h, i, j, k, l], 12)
    } else {
        ([a, b, c, d, i, j, k, l, 0, 0, 0, 0], 8)
    }
}

/// Keys of AES-CBC with HMAC-SHA1-96.
pub(super) struct CbcSha1 {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
    /// Makes vectors of sequence numbers.
    vectors: EncryptingKey,
    integrity: hmac::Key,
}

impl CbcSha1 {
    fn new(key: &Secret) -> Result<Self, KeyError> {
        let suite = Suite::AesCbc128Sha1;
        let (cipher_key, integrity) = suite.split(key)?;
        let wrong = KeyError::Length { cipher: suite.name(), needed: 16, had: cipher_key.len() };
        let unbound = || UnboundCipherKey::new(&AES_128, cipher_key);
        let keys = || {
            Ok::<_, aws_lc_rs::error::Unspecified>(CbcSha1 {
                encrypting: EncryptingKey::cbc(unbound()?)?,
                decrypting: DecryptingKey::cbc(unbound()?)?,
                vectors: EncryptingKey::ecb(unbound()?)?,
                integrity: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, integrity),
            })
        };
        keys().map_err(|_| wrong)
    }

    /// A vector that nobody can foretell without the key: the number, encrypted (NIST SP 800-38A Appendix C).
    fn vector(&self, number: &Number) -> Result<[u8; BLOCK_LEN], SealError> {
        let mut block = [0; BLOCK_LEN];
        let (_, tail) = block.split_at_mut(8);
        tail.copy_from_slice(&number.value().to_be_bytes());
        let made = self.vectors.less_safe_encrypt(&mut block, EncryptionContext::None);
        made.map(|_| block).map_err(|_| SealError::Cipher)
    }

    /// The tag over a packet up to its ICV, and the upper half of an extended number (RFC 4303 §2.8).
    fn tag(&self, packet: &[u8], sequence: u64, extended: bool) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.integrity);
        context.update(packet);
        if extended {
            context.update(&((sequence >> 32) as u32).to_be_bytes());
        }
        context.sign()
    }
}

/// What a packet is sealed with.
pub(super) enum SealingKey {
    Aead { sealing: Sealing, salt: [u8; SALT_LEN] },
    CbcSha1 { keys: Box<CbcSha1>, numbers: Numbers },
}

/// What a packet is opened with.
pub(super) enum OpeningKey {
    Aead { opening: Opening, salt: [u8; SALT_LEN] },
    CbcSha1(Box<CbcSha1>),
}

impl SealingKey {
    pub(super) fn new(suite: Suite, key: &Secret, numbers: Numbers) -> Result<Self, KeyError> {
        if suite == Suite::AesCbc128Sha1 {
            let keys = Box::new(CbcSha1::new(key)?);
            return Ok(SealingKey::CbcSha1 { keys, numbers });
        }
        let (algorithm, cipher_key, salt) = suite.aead(key)?;
        let sealing = Sealing::new(suite.name(), algorithm, cipher_key, numbers)?;
        Ok(SealingKey::Aead { sealing, salt })
    }

    pub(super) const fn numbers(&self) -> &Numbers {
        match self {
            SealingKey::Aead { sealing, .. } => sealing.numbers(),
            SealingKey::CbcSha1 { numbers, .. } => numbers,
        }
    }

    /// Fills in header, vector, ciphertext and ICV of a packet whose plaintext lies where its ciphertext will.
    pub(super) fn seal(
        &mut self,
        spi: u32,
        extended: bool,
        packet: &mut [u8],
    ) -> Result<(), SealError> {
        match self {
            SealingKey::Aead { sealing, salt } => {
                seal_aead(sealing.turn()?, *salt, spi, extended, packet)
            }
            SealingKey::CbcSha1 { keys, numbers } => {
                let number = numbers.take().ok_or(SealError::Exhausted)?;
                seal_cbc(keys, &number, spi, extended, packet)
            }
        }
    }
}

fn write_header(header: &mut [u8], spi: u32, sequence: u64) -> Result<(), SealError> {
    // Of an extended number the lower half is sent (RFC 4303 §2.2.1).
    let repr = wire::esp::Repr { spi, sequence: sequence as u32 };
    repr.emit(header).map_err(|_| SealError::TooShort)
}

fn seal_aead(
    turn: Turn<'_>,
    salt: [u8; SALT_LEN],
    spi: u32,
    extended: bool,
    packet: &mut [u8],
) -> Result<(), SealError> {
    let sequence = turn.number();
    write_header(packet, spi, sequence)?;
    let behind = packet.get_mut(wire::esp::HEADER_LEN..).unwrap_or_default();
    let (iv, rest) = behind.split_first_chunk_mut::<COUNTER_IV_LEN>().ok_or(SealError::TooShort)?;
    *iv = sequence.to_be_bytes();
    let text = rest.len().checked_sub(TAG_LEN).ok_or(SealError::TooShort)?;
    let (text, icv) = rest.split_at_mut_checked(text).ok_or(SealError::TooShort)?;
    let (associated, len) = associated_data(spi, sequence, extended);
    let associated = associated.get(..len).unwrap_or_default();
    turn.seal(|number| nonce(salt, number.to_be_bytes()), associated, text, icv)
}

fn seal_cbc(
    keys: &CbcSha1,
    number: &Number,
    spi: u32,
    extended: bool,
    packet: &mut [u8],
) -> Result<(), SealError> {
    let sequence = number.value();
    write_header(packet, spi, sequence)?;
    let end = packet.len().checked_sub(SHA1_96_LEN).ok_or(SealError::TooShort)?;
    let (covered, icv) = packet.split_at_mut_checked(end).ok_or(SealError::TooShort)?;
    let behind = covered.get_mut(wire::esp::HEADER_LEN..).unwrap_or_default();
    let (iv, text) = behind.split_first_chunk_mut::<BLOCK_LEN>().ok_or(SealError::TooShort)?;
    *iv = keys.vector(number)?;
    let context = EncryptionContext::Iv128(FixedLength::from(*iv));
    keys.encrypting.less_safe_encrypt(text, context).map_err(|_| SealError::Cipher)?;
    let tag = keys.tag(covered, sequence, extended);
    icv.copy_from_slice(tag.as_ref().get(..SHA1_96_LEN).unwrap_or_default());
    Ok(())
}

impl OpeningKey {
    pub(super) fn new(suite: Suite, key: &Secret) -> Result<Self, KeyError> {
        if suite == Suite::AesCbc128Sha1 {
            return Ok(OpeningKey::CbcSha1(Box::new(CbcSha1::new(key)?)));
        }
        let (algorithm, cipher_key, salt) = suite.aead(key)?;
        let opening = Opening::new(suite.name(), algorithm, cipher_key)?;
        Ok(OpeningKey::Aead { opening, salt })
    }

    /// Whether a packet is authentic; if so, its ciphertext is decrypted in place.
    #[must_use]
    pub(super) fn open(&self, spi: u32, sequence: u64, extended: bool, packet: &mut [u8]) -> bool {
        match self {
            OpeningKey::Aead { opening, salt } => {
                let behind = packet.get_mut(wire::esp::HEADER_LEN..).unwrap_or_default();
                let Some((iv, text_and_tag)) = behind.split_first_chunk_mut::<COUNTER_IV_LEN>()
                else {
                    return false;
                };
                let (associated, len) = associated_data(spi, sequence, extended);
                let associated = associated.get(..len).unwrap_or_default();
                opening.open(nonce(*salt, *iv), associated, text_and_tag)
            }
            OpeningKey::CbcSha1(keys) => open_cbc(keys, sequence, extended, packet).is_some(),
        }
    }
}

/// Integrity first, so that nothing is decrypted that was not sent (RFC 4303 §3.4.4.1).
fn open_cbc(keys: &CbcSha1, sequence: u64, extended: bool, packet: &mut [u8]) -> Option<()> {
    let end = packet.len().checked_sub(SHA1_96_LEN)?;
    let (covered, icv) = packet.split_at_mut_checked(end)?;
    let tag = keys.tag(covered, sequence, extended);
    verify_slices_are_equal(tag.as_ref().get(..SHA1_96_LEN)?, icv).ok()?;
    let behind = covered.get_mut(wire::esp::HEADER_LEN..)?;
    let (iv, text) = behind.split_first_chunk_mut::<BLOCK_LEN>()?;
    let context = DecryptionContext::Iv128(FixedLength::from(*iv));
    keys.decrypting.decrypt(text, context).ok().map(drop)
}
