//! A server's key for ECH as bytes, for libraries that take it so.

use core::fmt;

use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
use rustls::crypto::hpke::{Hpke, HpkePrivateKey};
use rustls_pki_types::DnsName;

use super::{AEADS, KDF_SHA256, KEM_X25519, LONGEST_NAME};
use crate::Error;
use crate::error::config;
use crate::rustls_engine::error;

/// A configuration's version (RFC 9849 §4).
const VERSION: u16 = 0xfe0d;

/// A server's key for ECH (X25519, HKDF-SHA256), with what it publishes of it: as [`super::Keys`], whose library keeps its
/// key to itself.
pub struct RawKey {
    list: Vec<u8>,
    private: HpkePrivateKey,
}

impl fmt::Debug for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawKey").field("list", &self.list).finish_non_exhaustive()
    }
}

impl RawKey {
    /// A new key, whose hellos show `public_name` outside. `number` is how the server finds it among others.
    ///
    /// # Errors
    /// The name is no DNS name; the machine gives no randomness.
    pub fn generate(public_name: &str, number: u8) -> Result<Self, Error> {
        check_public_name(public_name)?;
        let hpke: &dyn Hpke = DH_KEM_X25519_HKDF_SHA256_AES_128;
        let (public, private) = hpke.generate_key_pair().map_err(error)?;
        let list = config_list(number, &public.0, public_name)
            .ok_or_else(|| config(format!("`{public_name}` is too long a name for ECH")))?;
        super::check(&list)?;
        Ok(RawKey { list, private })
    }

    /// What is published in the name's HTTPS record, an ECHConfigList of one configuration.
    #[must_use]
    pub fn config_list(&self) -> &[u8] {
        &self.list
    }

    /// The private key: 32 bytes, overwritten when this is dropped.
    #[must_use]
    pub fn private_key(&self) -> &[u8] {
        self.private.secret_bytes()
    }
}

/// Whether hellos can show this name outside.
pub(super) fn check_public_name(name: &str) -> Result<(), Error> {
    match DnsName::try_from(name) {
        Ok(_) => Ok(()),
        Err(_) => Err(config(format!("`{name}` is no public name for ECH"))),
    }
}

/// An ECHConfigList of one configuration, as AWS-LC writes it (RFC 9849 §4); `None` for what its lengths have no room
/// for.
fn config_list(number: u8, public_key: &[u8], public_name: &str) -> Option<Vec<u8>> {
    let [aes_128, _, chacha20] = AEADS;
    let suites = [KDF_SHA256, aes_128, KDF_SHA256, chacha20].map(u16::to_be_bytes).concat();
    let mut contents = vec![number];
    contents.extend(KEM_X25519.to_be_bytes());
    contents.extend(with_length(public_key)?);
    contents.extend(with_length(&suites)?);
    contents.push(LONGEST_NAME);
    contents.push(u8::try_from(public_name.len()).ok()?);
    contents.extend(public_name.as_bytes());
    // No extensions.
    contents.extend([0, 0]);
    let mut list = VERSION.to_be_bytes().to_vec();
    list.extend(with_length(&contents)?);
    with_length(&list)
}

/// Bytes behind their length in two.
fn with_length(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all = u16::try_from(bytes.len()).ok()?.to_be_bytes().to_vec();
    all.extend(bytes);
    Some(all)
}

#[cfg(test)]
mod tests {
    use wire::tls::EchConfigList;

    use super::super::Keys;
    use super::*;

    #[test]
    fn what_is_published_is_what_aws_lc_would_publish_but_for_the_key() {
        let (ours, theirs) =
            (RawKey::generate("a.test", 7).unwrap(), Keys::generate("a.test", 7).unwrap());
        let read = |list| EchConfigList::new_checked(list).unwrap().configs().next().unwrap();
        let (own, other) = (read(ours.config_list()), read(theirs.config_list()));
        assert_eq!(own.public_key.len(), 32);
        let suites = |config: wire::tls::EchConfig<'_>| config.suites().collect::<Vec<_>>();
        assert_eq!(suites(own), suites(other));
        assert_eq!(ours.config_list().len(), theirs.config_list().len());
        let shown = (own.number, own.kem, own.longest_name, own.public_name, own.is_extended);
        assert_eq!(shown, (7, KEM_X25519, LONGEST_NAME, "a.test", false));
        assert_eq!(ours.private_key().len(), 32);
        assert!(!format!("{ours:?}").contains("private"));
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        for name in ["no name", "", "192.0.2.1:1"] {
            assert!(RawKey::generate(name, 1).unwrap_err().to_string().contains("public name"));
        }
    }
}
