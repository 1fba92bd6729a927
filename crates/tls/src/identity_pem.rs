//! Certificates and keys that others made, as their PEM files hold them.

use openssl::ec::EcKeyRef;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::x509::X509;

use crate::certificate_file;
use crate::error::identity;
use crate::identity::MAX_CHAIN;
use crate::{Error, Identity, KeyType};

/// The shortest RSA key that is taken, in bits (NIST SP 800-57 part 1, table 2).
const LEAST_RSA_BITS: u32 = 2048;

impl Identity {
    /// A chain and its key as their PEM files hold them: the certificates leaf first, the key in
    /// PKCS #8, PKCS #1 or SEC 1. An RSA key of another size than the named ones has the
    /// [`KeyType`] of the next smaller one.
    ///
    /// # Errors
    /// [`Error::Caller`] that says which of the two is wrong, how, and what to do.
    pub fn from_pem(certificates: &[u8], private_key: &[u8]) -> Result<Self, Error> {
        let chain = read_chain(certificates)?;
        let key = read_key(private_key)?;
        let key_type = kind_of(&key)?;
        let first = chain.first().ok_or_else(no_certificate)?;
        // Whatever the certificate's key is: not equal, or not to be compared, is another key's.
        if !first.public_key().is_ok_and(|public| public.public_eq(&key)) {
            return Err(identity(
                "the private key is not that of the first certificate",
                "put the server's own certificate first, and give the key of that",
            ));
        }
        let chain = chain.iter().map(|one| one.to_der()).collect::<Result<_, _>>();
        let chain = chain.map_err(|_| no_certificate())?;
        let key = key.private_key_to_pkcs8().map_err(|_| no_key())?;
        Ok(Self::from_parts(Some(key_type), key, chain, None))
    }
}

fn no_certificate() -> Error {
    identity("there is no certificate in the certificate file", "give one in PEM, leaf first")
}

fn no_key() -> Error {
    identity("there is no private key in the key file", "give one in PEM, without a passphrase")
}

pub(crate) fn read_chain(pem: &[u8]) -> Result<Vec<X509>, Error> {
    let chain = certificate_file::read(pem).map_err(|_| no_certificate())?;
    match chain.len() {
        ..=MAX_CHAIN => Ok(chain),
        more => Err(identity(
            format!(
                "there are {more} certificates in the certificate file, {MAX_CHAIN} at most make sense"
            ),
            "give the server's chain, not a list of roots",
        )),
    }
}

pub(crate) fn read_key(pem: &[u8]) -> Result<PKey<Private>, Error> {
    if is_encrypted(pem) {
        return Err(identity(
            "the private key is encrypted",
            "write it without a passphrase: `openssl pkey -in FILE -out plain.pem`",
        ));
    }
    // An empty passphrase for one that is encrypted: without this OpenSSL would ask at the terminal.
    PKey::private_key_from_pem_callback(pem, |_| Ok(0)).map_err(|_| no_key())
}

/// Whether the first key is encrypted: PKCS #8 (RFC 7468 §11), or the older forms (RFC 1421 §4.6.1.1).
fn is_encrypted(pem: &[u8]) -> bool {
    let text = String::from_utf8_lossy(pem);
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
        || text.lines().any(|line| line.trim_end() == "Proc-Type: 4,ENCRYPTED")
}

fn kind_of(key: &PKey<Private>) -> Result<KeyType, Error> {
    match key.id() {
        Id::RSA if key.bits() >= 4096 => Ok(KeyType::Rsa4096),
        Id::RSA if key.bits() >= LEAST_RSA_BITS => Ok(KeyType::Rsa2048),
        Id::RSA => Err(identity(
            format!("the RSA key has {} bits, which is too few", key.bits()),
            "make one of 2048 or more",
        )),
        Id::EC if key.ec_key().is_ok_and(|key| on_p256(&key)) => Ok(KeyType::EcdsaP256),
        _ => Err(identity(
            "the private key is of a kind that is not supported",
            "use RSA or ECDSA P-256",
        )),
    }
}

