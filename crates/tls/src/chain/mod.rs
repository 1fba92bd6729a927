//! Chains that others made: what each certificate is, what is odd about their order, and what the
//! verifiers of both libraries say of them. No private key is needed.

mod faults;
mod read;
mod verify;

use openssl::asn1::Asn1Time;
use openssl::x509::{X509, X509VerifyResult};
use serde::Serialize;

pub use self::faults::ChainFault;
pub use self::verify::Verdict;
use crate::{Error, Identity, SignatureKind, StandIn};

/// A chain as a server sends it, leaf first. At least one certificate.
#[derive(Debug, Clone)]
pub struct Chain {
    certificates: Vec<X509>,
    described: Vec<Certificate>,
    leaf_key: StandIn,
}

/// What a certificate is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Bytes in DER.
    pub bytes: usize,
    /// Whom it is for: the common name, or the whole name where there is none.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
    /// Its key: `RSA-2048`, `EC P-256`, `ML-DSA-65`.
    pub key: String,
    /// What it is signed by, as OpenSSL names it: `ecdsa-with-SHA256`, `ML-DSA-65`.
    pub signed_by: String,
    /// The end of its validity, as OpenSSL writes it.
    pub not_after: String,
    /// It is its own issuer: a root.
    pub self_signed: bool,
}

/// Something odd about a chain, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oddity {
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Chain {
    /// What each certificate is, leaf first.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.described
    }

    /// Each certificate in DER.
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn der(&self) -> Result<Vec<Vec<u8>>, Error> {
        let der = |one: &X509| one.to_der().map_err(crate::openssl_engine::failed);
        self.certificates.iter().map(der).collect()
    }

    /// The certificates in PEM, leaf first.
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn to_pem(&self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        for one in &self.certificates {
            text.extend(one.to_pem().map_err(crate::openssl_engine::failed)?);
        }
        Ok(text)
    }

    /// What stands in for the leaf's key: of its kind, with signatures as long as its longest.
    #[must_use]
    pub fn leaf_key(&self) -> StandIn {
        self.leaf_key
    }

    /// A server's identity that shows this chain without its key.
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn stand_in(&self) -> Result<Identity, Error> {
        Ok(Identity::stand_in(self.der()?, self.leaf_key))
    }

    /// The lengths that decide a flight's.
    #[must_use]
    pub fn lengths(&self) -> flight::Chain {
        let bytes = self.described.iter().map(|one| one.bytes).collect();
        flight::Chain::new(bytes, self.leaf_key.signature)
    }

    /// The body of TLS 1.3's Certificate message: what is compressed (RFC 8446 §4.4.2, RFC 8879 §4).
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn certificate_body(&self) -> Result<Vec<u8>, Error> {
        let mut list = Vec::new();
        for der in self.der()? {
            list.extend(length24(der.len()));
            list.extend(der);
            list.extend([0, 0]); // no extension
        }
        let mut body = vec![0]; // no request context
        body.extend(length24(list.len()));
        body.extend(list);
        Ok(body)
    }

    /// A name that the leaf carries: a DNS name, with a wildcard filled in.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let leaf = self.certificates.first()?;
        let names = leaf.subject_alt_names()?;
        let first = names.iter().find_map(|name| name.dnsname())?;
        Some(match first.strip_prefix("*.") {
            Some(domain) => format!("www.{domain}"),
            None => first.to_owned(),
        })
    }

    /// The chain without the certificates that sign themselves, which a client has or does not trust; the
    /// leaf stays. `None` where there are none.
    #[must_use]
    pub fn without_roots(&self) -> Option<Chain> {
        let keep = |index: usize| {
            index == 0 || self.described.get(index).is_some_and(|one| !one.self_signed)
        };
        let certificates = self.certificates.iter().enumerate();
        let certificates: Vec<X509> = certificates
            .filter(|(index, _)| keep(*index))
            .map(|(_, certificate)| certificate.clone())
            .collect();
        if certificates.len() == self.certificates.len() {
            return None;
        }
        let described = self.described.iter().enumerate();
        let described = described.filter(|(index, _)| keep(*index)).map(|(_, one)| one.clone());
        Some(Chain { certificates, described: described.collect(), leaf_key: self.leaf_key })
    }

    /// What is odd about it at such a time, in seconds since 1970.
    #[must_use]
    pub fn oddities(&self, now: i64) -> Vec<Oddity> {
        let mut found = self.out_of_order();
        found.extend(self.out_of_date(now));
        for (index, one) in self.described.iter().enumerate().skip(1) {
            if one.self_signed {
                found.push(Oddity {
                    what: format!(
                        "certificate {} ({}) is a root: {} bytes that no client needs",
                        index + 1,
                        one.subject,
                        one.bytes
                    ),
                    remedy: "leave it out of the file",
                });
            }
        }
        found
    }

    /// Certificates whose issuer is not the next one.
    fn out_of_order(&self) -> Vec<Oddity> {
        let pairs = self.certificates.windows(2).enumerate();
        let mut found = Vec::new();
        for (index, pair) in pairs {
            let [one, next] = pair else { continue };
            if next.issued(one) == X509VerifyResult::OK {
                continue;
            }
            let elsewhere = |other: &X509| other.issued(one) == X509VerifyResult::OK;
            let issuer = self.certificates.iter().position(elsewhere).filter(|at| *at != index);
            let what = format!("certificate {} is not signed by the next", index + 1);
            found.push(match issuer {
                Some(at) => Oddity {
                    what: format!("{what} but by certificate {}: they are out of order", at + 1),
                    remedy: "put the leaf first, then each certificate's issuer (RFC 8446 §4.4.2)",
                },
                None => Oddity {
                    what: format!("{what}, nor by another in the file"),
                    remedy: "add the issuer's certificate, or leave out what does not belong to the chain",
                },
            });
        }
        found
    }

    fn out_of_date(&self, now: i64) -> Vec<Oddity> {
        let Ok(now) = Asn1Time::from_unix(now) else { return Vec::new() };
        let mut found = Vec::new();
        for (index, (certificate, one)) in self.certificates.iter().zip(&self.described).enumerate()
        {
            let which = format!("certificate {} ({})", index + 1, one.subject);
            if certificate.not_after() < now {
                let what = format!("{which} has expired: it was valid until {}", one.not_after);
                found.push(Oddity { what, remedy: "renew it" });
            } else if certificate.not_before() > now {
                let what = format!("{which} is not valid yet");
                found.push(Oddity { what, remedy: "check this machine's date" });
            }
        }
        found
    }
}

/// A length of three bytes. Certificates are far shorter than such a length can say.
fn length24(length: usize) -> [u8; 3] {
    let [.., high, middle, low] = length.to_be_bytes();
    [high, middle, low]
}

/// The kind of a key with this name (EVP_PKEY_get0_type_name).
fn kind_of(key: &str) -> SignatureKind {
    match key {
        "RSA" | "RSA-PSS" => SignatureKind::Rsa,
        "EC" => SignatureKind::Ecdsa,
        "ED25519" | "ED448" => SignatureKind::EdDsa,
        _ => SignatureKind::PostQuantum,
    }
}
