//! Encrypted Client Hello: what a server publishes for it, an ECHConfigList (RFC 9849 §4).

use crate::Error;
use crate::reader::Reader;

const FORMAT: &str = "ECHConfigList";
/// The version of a configuration by RFC 9849; others are left out by whoever does not know them.
const VERSION: u16 = 0xfe0d;
/// An extension that whoever does not know it must refuse (RFC 9849 §4.1).
const MANDATORY: u16 = 0x8000;

/// A checked ECHConfigList: every configuration of a version that is known can be read.
#[derive(Debug, Clone, Copy)]
pub struct EchConfigList<'a> {
    /// The configurations, without the length before them.
    configs: &'a [u8],
}

/// One configuration: a key to which hellos are sealed, and the name that they show outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchConfig<'a> {
    /// The number by which the server finds the key.
    pub number: u8,
    /// The key encapsulation mechanism (IANA HPKE KEM Identifiers): 0x0020 is X25519.
    pub kem: u16,
    /// The public key.
    pub public_key: &'a [u8],
    /// The length of the longest name that clients are to pad to; 0 where the server does not say.
    pub longest_name: u8,
    /// The name in the outer hello, for which the server has a certificate.
    pub public_name: &'a str,
    /// Whether it has an extension that must be known, as none is yet.
    pub is_extended: bool,
    suites: &'a [u8],
}

impl<'a> EchConfigList<'a> {
    /// Checks a whole list, the length before it included.
    ///
    /// # Errors
    /// It is cut short, empty, goes on behind its end, or a configuration is not as RFC 9849 §4 says.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let configs = reader.vec16()?;
        if !reader.is_empty() {
            return Err(Error::malformed(FORMAT, "bytes follow its end"));
        }
        if configs.is_empty() {
            return Err(Error::malformed(FORMAT, "it has no configuration"));
        }
        let mut reader = Reader::new(FORMAT, configs);
        while !reader.is_empty() {
            next(&mut reader)?;
        }
        Ok(EchConfigList { configs })
    }

    /// The configurations of RFC 9849's version, the one that the server likes best first.
    pub fn configs(self) -> impl Iterator<Item = EchConfig<'a>> {
        let mut reader = Reader::new(FORMAT, self.configs);
        std::iter::from_fn(move || {
            while !reader.is_empty() {
                if let Some(config) = next(&mut reader).ok()? {
                    return Some(config);
                }
            }
            None
        })
    }
}

impl EchConfig<'_> {
    /// The ciphers that it can be sealed with: key derivation and AEAD (IANA HPKE identifiers).
    pub fn suites(&self) -> impl Iterator<Item = (u16, u16)> {
        let pairs = self.suites.as_chunks::<4>().0.iter();
        pairs.map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

/// The next configuration; `None` if it is of an unknown version.
fn next<'a>(reader: &mut Reader<'a>) -> Result<Option<EchConfig<'a>>, Error> {
    let version = reader.u16()?;
    let contents = reader.vec16()?;
    if version == VERSION { contents_of(contents).map(Some) } else { Ok(None) }
}

fn contents_of(contents: &[u8]) -> Result<EchConfig<'_>, Error> {
    let mut reader = Reader::new(FORMAT, contents);
    let (number, kem) = (reader.u8()?, reader.u16()?);
    let (public_key, suites) = (reader.vec16()?, reader.vec16()?);
    if public_key.is_empty() {
        return Err(Error::malformed(FORMAT, "its public key is empty"));
    }
    if suites.is_empty() || suites.len() % 4 != 0 {
        return Err(Error::malformed(FORMAT, "its cipher suites are none, or not whole"));
    }
    let longest_name = reader.u8()?;
    let public_name = name(reader.vec8()?)?;
    let extensions = reader.vec16()?;
    if !reader.is_empty() {
        return Err(Error::malformed(FORMAT, "bytes follow the end of a configuration"));
    }
    let mut reader = Reader::new(FORMAT, extensions);
    let mut is_extended = false;
    while !reader.is_empty() {
        is_extended |= reader.u16()? & MANDATORY != 0;
        reader.vec16()?;
    }
    Ok(EchConfig { number, kem, public_key, longest_name, public_name, is_extended, suites })
}

/// A DNS name of letters, digits and hyphens (RFC 9849 §4): nothing that a terminal could take amiss.
fn name(bytes: &[u8]) -> Result<&str, Error> {
    let wrong = Error::malformed(FORMAT, "its public name is not a DNS name");
    let text = std::str::from_utf8(bytes).map_err(|_| wrong)?;
    let is_label = |label: &str| {
        let inside = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inside
            && (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.split('.').all(is_label) { Ok(text) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(version: u16, name: &[u8], extensions: &[u8]) -> Vec<u8> {
        let mut contents = vec![7, 0x00, 0x20, 0, 3, 1, 2, 3, 0, 8, 0, 1, 0, 1, 0, 1, 0, 3, 64];
        contents.push(name.len() as u8);
        contents.extend(name);
        contents.extend((extensions.len() as u16).to_be_bytes());
        contents.extend(extensions);
        let mut config = version.to_be_bytes().to_vec();
        config.extend((contents.len() as u16).to_be_bytes());
        config.extend(contents);
        config
    }

    fn list(configs: &[Vec<u8>]) -> Vec<u8> {
        let all = configs.concat();
        [&(all.len() as u16).to_be_bytes()[..], &all].concat()
    }

    #[test]
    fn configurations_are_read_and_those_of_other_versions_left_out() {
        let known = config(VERSION, b"public.example", &[0x80, 1, 0, 1, 9]);
        let bytes = list(&[config(0xfe0c, b"-", &[1]), known]);
        let configs: Vec<_> = EchConfigList::new_checked(&bytes).unwrap().configs().collect();
        let [config] = configs[..] else { panic!("{configs:?}") };
        assert_eq!((config.number, config.kem, config.public_key), (7, 0x20, &[1, 2, 3][..]));
        assert_eq!((config.longest_name, config.public_name), (64, "public.example"));
        assert!(config.is_extended);
        assert_eq!(config.suites().collect::<Vec<_>>(), [(1, 1), (1, 3)]);
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        let whole = list(&[config(VERSION, b"public.example", &[])]);
        assert!(EchConfigList::new_checked(&whole).is_ok());
        for len in 0..whole.len() {
            assert!(EchConfigList::new_checked(&whole[..len]).is_err(), "{len} bytes");
        }
        for name in [&b""[..], b"a..b", b"-a", b"a b", b"a\x1b[2J", b"\xff"] {
            let bytes = list(&[config(VERSION, name, &[])]);
            let error = EchConfigList::new_checked(&bytes).unwrap_err();
            assert!(error.to_string().contains("public name"), "{error}");
        }
        let behind = [whole, vec![0]].concat();
        assert!(EchConfigList::new_checked(&behind).is_err());
        assert!(EchConfigList::new_checked(&[0, 0]).is_err());
    }
}
