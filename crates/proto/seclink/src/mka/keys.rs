//! Keys of key agreement (IEEE 802.1X-2020 §9.3, §9.4, §9.8): what is derived from a CAK, ICVs, wrapped SAKs.

use aws_lc_rs::cmac;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::key_wrap::{AES_128, AES_256, AesKek, KeyWrap};
use wire::mka::{ICV_LEN, MAX_CKN, MemberIdentifier};
use zeroize::Zeroizing;

use crate::{KeyError, Secret};

/// Bytes of a CKN that keys are derived with (§9.3.3).
const CONTEXT_LEN: usize = 16;

/// A pre-shared connectivity association key, and its name.
#[derive(Debug)]
pub struct Cak {
    name: Vec<u8>,
    key: Secret,
}

/// What a CAK is used by: itself derives keys, its children check packets and wrap keys.
pub(super) struct Keys {
    name: Vec<u8>,
    cak: Zeroizing<Vec<u8>>,
    icv: cmac::Key,
    wrapping: Zeroizing<Vec<u8>>,
}

impl Cak {
    /// A key of 16 or 32 bytes, and its name (CKN) of 1 to 32.
    ///
    /// # Errors
    /// One of them has another length.
    pub fn new(name: Vec<u8>, key: Secret) -> Result<Self, KeyError> {
        if !(1..=MAX_CKN).contains(&name.len()) {
            return Err(KeyError::OutOfRange("the length of the key's name (1 to 32 bytes)"));
        }
        let had = key.bytes().len();
        if !matches!(had, 16 | 32) {
            return Err(KeyError::Length { cipher: "MKA", needed: 16, had });
        }
        Ok(Cak { name, key })
    }
}

