//! Certificates made on the spot.

use core::fmt;

use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::x509::X509;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, DnValue,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PKCS_RSA_SHA256, RsaKeySize,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::config;
use crate::{Error, KeyType, Library, StandIn};

/// Longest chain that is made.
pub const MAX_CHAIN: usize = 10;

/// A server's private key and certificate chain, with the root that signs it if it was made here.
/// `Debug` hides the key.
pub struct Identity {
    key_type: Option<KeyType>,
    key: Key,
    chain: Vec<Vec<u8>>,
    root: Option<Vec<u8>>,
}

/// What signs handshakes for a certificate.
enum Key {
    /// A private key in PKCS #8 DER.
    Private(Vec<u8>),
    /// Nothing that could: bytes of the right number.
    StandIn(StandIn),
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Validity {
    /// From 1975 to the end of 2049: the last year that UTCTime can say (RFC 5280 §4.1.2.5.1), and
    /// some libraries' clocks.
    Current,
    /// From 1975 to 2000.
    Expired,
}

impl Identity {
    /// Makes a root that is trusted but not sent, and a chain of `chain_len` certificates that are
    /// sent: a leaf for `names` (DNS names or IP addresses) and `chain_len - 1` intermediates. All keys
    /// are of `key_type`.
    ///
    /// Costly: it makes `chain_len + 1` keys, and an RSA key of 4096 bits takes a second or more of
    /// CPU time. Make one and share it.
    ///
    /// # Errors
    /// [`Error::Caller`] when `chain_len` is not 1 to [`MAX_CHAIN`] or a name is none;
    /// [`Error::Library`] when no key can be made.
    pub fn generate(key_type: KeyType, chain_len: usize, names: &[&str]) -> Result<Self, Error> {
        Self::generate_with(key_type, chain_len, names, Validity::Current)
    }

    /// As [`Identity::generate`], with the leaf's validity chosen.
    ///
    /// # Errors
    /// As [`Identity::generate`].
    pub fn generate_with(
        key_type: KeyType,
        chain_len: usize,
        names: &[&str],
        validity: Validity,
    ) -> Result<Self, Error> {
        can_be_made(chain_len, names)?;
        let root_key = generate_key(key_type)?;
        let mut issuer =
            CertifiedIssuer::self_signed(authority("root", &root_key), root_key).map_err(failed)?;
        let root_der = issuer.der().to_vec();
        let mut intermediates = Vec::new();
        for number in 1..chain_len {
            let key = generate_key(key_type)?;
            let params = authority(&format!("intermediate {number}"), &key);
            issuer = CertifiedIssuer::signed_by(params, key, &issuer).map_err(failed)?;
            intermediates.push(issuer.der().to_vec());
        }
        let key = generate_key(key_type)?;
        let leaf = leaf(key_type, names, validity)?.signed_by(&key, &issuer).map_err(failed)?;
        // RFC 8446 §4.4.2: the end entity first, each next certifies the one before.
        let mut chain = vec![leaf.der().to_vec()];
        chain.extend(intermediates.into_iter().rev());
        let (key, root) = (Key::Private(key.serialize_der()), Some(root_der));
        Ok(Self { key_type: Some(key_type), key, chain, root })
    }

    /// A key in PKCS #8 DER and a chain, leaf first, that came from elsewhere; its root, if it is known.
    pub(crate) fn from_parts(
        key_type: Option<KeyType>,
        key: Vec<u8>,
        chain: Vec<Vec<u8>>,
        root: Option<Vec<u8>>,
    ) -> Self {
        Self { key_type, key: Key::Private(key), chain, root }
    }

    /// A stranger's chain, leaf first, shown without its key: every message has the length that the
    /// stranger's own would have, and the signature verifies for nobody but [`crate::Trust::Unchecked`].
    /// rustls only. To measure what a chain costs on a path, and for nothing else.
    #[must_use]
    pub fn stand_in(chain: Vec<Vec<u8>>, key: StandIn) -> Self {
        Self { key_type: None, key: Key::StandIn(key), chain, root: None }
    }

    /// What stands in for its key, if it has none.
    pub(crate) fn standing_in(&self) -> Option<StandIn> {
        match self.key {
            Key::StandIn(key) => Some(key),
            Key::Private(_) => None,
        }
    }

    /// The type of its key, if it is one of those that are made here.
    pub fn key_type(&self) -> Option<KeyType> {
        self.key_type
    }

    /// The certificates that are sent, leaf first, in DER.
    pub fn chain_der(&self) -> &[Vec<u8>] {
        &self.chain
    }

    /// The root to trust, in DER: the argument of [`crate::Trust::Roots`]. None of an identity that
    /// was read from files.
    pub fn roots(&self) -> Vec<Vec<u8>> {
        self.root.iter().cloned().collect()
    }

