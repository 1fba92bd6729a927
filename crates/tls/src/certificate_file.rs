//! Certificates as files hold them: PEM, DER, PKCS #7.

use openssl::base64;
use openssl::pkcs7::Pkcs7;
use openssl::x509::X509;

use crate::Error;
use crate::error::identity;

/// The boundaries of PEM (RFC 7468 §3). A boundary is found where it is, also without a line end before it.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Returns the certificates of a file in its order, each in DER; at least one. A file in PKCS #7 has no
/// order: its certificates come with the server's own first.
///
/// # Errors
/// [`CallerError::Identity`](crate::CallerError::Identity): the file holds no certificate, or a broken one.
pub fn certificates_in(file: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let der = |one: &X509| one.to_der().map_err(crate::openssl_engine::failed);
    read(file)?.iter().map(der).collect()
}

/// As [`certificates_in`], as OpenSSL has them.
pub(crate) fn read(file: &[u8]) -> Result<Vec<X509>, Error> {
    let text = String::from_utf8_lossy(file);
    let mut certificates = Vec::new();
    let mut rest = text.as_ref();
    while let Some((label, content, behind)) = next_block(rest) {
        rest = behind;
        match label {
            "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => {
                certificates.push(certificate(&decoded(content)?)?);
            }
            "PKCS7" | "CMS" => certificates.extend(of_pkcs7(&decoded(content)?)?),
            // A private key, parameters.
            _ => {}
        }
    }
    if certificates.is_empty() {
        certificates = of_der(file)?;
    }
    Ok(certificates)
}

/// The first block of a text: its label, its content, and the text behind it.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    let (_, text) = text.split_once(BEGIN)?;
    let (label, text) = text.split_once(DASHES)?;
    let (content, text) = text.split_once(END)?;
    let (_, behind) = text.split_once(DASHES)?;
    Some((label, content, behind))
}

fn decoded(content: &str) -> Result<Vec<u8>, Error> {
    let digits: String = content.split_ascii_whitespace().collect();
    base64::decode_block(&digits).map_err(|_| broken())
}

/// A certificate. OpenSSL's trust settings may follow it (`TRUSTED CERTIFICATE`).
fn certificate(der: &[u8]) -> Result<X509, Error> {
    X509::from_der(der).map_err(|_| broken())
}

/// The certificates of a file in DER.
fn of_der(file: &[u8]) -> Result<Vec<X509>, Error> {
    // PFX of version 3 (RFC 7292 §4): a sequence whose first element is the integer 3.
    let is_pkcs12 = matches!(
        file,
        [0x30, 0x80, 2, 1, 3, ..] | [0x30, 0x81, _, 2, 1, 3, ..] | [0x30, 0x82, _, _, 2, 1, 3, ..]
    );
    if is_pkcs12 {
        return Err(identity(
            "it is in PKCS #12, which holds a private key too",
            "take the certificates out: `openssl pkcs12 -nokeys -in FILE -out chain.pem`",
        ));
    }
    if let Some(certificates) = in_a_row(file) {
        return Ok(certificates);
    }
    of_pkcs7(file).map_err(|_| {
        identity(
            "there is no certificate in it",
            "give a file in PEM, with lines `-----BEGIN CERTIFICATE-----`",
        )
    })
}

/// Certificates in DER, one behind the other; `None` if it is anything else.
fn in_a_row(mut der: &[u8]) -> Option<Vec<X509>> {
    let mut certificates = Vec::new();
    while !der.is_empty() {
        let one = X509::from_der(der).ok()?;
        der = der.get(one.to_der().ok()?.len()..)?;
        certificates.push(one);
    }
    (!certificates.is_empty()).then_some(certificates)
}

/// The certificates of a PKCS #7 file (RFC 2315 §9.1), each before its issuer.
fn of_pkcs7(der: &[u8]) -> Result<Vec<X509>, Error> {
    let file = Pkcs7::from_der(der).map_err(|_| broken())?;
    let all = file.signed().and_then(|signed| signed.certificates()).ok_or_else(broken)?;
    Ok(in_order(all.iter().map(ToOwned::to_owned).collect()))
}

/// A certificate that issued no other one, its issuer, and so on; then those that are left.
fn in_order(mut certificates: Vec<X509>) -> Vec<X509> {
    let names = |one: &X509| {
        (
            one.subject_name().to_der().unwrap_or_default(),
            one.issuer_name().to_der().unwrap_or_default(),
        )
    };
    let mut named: Vec<_> = certificates.drain(..).map(|one| (names(&one), one)).collect();
    let is_issuer = |subject: &Vec<u8>| {
        named.iter().any(|((own, issuer), _)| own != subject && issuer == subject)
    };
    let mut next = named.iter().position(|((subject, _), _)| !is_issuer(subject));
    let mut ordered = Vec::new();
    while let Some(at) = next {
        let ((_, issuer), one) = named.remove(at);
        ordered.push(one);
        next = named.iter().position(|((subject, _), _)| *subject == issuer);
    }
    ordered.extend(named.into_iter().map(|(_, one)| one));
    ordered
}