fn on_p256(key: &EcKeyRef<Private>) -> bool {
    key.group().curve_name() == Some(Nid::X9_62_PRIME256V1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fault::Explain;
    use openssl::ec::{EcGroup, EcKey};
    use openssl::rsa::Rsa;
    use openssl::symm::Cipher;

    use super::*;
    use crate::{Client, ClientConfig, Library, Server, ServerConfig, Trust};

    fn problem(certificates: &str, key: &[u8]) -> String {
        Identity::from_pem(certificates.as_bytes(), key).unwrap_err().in_one_text()
    }

    #[test]
    fn what_was_written_is_read_and_serves() {
        let made = Identity::generate(KeyType::EcdsaP256, 2, &["server.test"]).unwrap();
        let (chain, key) = (made.chain_pem().unwrap(), made.private_key_pem().unwrap());
        let read = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        assert_eq!(read.chain_der(), made.chain_der());
        assert_eq!(read.key_type(), Some(KeyType::EcdsaP256));
        assert!(read.roots().is_empty() && read.root_pem().is_err());
        for &library in Library::ALL {
            let trust = Trust::Roots(made.roots());
            let client = Client::new(&ClientConfig::new(library, "server.test", trust)).unwrap();
            let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
            let server = Server::new(&ServerConfig::new(library, Arc::new(identity))).unwrap();
            let (mut here, mut there) = (client.start(None).unwrap(), server.accept().unwrap());
            let mut flight = Vec::new();
            here.write_tls(&mut flight).unwrap();
            there.read_tls(&flight).unwrap();
            flight.clear();
            there.write_tls(&mut flight).unwrap();
            here.read_tls(&flight).unwrap();
            assert!(here.may_send(), "{library}");
        }
    }

    #[test]
    fn every_form_of_a_key_is_read() {
        let made = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]).unwrap();
        let chain = made.chain_pem().unwrap();
        let key = PKey::private_key_from_pkcs8(made.private_key_der()).unwrap();
        let sec1 = key.ec_key().unwrap().private_key_to_pem().unwrap();
        assert!(Identity::from_pem(chain.as_bytes(), &sec1).is_ok());
        // A key of a file that has the certificates as well.
        let both = [chain.as_bytes(), &sec1].concat();
        assert!(Identity::from_pem(&both, &both).is_ok());
    }

    #[test]
    fn what_cannot_serve_is_refused_with_a_reason() {
        let made = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]).unwrap();
        let (chain, key) = (made.chain_pem().unwrap(), made.private_key_pem().unwrap());
        for nonsense in ["", "x", &key] {
            assert!(problem(nonsense, key.as_bytes()).contains("no certificate"), "{nonsense:?}");
        }
        for nonsense in ["", "x", &chain] {
            assert!(problem(&chain, nonsense.as_bytes()).contains("no private key"));
        }
        let other = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]).unwrap();
        let other = other.private_key_pem().unwrap();
        assert!(problem(&chain, other.as_bytes()).contains("not that of the first certificate"));
        let rsa = PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap();
        let weak = rsa.private_key_to_pem_pkcs8().unwrap();
        assert!(problem(&chain, &weak).contains("1024 bits"));
        let group = EcGroup::from_curve_name(Nid::SECP384R1).unwrap();
        let p384 = PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap();
        let p384 = p384.private_key_to_pem_pkcs8().unwrap();
        assert!(problem(&chain, &p384).contains("not supported"));
        let own = PKey::private_key_from_pem(key.as_bytes()).unwrap();
        let cipher = Cipher::aes_128_cbc();
        let locked = own.private_key_to_pem_pkcs8_passphrase(cipher, b"secret").unwrap();
        assert!(problem(&chain, &locked).contains("without a passphrase"));
    }
}