    /// The leaf's key as browsers are given it to trust: SHA-256 of its SubjectPublicKeyInfo, in base64
    /// (RFC 7469 §2.4).
    ///
    /// # Errors
    /// The leaf cannot be read.
    pub fn key_pin(&self) -> Result<String, Error> {
        let pin = |leaf: &[u8]| -> Result<String, ErrorStack> {
            let key = X509::from_der(leaf)?.public_key()?.public_key_to_der()?;
            Ok(openssl::base64::encode_block(&openssl::sha::sha256(&key)))
        };
        pin(self.chain.first().map_or(&[], Vec::as_slice)).map_err(pem_failed)
    }

    /// The private key in PKCS #8 DER, for a program of another process; empty where something stands in
    /// for it. A secret.
    pub fn private_key_der(&self) -> &[u8] {
        match &self.key {
            Key::Private(key) => key,
            Key::StandIn(_) => &[],
        }
    }

    /// The certificates that are sent in PEM, leaf first, for another program's configuration.
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn chain_pem(&self) -> Result<String, Error> {
        self.chain.iter().map(|der| certificate_pem(der)).collect()
    }

    /// The root to trust in PEM.
    ///
    /// # Errors
    /// [`Error::Caller`] for an identity that was read from files; [`Error::Library`] when memory is
    /// short.
    pub fn root_pem(&self) -> Result<String, Error> {
        match &self.root {
            Some(root) => certificate_pem(root),
            None => Err(config("the root of an identity that was read from files is not known")),
        }
    }

    /// The private key in PEM (PKCS #8). A secret.
    ///
    /// # Errors
    /// [`Error::Library`] when memory is short.
    pub fn private_key_pem(&self) -> Result<String, Error> {
        let key = PKey::private_key_from_pkcs8(self.private_key_der()).map_err(pem_failed)?;
        text(key.private_key_to_pem_pkcs8())
    }

    pub(crate) fn rustls_chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.iter().cloned().map(CertificateDer::from).collect()
    }

    pub(crate) fn rustls_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.private_key_der().to_vec()).into()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<_> = self.chain.iter().map(Vec::len).collect();
        f.debug_struct("Identity")
            .field("key_type", &self.key_type)
            .field("chain_der_lengths", &lengths)
            .finish_non_exhaustive()
    }
}

fn generate_key(key_type: KeyType) -> Result<KeyPair, Error> {
    match key_type {
        KeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyType::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        KeyType::EcdsaP256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
    }
    .map_err(failed)
}

/// A certificate authority, named by its role and its key, so that two identities' roots are told apart
/// (RFC 5280 §4.1.2.4: a name is one authority's).
/// Whether there is an identity with so many certificates and these names.
pub(crate) fn can_be_made(chain_len: usize, names: &[&str]) -> Result<(), Error> {
    if !(1..=MAX_CHAIN).contains(&chain_len) {
        return Err(config(format!("a chain has 1 to {MAX_CHAIN} certificates, not {chain_len}")));
    }
    if names.is_empty() {
        return Err(config("a certificate needs a name"));
    }
    Ok(())
}

fn authority(role: &str, key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mark: String =
        params.key_identifier(key).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = format!("Wiretax {role} {mark}");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(name));
    params.not_after = rcgen::date_time_ymd(2049, 12, 31);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.use_authority_key_identifier_extension = true;
    params
}

fn leaf(key_type: KeyType, names: &[&str], validity: Validity) -> Result<CertificateParams, Error> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names)
        .map_err(|error| config(format!("a certificate cannot carry such a name: {error}")))?;
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, DnValue::Utf8String("Wiretax server".into()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    if key_type.is_rsa() {
        // RFC 5246 §7.4.2: RSA key exchange needs keyEncipherment.
        params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_after = match validity {
        Validity::Current => rcgen::date_time_ymd(2049, 12, 31),
        Validity::Expired => rcgen::date_time_ymd(2000, 1, 1),
    };
    Ok(params)
}

fn certificate_pem(der: &[u8]) -> Result<String, Error> {
    text(X509::from_der(der).and_then(|certificate| certificate.to_pem()))
}

fn text(pem: Result<Vec<u8>, ErrorStack>) -> Result<String, Error> {
    String::from_utf8(pem.map_err(pem_failed)?).map_err(pem_failed)
}

fn pem_failed(cause: impl fmt::Display) -> Error {
    Error::Library { library: Library::OpenSsl, detail: format!("PEM: {cause}") }
}

fn failed(error: rcgen::Error) -> Error {
    Error::Library { library: Library::Rustls, detail: format!("certificate: {error}") }
}
