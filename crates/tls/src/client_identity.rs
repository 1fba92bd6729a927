//! Certificate and key by which a client authenticates itself (RFC 8446 §4.4.2, RFC 5246 §7.4.6).

use core::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use openssl::pkey::{PKey, Private};
use openssl::x509::X509;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use crate::error::identity;
use crate::identity_pem::{read_chain, read_key};
use crate::{CallerError, Error};

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 1 << 20;

/// A client's certificate chain and private key. Cheap to clone; `Debug` hides the key. Each library
/// keeps the key in its own form, and overwrites it when dropped.
#[derive(Clone)]
pub struct ClientIdentity {
    chain: Vec<X509>,
    key: PKey<Private>,
    resolver: Arc<SingleCertAndKey>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

impl ClientIdentity {
    /// Reads a chain, the client's own certificate first, and its private key (PKCS #8, PKCS #1 or
    /// SEC 1, in PEM). The key is RSA of 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519.
    ///
    /// # Errors
    /// [`CallerError::Identity`]: there is no certificate or key, the key is encrypted, of another kind,
    /// or belongs to another certificate.
    pub fn from_pem(certificates: &[u8], private_key: &[u8]) -> Result<Self, Error> {
        Self::new(read_chain(certificates)?, read_key(private_key)?)
    }

    /// As [`ClientIdentity::from_pem`], from files. Both may be the same file.
    ///
    /// # Errors
    /// As [`ClientIdentity::from_pem`], with the name of the file; also if a file cannot be read or is
    /// larger than 1 MiB.
    pub fn from_pem_files(certificates: &Path, private_key: &Path) -> Result<Self, Error> {
        let chain = read_chain(&contents(certificates)?).map_err(in_file(certificates))?;
        let key = read_key(&contents(private_key)?).map_err(in_file(private_key))?;
        Self::new(chain, key).map_err(in_file(private_key))
    }

    fn new(chain: Vec<X509>, key: PKey<Private>) -> Result<Self, Error> {
        let is_own = |one: &X509| one.public_key().is_ok_and(|public| public.public_eq(&key));
        match chain.iter().position(is_own) {
            Some(0) => {}
            Some(at) => {
                return Err(identity(
                    format!("the private key is that of certificate {} of the chain", at + 1),
                    "put the client's own certificate first",
                ));
            }
            None => {
                return Err(identity(
                    "the private key does not belong to the certificate",
                    "give the key that the certificate was requested with",
                ));
            }
        }
        let der = |one: &X509| one.to_der().map(CertificateDer::from);
        let certificates = chain.iter().map(der).collect::<Result<_, _>>();
        let certificates = certificates.map_err(crate::openssl_engine::failed)?;
        let signer = CertifiedKey::new(certificates, signing_key(&key)?);
        Ok(Self { chain, key, resolver: Arc::new(signer.into()) })
    }

    /// The certificates in DER, the client's own first.
    ///
    /// # Errors
    /// [`Error::Library`]: memory is short.
    pub fn chain_der(&self) -> Result<Vec<Vec<u8>>, Error> {
        let der = |one: &X509| one.to_der().map_err(crate::openssl_engine::failed);
        self.chain.iter().map(der).collect()
    }

    /// The form that rustls takes: it answers every request for a certificate, whichever issuers the
    /// server names. rustls resumes sessions only with the same resolver, so clones share one.
    #[must_use]
    pub fn resolver(&self) -> Arc<dyn ResolvesClientCert> {
        Arc::clone(&self.resolver) as Arc<dyn ResolvesClientCert>
    }

    pub(crate) fn chain(&self) -> &[X509] {
        &self.chain
    }

    pub(crate) fn key(&self) -> &PKey<Private> {
        &self.key
    }
}

/// The key as rustls signs with it.
fn signing_key(key: &PKey<Private>) -> Result<Arc<dyn rustls::sign::SigningKey>, Error> {
    let der = key.private_key_to_pkcs8().map_err(crate::openssl_engine::failed)?;
    let der = Zeroizing::new(der);
    let borrowed = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der.as_slice()));
    any_supported_type(&borrowed).map_err(|_| {
        identity(
            "the private key is of a kind that is not supported",
            "use RSA of 2048 bits or more, ECDSA on P-256, P-384 or P-521, or Ed25519",
        )
    })
}

/// The bytes of a file, which may hold a key.
fn contents(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let unreadable = |error: io::Error| {
        identity(
            format!("{} cannot be read: {error}", path.display()),
            "name a file that you may read",
        )
    };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len().min(LARGEST);
    // Large enough at once: growing would leave copies of the key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1024));
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(identity(
            format!("{} is larger than 1 MiB", path.display()),
            "check that it is the right file",
        ));
    }
    Ok(bytes)
}

