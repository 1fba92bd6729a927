//! Identities whose keys a quantum computer does not help to forge, made by the linked OpenSSL: rcgen has
//! no such keys.

use flight::PostQuantum;
use openssl::asn1::{Asn1Integer, Asn1Time};
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName,
    SubjectKeyIdentifier,
};
use openssl::x509::{
    X509, X509Builder, X509Extension, X509Name, X509NameBuilder, X509NameRef, X509Ref,
};

use crate::identity::can_be_made;
use crate::openssl_engine::make_key;
use crate::{Error, Identity, Library};

/// Bits of a serial number (RFC 5280 §4.1.2.2 allows 20 bytes).
const SERIAL_BITS: i32 = 127;

/// A certificate that signs others, with its key.
struct Issuer {
    certificate: X509,
    key: PKey<Private>,
}

impl Identity {
    /// As [`Identity::generate`], with keys of these schemes: the leaf's, and that of the root and of every
    /// intermediate. Only a leaf of ML-DSA can serve TLS (see [`PostQuantum::scheme`]), and only OpenSSL
    /// serves it; certificates of SLH-DSA take some seconds to sign.
    ///
    /// # Errors
    /// [`Error::Caller`] when `chain_len` is not 1 to [`crate::MAX_CHAIN`] or there is no name;
    /// [`Error::Library`] when OpenSSL makes no such key.
    pub fn post_quantum(
        leaf: PostQuantum,
        authority: PostQuantum,
        chain_len: usize,
        names: &[&str],
    ) -> Result<Self, Error> {
        can_be_made(chain_len, names)?;
        build(leaf, authority, chain_len, names).map_err(|cause| Error::Library {
            library: Library::OpenSsl,
            detail: format!("certificate: {cause}"),
        })
    }
}

fn build(
    leaf: PostQuantum,
    authority: PostQuantum,
    chain_len: usize,
    names: &[&str],
) -> Result<Identity, ErrorStack> {
    let mut issuer = certified("Wiretax root", make_key(authority.name())?, None, None)?;
    let root = issuer.certificate.to_der()?;
    let mut chain = Vec::new();
    for number in 1..chain_len {
        let name = format!("Wiretax intermediate {number}");
        issuer = certified(&name, make_key(authority.name())?, Some(&issuer), None)?;
        chain.push(issuer.certificate.to_der()?);
    }
    let own = certified("Wiretax server", make_key(leaf.name())?, Some(&issuer), Some(names))?;
    // RFC 8446 §4.4.2: the end entity first, each next certifies the one before.
    chain.push(own.certificate.to_der()?);
    chain.reverse();
    let key = own.key.private_key_to_pkcs8()?;
    Ok(Identity::from_parts(None, key, chain, Some(root)))
}

/// A certificate for a key: a server's with such names, or an authority's. Without an issuer it signs
/// itself.
fn certified(
    name: &str,
    key: PKey<Private>,
    issuer: Option<&Issuer>,
    names: Option<&[&str]>,
) -> Result<Issuer, ErrorStack> {
    let mut builder = X509Builder::new()?;
    builder.set_version(2)?;
    let mut serial = BigNum::new()?;
    serial.rand(SERIAL_BITS, MsbOption::ONE, false)?;
    let serial = Asn1Integer::from_bn(&serial)?;
    builder.set_serial_number(&serial)?;
    let subject = common_name(name)?;
    builder.set_subject_name(&subject)?;
    let own: &X509NameRef = &subject;
    builder.set_issuer_name(issuer.map_or(own, |issuer| issuer.certificate.subject_name()))?;
    let (from, to) =
        (Asn1Time::from_str("19750101000000Z")?, Asn1Time::from_str("20491231000000Z")?);
    builder.set_not_before(&from)?;
    builder.set_not_after(&to)?;
    builder.set_pubkey(&key)?;
    for extension in extensions(&builder, issuer, names)? {
        builder.append_extension(extension)?;
    }
    // These schemes hash on their own: no digest.
    builder.sign(issuer.map_or(&key, |issuer| &issuer.key), MessageDigest::null())?;
    Ok(Issuer { certificate: builder.build(), key })
}

fn extensions(
    builder: &X509Builder,
    issuer: Option<&Issuer>,
    names: Option<&[&str]>,
) -> Result<Vec<X509Extension>, ErrorStack> {
    let above: Option<&X509Ref> = issuer.map(|issuer| issuer.certificate.as_ref());
    let context = builder.x509v3_context(above, None);
    let mut found = vec![SubjectKeyIdentifier::new().build(&context)?];
    if issuer.is_some() {
        found.push(AuthorityKeyIdentifier::new().keyid(true).build(&context)?);
    }
    match names {
        None => {
            found.push(BasicConstraints::new().critical().ca().build()?);
            found.push(KeyUsage::new().critical().key_cert_sign().crl_sign().build()?);
        }
        Some(names) => {
            found.push(BasicConstraints::new().critical().build()?);
            found.push(KeyUsage::new().critical().digital_signature().build()?);
            found.push(ExtendedKeyUsage::new().server_auth().build()?);
            let mut alternatives = SubjectAlternativeName::new();
            for name in names {
                alternatives.dns(name);
            }
            found.push(alternatives.build(&context)?);
        }
    }
    Ok(found)
}

fn common_name(name: &str) -> Result<X509Name, ErrorStack> {
    let mut builder = X509NameBuilder::new()?;
    builder.append_entry_by_text("CN", name)?;
    Ok(builder.build())
}
