//! Addresses and names hidden before they leave.
//!
//! # Addresses
//! *Truncated* addresses keep their first bits. *Hashed* ones are still addresses, of the same
//! family, and keep their structure: two addresses that share their first n bits, and no more, still
//! do, whatever n (Xu, Fan, Ammar, Moon: Prefix-preserving IP address anonymization, 2002; the
//! construction known as Crypto-PAn, on AES-128). So questions by network have the same answers.
//! Under one key one address has one hash, always. Whoever can make connections of a known address
//! appear in the capture learns the hash of its prefixes: this hides who is who from readers of the
//! rows, not from somebody who sends on purpose. Both ends' addresses are hidden; ports are kept.
//!
//! # Names
//! A hashed host name is `h-` and 32 hexadecimal digits: the first half of an HMAC-SHA256 of the name
//! in lower case.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use aws_lc_rs::cipher::{AES_128, EncryptingKey, UnboundCipherKey};
use aws_lc_rs::{hmac, rand};
use tracker::Connection;

use crate::address::Prefixes;
use crate::error::Error;

/// Bytes of AES's block.
const BLOCK: usize = 16;

/// What becomes of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Addresses are written as they are.
    #[default]
    Keep,
    /// Of each only the prefix stays; the other bits become zero.
    Truncate(Prefixes),
    /// Each becomes another one under the key; common prefixes stay common.
    Hash,
}

impl FromStr for Addresses {
    type Err = Error;

    /// From `none`, `truncate`, `truncate:24/48` (bits of IPv4 and of IPv6) or `hash`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Addresses(text.to_owned());
        match (text, text.strip_prefix("truncate:")) {
            ("none", _) => Ok(Addresses::Keep),
            ("truncate", _) => Ok(Addresses::Truncate(Prefixes::default())),
            ("hash", _) => Ok(Addresses::Hash),
            (_, Some(lengths)) => {
                let (v4, v6) = lengths.split_once('/').ok_or_else(unknown)?;
                let bits = |text: &str| text.parse().map_err(|_| unknown());
                Ok(Addresses::Truncate(Prefixes::new(bits(v4)?, bits(v6)?)?))
            }
            _ => Err(unknown()),
        }
    }
}

/// What becomes of host names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// Names are written as they are.
    #[default]
    Keep,
    /// Each becomes a token under the key.
    Hash,
}

/// A secret under which addresses and names are hashed. Rows of several runs can be compared only if
/// they have the same one; once it is gone, no one can tell.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Key::LEN]);

impl Key {
    /// Its length, bytes.
    pub const LEN: usize = 32;

    /// These bytes, which must be hard to guess.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Key::LEN]) -> Self {
        Key(bytes)
    }

    /// A new one from the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub fn draw() -> Result<Self, Error> {
        let mut bytes = [0; Key::LEN];
        rand::fill(&mut bytes).map_err(|_| Error::Cryptography)?;
        Ok(Key(bytes))
    }
}

impl FromStr for Key {
    type Err = Error;

