//! The type of a certificate's key.

use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ED25519};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// A key that a certificate in DER carries, for people: `RSA-2048`, `ECDSA P-256`, `Ed25519`. `None` if
/// the certificate cannot be read or the key is of another kind.
pub(crate) fn key_type(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let info = certificate.public_key();
    match info.parsed().ok()? {
        PublicKey::RSA(key) => Some(format!("RSA-{}", bits(key.modulus)?)),
        PublicKey::EC(_) => {
            let curve = info.algorithm.parameters.as_ref()?.as_oid().ok()?;
            let named = [
                (OID_EC_P256, "ECDSA P-256"),
                (OID_NIST_EC_P384, "ECDSA P-384"),
                (OID_NIST_EC_P521, "ECDSA P-521"),
            ];
            let (_, name) = named.into_iter().find(|(oid, _)| *oid == curve)?;
            Some(name.to_owned())
        }
        _ if info.algorithm.algorithm == OID_SIG_ED25519 => Some("Ed25519".to_owned()),
        _ => None,
    }
}

/// The length of a number that begins with zeros.
fn bits(number: &[u8]) -> Option<usize> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = number.get(zeros..)?;
    Some(number.len() * 8 - number.first()?.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tls::{Identity, KeyType};

    #[test]
    fn key_types_of_real_certificates() {
        for (made, read) in [
            (KeyType::Rsa2048, "RSA-2048"),
            (KeyType::Rsa4096, "RSA-4096"),
            (KeyType::EcdsaP256, "ECDSA P-256"),
        ] {
            let identity = Identity::generate(made, 1, &["probe.test"]).unwrap();
            let leaf = identity.chain_der().first().unwrap().clone();
            assert_eq!(key_type(&leaf).as_deref(), Some(read));
            for cut in 0..leaf.len() {
                let _ = key_type(&leaf[..cut]);
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = key_type(&bytes);
            let _ = key_type(&[&[0x30, 100][..], &bytes].concat());
        }
    }
}