impl Keys {
    pub(super) fn of(cak: &Cak) -> Result<Self, KeyError> {
        let key = cak.key.bytes();
        let mut context = [0; CONTEXT_LEN];
        context.iter_mut().zip(&cak.name).for_each(|(to, from)| *to = *from);
        let derived = |label| derive(key, label, &context, key.len());
        let unable = KeyError::Unable { cipher: "AES-CMAC", what: "with this key" };
        let icv = derived(*b"IEEE8021 ICK").ok_or(unable)?;
        let icv = cmac::Key::new(algorithm(icv.len()), &icv).map_err(|_| unable)?;
        let wrapping = derived(*b"IEEE8021 KEK").ok_or(unable)?;
        let (name, cak) = (cak.name.clone(), Zeroizing::new(key.to_vec()));
        Ok(Keys { name, cak, icv, wrapping })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The ICV of a frame, from its destination address up to it (§9.4.1).
    pub(super) fn icv(&self, frame: &[u8]) -> Option<[u8; ICV_LEN]> {
        let tag = cmac::sign(&self.icv, frame).ok()?;
        tag.as_ref().try_into().ok()
    }

    pub(super) fn is_authentic(&self, frame: &[u8], icv: &[u8]) -> bool {
        self.icv(frame).is_some_and(|own| verify_slices_are_equal(&own, icv).is_ok())
    }

    /// A fresh SAK of so many bytes (§9.8.1): of a nonce of the key server's, the members, and the key's number.
    pub(super) fn sak(
        &self,
        nonce: &[u8],
        members: &[MemberIdentifier],
        number: u32,
        len: usize,
    ) -> Option<Zeroizing<Vec<u8>>> {
        let mut context = Zeroizing::new(nonce.to_vec());
        members.iter().for_each(|member| context.extend(member.0));
        context.extend(number.to_be_bytes());
        derive(&self.cak, *b"IEEE8021 SAK", &context, len)
    }

    /// A SAK, wrapped for those who have the CAK (§9.8.2, RFC 3394).
    pub(super) fn wrap(&self, sak: &[u8]) -> Option<Vec<u8>> {
        let mut wrapped = vec![0; sak.len().saturating_add(8)];
        self.wrapping_key()?.wrap(sak, &mut wrapped).ok()?;
        Some(wrapped)
    }

    /// The SAK that was wrapped; `None` if it was not by this CAK.
    pub(super) fn unwrap(&self, wrapped: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut sak = Zeroizing::new(vec![0; wrapped.len().checked_sub(8)?]);
        self.wrapping_key()?.unwrap(wrapped, &mut sak).ok()?;
        Some(sak)
    }

    /// A mark by which a SAK is known again and that says nothing about it.
    pub(super) fn mark(&self, sak: &[u8]) -> Option<u64> {
        self.icv(sak)?.first_chunk().map(|mark| u64::from_be_bytes(*mark))
    }

    fn wrapping_key(&self) -> Option<AesKek> {
        let cipher = if self.wrapping.len() == 16 { &AES_128 } else { &AES_256 };
        AesKek::new(cipher, &self.wrapping).ok()
    }
}

fn algorithm(key_len: usize) -> cmac::Algorithm {
    if key_len == 16 { cmac::AES_128 } else { cmac::AES_256 }
}

/// Bytes of a block, which is what the pseudo-random function gives at once.
const BLOCK_LEN: usize = 16;

/// The key derivation function (§6.2.1): AES-CMAC in counter mode.
fn derive(key: &[u8], label: [u8; 12], context: &[u8], len: usize) -> Option<Zeroizing<Vec<u8>>> {
    let bits = u16::try_from(len.checked_mul(8)?).ok()?;
    let key = cmac::Key::new(algorithm(key.len()), key).ok()?;
    let mut derived = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(BLOCK_LEN)));
    let blocks = u8::try_from(len.div_ceil(BLOCK_LEN)).ok()?;
    for counter in 1..=blocks {
        let mut input = cmac::Context::with_key(&key);
        for part in [&[counter][..], &label, &[0], context, &bits.to_be_bytes()] {
            input.update(part).ok()?;
        }
        derived.extend(input.sign().ok()?.as_ref());
    }
    derived.truncate(len);
    Some(derived)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cak(name: &[u8], key: &[u8]) -> Cak {
        Cak::new(name.to_vec(), Secret::new(key.to_vec())).unwrap()
    }

    #[test]
    fn a_wrapped_key_is_unwrapped_by_who_has_the_cak_and_by_nobody_else() {
        for (cak_len, sak_len) in [(16, 16), (16, 32), (32, 16), (32, 32)] {
            let keys = Keys::of(&cak(b"name", &vec![1; cak_len])).unwrap();
            let others = Keys::of(&cak(b"name", &vec![2; cak_len])).unwrap();
            let sak: Vec<u8> = (0..sak_len).collect();
            let wrapped = keys.wrap(&sak).unwrap();
            assert_eq!(keys.unwrap(&wrapped).unwrap()[..], sak);
            assert!(others.unwrap(&wrapped).is_none());
            assert!(keys.unwrap(&wrapped[..7]).is_none());
        }
    }

    #[test]
    fn keys_differ_by_name_label_and_length() {
        let (one, other) = (cak(b"one", &[1; 16]), cak(b"other", &[1; 16]));
        let (one, other) = (Keys::of(&one).unwrap(), Keys::of(&other).unwrap());
        assert_ne!(one.icv(b"frame"), other.icv(b"frame"));
        assert_ne!(one.wrapping, other.wrapping);
        let member = MemberIdentifier([7; 12]);
        let sak = |number, len| one.sak(&[9; 16], &[member], number, len).unwrap();
        assert_ne!(sak(1, 16), sak(2, 16));
        // The length is part of what is derived from.
        assert_ne!(sak(1, 16)[..], sak(1, 32)[..16]);
        assert_eq!(sak(1, 32).len(), 32);
    }

    #[test]
    fn keys_of_other_lengths_are_refused() {
        assert!(Cak::new(vec![], Secret::new(vec![0; 16])).is_err());
        assert!(Cak::new(vec![0; 33], Secret::new(vec![0; 16])).is_err());
        assert!(Cak::new(vec![0; 32], Secret::new(vec![0; 24])).is_err());
    }
}
