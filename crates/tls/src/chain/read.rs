//! From PEM or DER to a chain.

use openssl::nid::Nid;
use openssl::pkey::{PKey, Public};
use openssl::x509::{X509, X509NameRef};

use super::{Certificate, Chain, kind_of};
use crate::certificate_file::{self, broken};
use crate::error::identity;
use crate::identity::MAX_CHAIN;
use crate::openssl_engine::key_name;
use crate::{Error, StandIn};

/// Most bytes of a file: ten certificates of the largest signatures are half of this.
const LARGEST: usize = 1 << 20;

impl Chain {
    /// The certificates of a file in PEM, DER or PKCS #7 ([`certificates_in`](crate::certificates_in)).
    ///
    /// # Errors
    /// [`Error::Caller`] that says what is wrong with the file and what to do: it holds no certificate or
    /// more than [`MAX_CHAIN`], is larger than 1 MiB, or a certificate is broken.
    pub fn from_file(file: &[u8]) -> Result<Chain, Error> {
        if file.len() > LARGEST {
            return Err(identity(
                "it is larger than 1 MiB, which no chain is",
                "give the server's chain, not a list of roots",
            ));
        }
        Chain::of(certificate_file::read(file)?)
    }

    /// Certificates in DER, as a server sent them.
    ///
    /// # Errors
    /// As [`Chain::from_file`].
    pub fn from_der(der: &[Vec<u8>]) -> Result<Chain, Error> {
        let read = |der: &Vec<u8>| X509::from_der(der).map_err(|_| broken());
        Chain::of(der.iter().map(read).collect::<Result<_, _>>()?)
    }

    fn of(certificates: Vec<X509>) -> Result<Chain, Error> {
        if certificates.len() > MAX_CHAIN {
            let more = certificates.len();
            return Err(identity(
                format!("there are {more} certificates in it, {MAX_CHAIN} at most make sense"),
                "give the server's chain, not a list of roots",
            ));
        }
        let leaf = certificates.first().ok_or_else(broken)?;
        let key = leaf.public_key().map_err(|_| {
            identity(
                "the first certificate's key is of a kind that OpenSSL 3.5 does not know",
                "put the server's own certificate first, or use a key of another kind",
            )
        })?;
        let leaf_key =
            StandIn { kind: kind_of(&key_name(&key).unwrap_or_default()), signature: key.size() };
        let described = certificates.iter().map(describe).collect::<Option<_>>();
        Ok(Chain { described: described.ok_or_else(broken)?, certificates, leaf_key })
    }
}

fn describe(certificate: &X509) -> Option<Certificate> {
    let (subject, issuer) = (certificate.subject_name(), certificate.issuer_name());
    let same = subject.to_der().ok()? == issuer.to_der().ok()?;
    let signed_by = certificate.signature_algorithm().object().nid();
    Some(Certificate {
        bytes: certificate.to_der().ok()?.len(),
        subject: name_of(subject),
        issuer: name_of(issuer),
        key: certificate.public_key().map_or("unknown".to_owned(), |key| described(&key)),
        signed_by: signed_by.long_name().unwrap_or("unknown").to_owned(),
        not_after: certificate.not_after().to_string(),
        self_signed: same,
    })
}

/// The common name, or the organisation's.
fn name_of(name: &X509NameRef) -> String {
    let entry = |nid| {
        let entry = name.entries_by_nid(nid).next()?;
        Some(printable(&entry.data().to_string().ok()?))
    };
    let entries = [Nid::COMMONNAME, Nid::ORGANIZATIONNAME];
    entries.into_iter().find_map(entry).unwrap_or_else(|| "without a name".to_owned())
}

/// A stranger's text, for a terminal.
fn printable(text: &str) -> String {
    fault::excerpt(text, 60)
}

fn described(key: &PKey<Public>) -> String {
    let name = key_name(key).unwrap_or_else(|| "unknown".to_owned());
    match name.as_str() {
        "RSA" | "RSA-PSS" => format!("{name}-{}", key.bits()),
        "EC" => format!("EC P-{}", key.bits()),
        _ => name,
    }
}
