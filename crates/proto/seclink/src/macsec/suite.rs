//! Cipher suites, and what an association is made of (IEEE 802.1AE-2018 §14).

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Algorithm};
use units::named;
use wire::macsec::Sci;
use wire::mka::Confidentiality;

use crate::{KeyError, Secret};

named! {
    /// A cipher suite (Table 14-1).
    #[derive(Default)]
    pub enum Suite: "MACsec cipher suite" {
        /// AES-128 in Galois counter mode: every implementation has it.
        #[default]
        GcmAes128 = "gcm-aes-128",
        /// AES-256 in Galois counter mode.
        GcmAes256 = "gcm-aes-256",
        /// AES-128 with packet numbers of 64 bits.
        GcmAesXpn128 = "gcm-aes-xpn-128",
        /// AES-256 with packet numbers of 64 bits.
        GcmAesXpn256 = "gcm-aes-xpn-256",
    }
}

impl Suite {
    /// Its identifier (Table 14-1).
    #[must_use]
    pub const fn identifier(self) -> u64 {
        match self {
            Suite::GcmAes128 => 0x0080_c200_0100_0001,
            Suite::GcmAes256 => 0x0080_c200_0100_0002,
            Suite::GcmAesXpn128 => 0x0080_c200_0100_0003,
            Suite::GcmAesXpn256 => 0x0080_c200_0100_0004,
        }
    }

    /// The suite of an identifier; `None` if it is not here.
    #[must_use]
    pub fn of_identifier(identifier: u64) -> Option<Self> {
        Suite::ALL.iter().copied().find(|suite| suite.identifier() == identifier)
    }

    /// Bytes of its keys.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Suite::GcmAes128 | Suite::GcmAesXpn128 => 16,
            Suite::GcmAes256 | Suite::GcmAesXpn256 => 32,
        }
    }

    /// Whether packet numbers have 64 bits.
    #[must_use]
    pub const fn is_extended(self) -> bool {
        matches!(self, Suite::GcmAesXpn128 | Suite::GcmAesXpn256)
    }

    /// The last packet number (§10.6.1): after it the association cannot be used.
    #[must_use]
    pub const fn last_number(self) -> u64 {
        if self.is_extended() { u64::MAX } else { u32::MAX as u64 }
    }

    /// Whether it can encrypt so: extended suites have no offset (§14.7).
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn can(self, confidentiality: Confidentiality) -> Result<(), KeyError> {
        match confidentiality {
            Confidentiality::Offset30 | Confidentiality::Offset50 if self.is_extended() => {
                Err(KeyError::Unable { cipher: self.name(), what: "a confidentiality offset" })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn algorithm(self) -> &'static Algorithm {
        match self {
            Suite::GcmAes128 | Suite::GcmAesXpn128 => &AES_128_GCM,
            Suite::GcmAes256 | Suite::GcmAesXpn256 => &AES_256_GCM,
        }
    }
}

/// How many of so many bytes of user data are not encrypted.
pub(super) fn in_clear(confidentiality: Confidentiality, user_data: usize) -> usize {
    match confidentiality {
        Confidentiality::None => user_data,
        Confidentiality::All => 0,
        Confidentiality::Offset30 => user_data.min(30),
        Confidentiality::Offset50 => user_data.min(50),
    }
}

/// What extended packet numbers need beside the key (§14.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extended {
    /// The short name of the sender's channel, different for each sender of a key.
    pub ssci: u32,
    /// Salt, distributed with the key.
    pub salt: [u8; 12],
}

/// A key, for one association.
#[derive(Debug)]
pub struct Association {
    /// Its number, below 4.
    pub number: u8,
    /// The cipher suite.
    pub suite: Suite,
    /// As long as [`Suite::key_len`] says.
    pub key: Secret,
    /// With an extended suite, and only then.
    pub extended: Option<Extended>,
    /// What is encrypted; a receiver must know the offset too (§10.7.27).
    pub confidentiality: Confidentiality,
}

impl Association {
    /// How its packet numbers become nonces for a channel.
    ///
    /// # Errors
    /// Its number is above 3, it has no salt where its suite needs one, or one where it takes none, or an offset
    /// with an extended suite (which has none, §14.7).
    pub(super) fn nonces(&self, sci: Sci) -> Result<Nonces, KeyError> {
        if self.number > 3 {
            return Err(KeyError::OutOfRange("the association number"));
        }
        let cipher = self.suite.name();
        self.suite.can(self.confidentiality)?;
        match (self.suite.is_extended(), self.extended) {
            (true, Some(extended)) => Ok(Nonces::Extended(extended)),
            (true, None) => Err(KeyError::Unable { cipher, what: "without SSCI and salt" }),
            (false, None) => Ok(Nonces::Short(sci)),
            (false, Some(_)) => Err(KeyError::Unable { cipher, what: "SSCI and salt" }),
        }
    }
}

/// How packet numbers become nonces (§14.5, §14.7).
#[derive(Debug, Clone, Copy)]
pub(super) enum Nonces {
    /// The channel's identifier, then the number.
    Short(Sci),
    /// Salt, and in it by exclusive or the channel's short name and the number.
    Extended(Extended),
}

impl Nonces {
    pub(super) fn of(&self, number: u64) -> [u8; 12] {
        let joined = |head: &[u8], tail: &[u8]| {
            let mut nonce = [0; 12];
            nonce.iter_mut().zip(head.iter().chain(tail)).for_each(|(to, from)| *to = *from);
            nonce
        };
        match self {
            Nonces::Short(sci) => joined(&sci.0, &(number as u32).to_be_bytes()),
            Nonces::Extended(Extended { ssci, salt }) => {
                let mut nonce = joined(&ssci.to_be_bytes(), &number.to_be_bytes());
                nonce.iter_mut().zip(salt).for_each(|(byte, salt)| *byte ^= salt);
                nonce
            }
        }
    }
}