    /// From 64 hexadecimal digits; white space around them does not count.
    fn from_str(text: &str) -> Result<Self, Error> {
        let digits = text.trim().as_bytes();
        if digits.len() != 2 * Key::LEN {
            return Err(Error::Key);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(Error::Key);
        let mut bytes = [0; Key::LEN];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let &[high, low] = pair else { return Err(Error::Key) };
            *byte = (digit(high)? << 4 | digit(low)?) as u8;
        }
        Ok(Key(bytes))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Hides addresses and names.
#[derive(Debug)]
pub struct Anonymiser {
    addresses: Addresses,
    names: Names,
    networks: Prefixes,
    secrets: Option<Secrets>,
}

impl Anonymiser {
    /// One that hides nothing.
    #[must_use]
    pub fn none() -> Self {
        Anonymiser {
            addresses: Addresses::Keep,
            names: Names::Keep,
            networks: Prefixes::default(),
            secrets: None,
        }
    }

    /// One that hides as asked. `key` counts where something is hashed.
    ///
    /// # Errors
    /// The cryptography cannot be set up.
    pub fn new(addresses: Addresses, names: Names, key: &Key) -> Result<Self, Error> {
        let hashes = addresses == Addresses::Hash || names == Names::Hash;
        let secrets = if hashes { Some(Secrets::new(key)?) } else { None };
        Ok(Anonymiser { addresses, names, networks: Prefixes::default(), secrets })
    }

    /// Sets the length of networks' prefixes, [`Prefixes::default`] unless set.
    #[must_use]
    pub fn with_networks(mut self, networks: Prefixes) -> Self {
        self.networks = networks;
        self
    }

    /// What is shown of an address.
    #[must_use]
    pub fn address(&self, address: IpAddr) -> IpAddr {
        match (self.addresses, &self.secrets) {
            (Addresses::Keep, _) => address,
            (Addresses::Truncate(prefixes), _) => prefixes.of(address).address,
            (Addresses::Hash, Some(secrets)) => secrets.address(address),
            // Not made by `new`; what was to be hidden stays hidden.
            (Addresses::Hash, None) => nothing_of(address),
        }
    }

    /// The length of the networks' prefixes: no longer than addresses keep.
    #[must_use]
    pub fn networks(&self) -> Prefixes {
        match self.addresses {
            Addresses::Truncate(prefixes) => self.networks.min(prefixes),
            Addresses::Keep | Addresses::Hash => self.networks,
        }
    }

    /// Hides addresses and names of a record.
    pub fn hide(&self, connection: &mut Connection) {
        connection.client.set_ip(self.address(connection.client.ip()));
        connection.server.set_ip(self.address(connection.server.ip()));
        let name = connection.tls.as_mut().and_then(|tls| tls.server_name.as_mut());
        if let Some(name) = name {
            *name = self.name(name);
        }
    }

    /// What is shown of a host name.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        match (self.names, &self.secrets) {
            (Names::Keep, _) => name.to_owned(),
            (Names::Hash, Some(secrets)) => secrets.name(name),
            (Names::Hash, None) => "h-".to_owned(),
        }
    }
}

/// What follows from a key.
#[derive(Debug)]
struct Secrets {
    cipher: EncryptingKey,
    pad: [u8; BLOCK],
    names: hmac::Key,
}

impl Secrets {
    fn new(key: &Key) -> Result<Self, Error> {
        let (cipher, pad) = key.0.split_at(BLOCK);
        let cipher = UnboundCipherKey::new(&AES_128, cipher)
            .and_then(EncryptingKey::ecb)
            .map_err(|_| Error::Cryptography)?;
        let mut block: [u8; BLOCK] = pad.try_into().map_err(|_| Error::Cryptography)?;
        cipher.encrypt(&mut block).map_err(|_| Error::Cryptography)?;
        // Names have a key of their own, from which the other one does not follow.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), b"wiretax names");
        let names = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Ok(Secrets { cipher, pad: block, names })
    }

    fn address(&self, address: IpAddr) -> IpAddr {
        let mut blocks = [0; 128 * BLOCK];
        match address {
            IpAddr::V4(v4) => {
                let bits = u128::from(v4.to_bits()) << 96;
                self.flips(bits, &mut blocks[..32 * BLOCK])
                    .map(|flips| IpAddr::from(Ipv4Addr::from_bits(((bits ^ flips) >> 96) as u32)))
            }
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                self.flips(bits, &mut blocks)
                    .map(|flips| IpAddr::from(Ipv6Addr::from_bits(bits ^ flips)))
            }
        }
        .unwrap_or_else(|| nothing_of(address))
    }

    /// Which bits of an address, the first one highest, change: bit i by the highest bit of the
    /// encryption of the i bits before it, filled up from the pad.
    fn flips(&self, address: u128, blocks: &mut [u8]) -> Option<u128> {
        let pad = u128::from_be_bytes(self.pad);
        for (bit, block) in (0_u32..).zip(blocks.chunks_exact_mut(BLOCK)) {
            let rest = u128::MAX >> bit;
            block.copy_from_slice(&(address & !rest | pad & rest).to_be_bytes());
        }
        self.cipher.encrypt(blocks).ok()?;
        let highest = blocks.iter().step_by(BLOCK).map(|byte| u128::from(byte >> 7));
        Some((0_u32..).zip(highest).fold(0, |flips, (bit, highest)| flips | highest << (127 - bit)))
    }

    fn name(&self, name: &str) -> String {
        let tag = hmac::sign(&self.names, name.to_ascii_lowercase().as_bytes());
        let half = tag.as_ref().iter().take(16);
        half.fold("h-".to_owned(), |text, byte| text + &format!("{byte:02x}"))
    }
}

