//! Certificates for WPA2-Enterprise, made on the spot.

use daemons::Certificates;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

/// An authority, and what it says of a server and of a station.
pub(crate) fn make() -> Result<Certificates, rcgen::Error> {
    let mut authority = named("authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let issuer = CertifiedIssuer::self_signed(authority, key()?)?;
    let signed = |name: &str, usage| -> Result<(String, String), rcgen::Error> {
        let mut params = named(name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = key()?;
        Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
    };
    Ok(Certificates {
        server: signed("server", ExtendedKeyUsagePurpose::ServerAuth)?,
        client: signed("host", ExtendedKeyUsagePurpose::ClientAuth)?,
        authority: issuer.pem(),
    })
}

fn key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_after = rcgen::date_time_ymd(2049, 12, 31);
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_certificates_and_keys_of_their_own() {
        let made = make().unwrap();
        for text in [&made.authority, &made.server.0, &made.client.0] {
            assert!(text.starts_with("-----BEGIN CERTIFICATE-----"), "{text}");
        }
        assert_ne!(made.server.1, made.client.1);
    }
}
