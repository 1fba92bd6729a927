//! The type of a certificate's key, from its DER.

/// A key that a certificate carries, for people: `RSA-2048`, `ECDSA P-256`, `Ed25519`. `None` if the
/// certificate cannot be read or the key is of another kind.
pub(crate) fn key_type(certificate: &[u8]) -> Option<String> {
    // RFC 5280 §4.1: SubjectPublicKeyInfo ::= SEQUENCE { algorithm, subjectPublicKey BIT STRING }
    let mut info = Der(subject_public_key_info(certificate)?);
    let mut algorithm = Der(info.value(SEQUENCE)?);
    let key = info.value(BIT_STRING)?;
    match algorithm.value(OBJECT_IDENTIFIER)? {
        RSA_ENCRYPTION => Some(format!("RSA-{}", rsa_bits(key)?)),
        EC_PUBLIC_KEY => match algorithm.value(OBJECT_IDENTIFIER)? {
            SECP256R1 => Some("ECDSA P-256".to_owned()),
            SECP384R1 => Some("ECDSA P-384".to_owned()),
            SECP521R1 => Some("ECDSA P-521".to_owned()),
            _ => None,
        },
        ED25519 => Some("Ed25519".to_owned()),
        _ => None,
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0] EXPLICIT`, the certificate's version.
const VERSION: u8 = 0xa0;

/// 1.2.840.113549.1.1.1 (RFC 3279 §2.3.1)
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// 1.2.840.10045.2.1 (RFC 5480 §2.1.1)
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// 1.2.840.10045.3.1.7, 1.3.132.0.34, 1.3.132.0.35 (RFC 5480 §2.1.1.1)
const SECP256R1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const SECP384R1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const SECP521R1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
/// 1.3.101.112 (RFC 8410 §3)
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// RFC 5280 §4.1: TBSCertificate ::= SEQUENCE { version, serialNumber, signature, issuer, validity,
/// subject, subjectPublicKeyInfo, ... }
fn subject_public_key_info(certificate: &[u8]) -> Option<&[u8]> {
    let mut certificate = Der(Der(certificate).value(SEQUENCE)?);
    let mut tbs = Der(certificate.value(SEQUENCE)?);
    if tbs.0.first() == Some(&VERSION) {
        tbs.value(VERSION)?;
    }
    tbs.value(INTEGER)?;
    for _ in ["signature", "issuer", "validity", "subject"] {
        tbs.value(SEQUENCE)?;
    }
    tbs.value(SEQUENCE)
}

/// RFC 8017 §A.1.1: RSAPublicKey ::= SEQUENCE { modulus INTEGER, publicExponent INTEGER }
fn rsa_bits(key: &[u8]) -> Option<usize> {
    // The first byte of a BIT STRING counts unused bits: none here.
    let (0, key) = key.split_first()? else { return None };
    let modulus = Der(Der(key).value(SEQUENCE)?).value(INTEGER)?;
    let leading_zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let modulus = modulus.get(leading_zeros..)?;
    Some(modulus.len() * 8 - modulus.first()?.leading_zeros() as usize)
}

/// A reader of DER values.
#[derive(Clone, Copy)]
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The contents of the next value, which must have the tag.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        if found != tag {
            return None;
        }
        let (&first, mut rest) = rest.split_first()?;
        let len = match first {
            0..=0x7f => usize::from(first),
            // Certificates are shorter than 16 MiB.
            0x81..=0x83 => {
                let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = after;
                digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(value)
    }
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
            let _ = key_type(&[&[SEQUENCE, 100][..], &bytes].concat());
        }
    }
}