/// An address of the same family that says nothing.
fn nothing_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the sample that the authors of Crypto-PAn gave out with it.
    const SAMPLE: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    fn hashing() -> Anonymiser {
        Anonymiser::new(Addresses::Hash, Names::Hash, &Key::from_bytes(SAMPLE)).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn hashes_are_those_of_the_published_sample() {
        for (address, hash) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("141.233.145.108", "141.129.237.235"),
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
            ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ] {
            assert_eq!(hashing().address(ip(address)), ip(hash), "{address}");
        }
    }

    #[test]
    fn hashes_share_exactly_the_prefixes_that_addresses_share() {
        let anonymiser = hashing();
        let shared = |a: &str, b: &str, hash: bool| {
            let of = |text: &str| match if hash { anonymiser.address(ip(text)) } else { ip(text) } {
                IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
                IpAddr::V6(v6) => v6.to_bits(),
            };
            (of(a) ^ of(b)).leading_zeros()
        };
        for (a, b, bits) in [
            ("192.0.2.1", "192.0.2.1", 128),
            ("192.0.2.1", "192.0.2.129", 24),
            ("192.0.2.1", "192.0.3.1", 23),
            ("192.0.2.1", "10.0.2.1", 0),
            ("2001:db8:1::1", "2001:db8:1:8000::1", 48),
            ("2001:db8::1", "2001:db8::1:1", 111),
        ] {
            assert_eq!((shared(a, b, false), shared(a, b, true)), (bits, bits), "{a} {b}");
        }
    }

    #[test]
    fn truncated_addresses_say_no_more_than_asked() {
        let anonymiser = |text: &str| {
            let addresses = text.parse().unwrap();
            Anonymiser::new(addresses, Names::Keep, &Key::from_bytes(SAMPLE)).unwrap()
        };
        for (how, address, shown, network) in [
            ("none", "192.0.2.77", "192.0.2.77", "192.0.2.0/24"),
            ("truncate", "192.0.2.77", "192.0.2.0", "192.0.2.0/24"),
            ("truncate:16/32", "192.0.2.77", "192.0.0.0", "192.0.0.0/16"),
            ("truncate:28/56", "192.0.2.77", "192.0.2.64", "192.0.2.0/24"),
            ("truncate", "2001:db8:1:2::3", "2001:db8:1::", "2001:db8:1::/48"),
            ("truncate:16/32", "2001:db8:1:2::3", "2001:db8::", "2001:db8::/32"),
        ] {
            let anonymiser = anonymiser(how);
            let address = anonymiser.address(ip(address));
            assert_eq!(address, ip(shown), "{how}");
            assert_eq!(anonymiser.networks().of(address).to_string(), network, "{how}");
        }
        for wrong in ["", "hashed", "truncate:", "truncate:24", "truncate:33/48", "truncate:a/b"] {
            assert!(wrong.parse::<Addresses>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_become_tokens_of_one_key() {
        let one = hashing();
        let other =
            Anonymiser::new(Addresses::Keep, Names::Hash, &Key::from_bytes([1; 32])).unwrap();
        let token = one.name("example.org");
        assert_eq!(token.len(), 34);
        assert!(token.starts_with("h-") && !token.contains("example"));
        assert_eq!(one.name("Example.ORG"), token);
        assert_ne!(one.name("example.com"), token);
        assert_ne!(other.name("example.org"), token);
        assert_eq!(Anonymiser::none().name("Example.ORG"), "Example.ORG");
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits_and_is_not_shown() {
        let text = "15221 ".trim().to_owned() + &"0".repeat(59) + "\n";
        let key: Key = text.parse().unwrap();
        assert_eq!(key.0[..3], [0x15, 0x22, 0x10]);
        assert_eq!(format!("{key:?}"), "Key(..)");
        let wrong = ["", "zz", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)];
        assert!(wrong.iter().all(|text| text.parse::<Key>().is_err()));
        assert_ne!(Key::draw().unwrap(), Key::draw().unwrap());
    }
}