/// Puts a file's name before a problem.
fn in_file(path: &Path) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Caller(CallerError::Identity { problem, remedy }) => {
            identity(format!("{}: {problem}", path.display()), remedy)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use fault::Explain;
    use openssl::asn1::Asn1Time;
    use openssl::ec::{EcGroup, EcKey};
    use openssl::nid::Nid;
    use openssl::rsa::Rsa;
    use openssl::symm::Cipher;

    use super::*;
    use crate::{Identity, KeyType};

    fn made() -> (String, String) {
        let made = Identity::generate(KeyType::EcdsaP256, 2, &["client.test"]).unwrap();
        (made.chain_pem().unwrap(), made.private_key_pem().unwrap())
    }

    fn problem(certificates: &str, key: &[u8]) -> String {
        ClientIdentity::from_pem(certificates.as_bytes(), key).unwrap_err().in_one_text()
    }

    #[test]
    fn a_chain_and_its_key_are_read_and_the_key_is_hidden() {
        let (chain, key) = made();
        let read = ClientIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(read.chain_der().unwrap().len(), 2);
        assert_eq!(format!("{read:?}"), "ClientIdentity { chain: 2, .. }");
        let both = [chain.as_bytes(), key.as_bytes()].concat();
        assert!(ClientIdentity::from_pem(&both, &both).is_ok());
    }

    #[test]
    fn a_key_that_does_not_fit_is_refused_with_a_reason() {
        let (chain, key) = made();
        let (other_chain, other) = made();
        let text = problem(&chain, other.as_bytes());
        assert!(text.contains("does not belong to the certificate"), "{text}");
        let text = problem(&format!("{other_chain}{chain}"), key.as_bytes());
        assert!(text.contains("that of certificate 3") && text.contains("first"), "{text}");
        for nonsense in ["", "x", &key] {
            assert!(problem(nonsense, key.as_bytes()).contains("no certificate"));
        }
        for nonsense in ["", "x", &chain] {
            assert!(problem(&chain, nonsense.as_bytes()).contains("no private key"));
        }
    }

    #[test]
    fn an_encrypted_key_is_named_as_such_in_both_forms() {
        let (chain, key) = made();
        let own = PKey::private_key_from_pem(key.as_bytes()).unwrap();
        let cipher = Cipher::aes_128_cbc();
        let pkcs8 = own.private_key_to_pem_pkcs8_passphrase(cipher, b"secret").unwrap();
        let ec = own.ec_key().unwrap();
        let sec1 = ec.private_key_to_pem_passphrase(cipher, b"secret").unwrap();
        for locked in [pkcs8, sec1] {
            let text = problem(&chain, &locked);
            assert!(text.contains("is encrypted") && text.contains("openssl pkey"), "{text}");
        }
    }

    #[test]
    fn keys_of_every_kind_are_taken_and_a_short_one_is_not() {
        let certificate = |key: &PKey<Private>| {
            let mut one = X509::builder().unwrap();
            one.set_pubkey(key).unwrap();
            one.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
            one.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
            let digest = match key.id() {
                openssl::pkey::Id::ED25519 => openssl::hash::MessageDigest::null(),
                _ => openssl::hash::MessageDigest::sha256(),
            };
            one.sign(key, digest).unwrap();
            one.build().to_pem().unwrap()
        };
        let on = |curve| EcKey::generate(&EcGroup::from_curve_name(curve).unwrap()).unwrap();
        let rsa = |bits| PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap();
        for (key, fits) in [
            (PKey::from_ec_key(on(Nid::SECP384R1)).unwrap(), true),
            (PKey::from_ec_key(on(Nid::SECP521R1)).unwrap(), true),
            (PKey::generate_ed25519().unwrap(), true),
            (rsa(2048), true),
            (rsa(1024), false),
            (PKey::from_ec_key(on(Nid::SECP256K1)).unwrap(), false),
        ] {
            let pem = key.private_key_to_pem_pkcs8().unwrap();
            let read = ClientIdentity::from_pem(&certificate(&key), &pem);
            assert_eq!(read.is_ok(), fits, "{:?} {}", key.id(), key.bits());
            if let Err(error) = read {
                assert!(error.to_string().contains("not supported"), "{error}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let missing = Path::new("no-such-file.pem");
        let text = ClientIdentity::from_pem_files(missing, missing).unwrap_err().to_string();
        assert!(text.contains("no-such-file.pem cannot be read"), "{text}");
    }
}