pub(crate) fn broken() -> Error {
    identity("a certificate in it cannot be read", "look at it with `openssl x509 -text -in FILE`")
}

#[cfg(test)]
mod tests {
    use fault::Explain;

    use super::*;
    use crate::{Identity, KeyType};

    /// Base64 in lines of 64 characters between boundaries.
    fn pem(label: &str, der: &[u8]) -> String {
        let digits = base64::encode_block(der);
        let lines: Vec<&str> =
            digits.as_bytes().chunks(64).filter_map(|line| str::from_utf8(line).ok()).collect();
        format!("{BEGIN}{label}-----\n{}\n{END}{label}-----", lines.join("\n"))
    }

    /// DER of a tag with this content, longer than 255 bytes.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82, length[0], length[1]], content].concat()
    }

    /// Signed data without signers around certificates, as `openssl crl2pkcs7 -nocrl` makes it.
    fn pkcs7(certificates: &[Vec<u8>]) -> Vec<u8> {
        const SIGNED: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
        const DATA: [u8; 13] = [0x30, 11, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];
        let content =
            [&[2, 1, 1, 0x31, 0][..], &DATA, &der(0xa0, &certificates.concat()), &[0x31, 0]];
        der(0x30, &[&SIGNED[..], &der(0xa0, &der(0x30, &content.concat()))].concat())
    }

    #[test]
    fn certificates_are_read_in_every_form() {
        let made = Identity::generate(KeyType::EcdsaP256, 3, &["server.test"]).unwrap();
        let chain = made.chain_der();
        let plain = made.chain_pem().unwrap();
        let joined = plain.trim_end().replace("-----\n-----BEGIN", "----------BEGIN");
        assert_ne!(joined, plain);
        // The trust settings are an empty sequence.
        let trusted = pem("TRUSTED CERTIFICATE", &[&chain[0][..], &[0x30, 0]].concat());
        let rest: Vec<String> = chain[1..].iter().map(|one| pem("X509 CERTIFICATE", one)).collect();
        let reversed: Vec<Vec<u8>> = chain.iter().rev().cloned().collect();
        let key = made.private_key_pem().unwrap();
        for (form, file) in [
            ("PEM", plain.clone()),
            ("PEM with CRLF", plain.replace('\n', "\r\n")),
            ("no line end between", joined),
            ("trusted", format!("{trusted}\n{}\n", rest.join("\n"))),
            ("with a key", format!("{key}words\n{plain}")),
            ("PKCS #7", pem("PKCS7", &pkcs7(chain))),
            ("PKCS #7, the root's issuer first", pem("PKCS7", &pkcs7(&reversed))),
        ] {
            assert_eq!(certificates_in(file.as_bytes()).unwrap(), chain, "{form}");
        }
        assert_eq!(certificates_in(&pkcs7(chain)).unwrap(), chain);
        assert_eq!(certificates_in(&chain[0]).unwrap(), chain[..1]);
        assert_eq!(certificates_in(&chain.concat()).unwrap(), chain);
        assert!(certificates_in(&[&chain[0][..], b"x"].concat()).is_err());
    }

    #[test]
    fn files_without_certificates_get_a_hint() {
        let problem = |file: &[u8]| certificates_in(file).unwrap_err().in_one_text();
        let made = Identity::generate(KeyType::EcdsaP256, 1, &["server.test"]).unwrap();
        let key = made.private_key_pem().unwrap();
        let cut = made.chain_pem().unwrap().replace("-----END", "");
        for nonsense in [&b""[..], b"x", key.as_bytes(), cut.as_bytes(), &[0x30, 0x82, 1, 1, 0]] {
            assert!(problem(nonsense).contains("no certificate in it"), "{}", problem(nonsense));
        }
        let pfx = der(0x30, &[&[2, 1, 3][..], &[0; 300]].concat());
        assert!(problem(&pfx).contains("openssl pkcs12 -nokeys"), "{}", problem(&pfx));
        let broken = made.chain_pem().unwrap().replacen("MII", "NII", 1);
        assert!(problem(broken.as_bytes()).contains("cannot be read"));
        assert!(problem(pem("PKCS7", b"x").as_bytes()).contains("cannot be read"));
    }
}
