//! What a client and a server are told.

use core::fmt;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;

use crate::error::{config, no_group_for};
use crate::offer::{Offer, Witness};
use crate::stand_in::unsupported;
use crate::{
    CallerError, ClientIdentity, Compression, Error, Group, Identity, KeyExchange, KeyType,
    Library, Version,
};

/// Where lines in the SSLKEYLOGFILE format go (draft-ietf-tls-keylogfile). They are secrets: whoever
/// reads them reads the connection.
#[derive(Clone)]
pub struct KeyLog(Arc<dyn Fn(&str) + Send + Sync>);

impl KeyLog {
    /// Every line is given to `sink`, without a line end.
    pub fn new(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    pub(crate) fn line(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog")
    }
}

/// What the client trusts a server's certificate by.
#[derive(Clone, Debug)]
pub enum Trust {
    /// These root certificates (DER), and no other.
    Roots(Vec<Vec<u8>>),
    /// What the system trusts.
    System,
    /// Dangerous: any certificate is accepted, for any name. Only to measure a server whose certificate
    /// is known to be wrong; nothing secret may be sent.
    Insecure,
    /// Dangerous: as `Insecure`, and the server need not even hold the certificate's key. Only to measure a
    /// chain whose key is not there ([`Identity::stand_in`]). rustls only.
    Unchecked,
}

/// What a client offers. [`ClientConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The library that the client runs.
    pub library: Library,
    /// The versions offered, at least one.
    pub versions: Vec<Version>,
    /// The key exchange of TLS 1.2.
    pub key_exchange: KeyExchange,
    /// The groups offered, preferred first. TLS 1.2 uses those that it knows; there they also say which
    /// curves a certificate may be on, so that a server with an ECDSA P-256 key is found only with
    /// [`Group::Secp256r1`] among them, at least as the last (RFC 8422 §5.1).
    pub groups: Vec<Group>,
    /// How many of `groups`, from the first, get a key share in the ClientHello (RFC 8446 §4.2.8); at
    /// least 1. A server that knows only a later group answers by HelloRetryRequest.
    pub key_shares: usize,
    /// The application protocols offered, preferred first; none sends no ALPN extension.
    pub alpn: Vec<Vec<u8>>,
    /// The DNS name or IP address that the certificate must carry; a DNS name is sent as SNI (RFC 6066 §3).
    pub server_name: String,
    /// What the certificate is verified by.
    pub trust: Trust,
    /// Whether early data may be sent with a ticket that allows it (RFC 8446 §4.2.10). rustls then offers
    /// it in every such ClientHello, OpenSSL only when [`crate::Session::send_early`] was called.
    pub early_data: bool,
    /// How the server may compress its certificates, preferred first (RFC 8879 §3); rustls only.
    pub compression: Vec<Compression>,
    /// The client's certificate and key, for servers that ask for one; without, it sends an empty list.
    pub identity: Option<ClientIdentity>,
    /// Where the secrets go, if anywhere.
    pub key_log: Option<KeyLog>,
    /// The cipher suites and groups offered.
    pub offer: Offer,
    /// Whether the hello carries no SNI.
    pub nameless: bool,
    /// Where notes of the connection go, if anywhere.
    pub witness: Option<Witness>,
}

impl ClientConfig {
    /// TLS 1.3 only, X25519 before P-256, one key share, no ALPN, no early data, no compression, no
    /// certificate, no key log.
    pub fn new(library: Library, server_name: &str, trust: Trust) -> Self {
        Self {
            library,
            versions: vec![Version::Tls13],
            key_exchange: KeyExchange::Ecdhe,
            groups: vec![Group::X25519, Group::Secp256r1],
            key_shares: 1,
            alpn: Vec::new(),
            server_name: server_name.to_owned(),
            trust,
            early_data: false,
            compression: Vec::new(),
            identity: None,
            key_log: None,
            offer: Offer::Pinned,
            nameless: false,
            witness: None,
        }
    }
}

/// What a server accepts. [`ServerConfig::new`] has the defaults.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The library that the server runs.
    pub library: Library,
    /// The versions accepted, at least one.
    pub versions: Vec<Version>,
    /// The key exchange of TLS 1.2.
    pub key_exchange: KeyExchange,
    /// The groups accepted, preferred first. TLS 1.2 with an ECDSA P-256 key needs [`Group::Secp256r1`]
    /// among them in OpenSSL.
    pub groups: Vec<Group>,
    /// Key and chain.
    pub identity: Arc<Identity>,
    /// The application protocols accepted, preferred first; none ignores what the client offers. With
    /// some, a client that offers only others is refused (RFC 7301 §3.2).
    pub alpn: Vec<Vec<u8>>,
    /// Whether sessions can be resumed: one ticket a connection.
    pub tickets: bool,
    /// Early data accepted on a resumed connection, in bytes; 0 accepts none. Needs `tickets` and TLS 1.3.
    /// Against replay the server then remembers its sessions and takes each once (RFC 8446 §8.1); without
    /// early data its tickets are stateless.
    pub max_early_data: u32,
    /// How certificates are compressed for clients that offer it, preferred first; rustls only.
    pub compression: Vec<Compression>,
    /// Where the secrets go, if anywhere.
    pub key_log: Option<KeyLog>,
}

impl ServerConfig {
    /// TLS 1.3 only, X25519 before P-256, tickets, no ALPN, no early data, no compression, no key log.
    pub fn new(library: Library, identity: Arc<Identity>) -> Self {
        Self {
            library,
            versions: vec![Version::Tls13],
            key_exchange: KeyExchange::Ecdhe,
            groups: vec![Group::X25519, Group::Secp256r1],
            identity,
            alpn: Vec::new(),
            tickets: true,
            max_early_data: 0,
            compression: Vec::new(),
            key_log: None,
        }
    }
}

impl ClientConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_common(&self.versions, self.key_exchange, &self.groups, &self.alpn)?;
        if !(1..=self.groups.len()).contains(&self.key_shares) {
            let (shares, groups) = (self.key_shares, self.groups.len());
            return Err(config(format!("key_shares is {shares}, and it can be 1 to {groups}")));
        }
        check_rustls(self.library, &self.compression)?;
        self.check_offer()?;
        if self.library == Library::OpenSsl && matches!(self.trust, Trust::Unchecked) {
            return Err(unsupported("a handshake whose signature is not checked"));
        }
        if let Trust::Roots(roots) = &self.trust
            && roots.is_empty()
        {
            return Err(config("no root is trusted, so no server can be"));
        }
        // RFC 6066 §3: an IP address is no SNI, but a certificate can carry one.
        let name = self.server_name.clone();
        match rustls_pki_types::ServerName::try_from(name.clone()) {
            Ok(_) => Ok(()),
            Err(_) => Err(CallerError::ServerName(name).into()),
        }
    }
}

impl ClientConfig {
    fn check_offer(&self) -> Result<(), Error> {
        let groups = match &self.offer {
            Offer::Pinned => return Ok(()),
            Offer::Browser(_) | Offer::Everything { .. } if self.library == Library::Rustls => {
                return Err(CallerError::Unsupported {
                    library: Library::Rustls,
                    feature: "suites and groups of older clients",
                    hint: "use OpenSSL",
                }
                .into());
            }
            Offer::Usual(groups) | Offer::Browser(groups) | Offer::Everything { groups, .. } => {
                groups
            }
        };
        if groups.is_empty() {
            return Err(config("no group is chosen"));
        }
        if (1..groups.len()).any(|at| groups[..at].contains(&groups[at])) {
            return Err(config("a group is named twice"));
        }
        Ok(())
    }
}

impl ServerConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_common(&self.versions, self.key_exchange, &self.groups, &self.alpn)?;
        let tls12 = self.versions.contains(&Version::Tls12);
        if tls12 && self.key_exchange == KeyExchange::Rsa && !self.has_rsa_key() {
            return Err(config("RSA key exchange needs an RSA key"));
        }
        if tls12
            && self.library == Library::OpenSsl
            && self.identity.key_type() == Some(KeyType::EcdsaP256)
            && !self.groups.contains(&Group::Secp256r1)
        {
            return Err(config(
                "OpenSSL uses an ECDSA P-256 key with TLS 1.2 only when secp256r1 is among the groups; \
                 add it as the last, on the client too (RFC 8422 §5.1)",
            ));
        }
        check_rustls(self.library, &self.compression)?;
        if self.library == Library::OpenSsl && self.identity.standing_in().is_some() {
            return Err(unsupported("a chain without its key"));
        }
        if self.max_early_data > 0 && !(self.tickets && self.versions.contains(&Version::Tls13)) {
            return Err(config("early data needs tickets and TLS 1.3"));
        }
        Ok(())
    }

    fn has_rsa_key(&self) -> bool {
        self.identity.key_type().is_some_and(KeyType::is_rsa)
    }
}

/// The linked OpenSSL is built without RFC 8879's algorithms.
fn check_rustls(library: Library, compression: &[Compression]) -> Result<(), Error> {
    if library == Library::OpenSsl && !compression.is_empty() {
        return Err(unsupported("certificate compression (RFC 8879)"));
    }
    Ok(())
}

/// The system's roots, the same for both libraries: the linked OpenSSL has no directory of its own on the
/// system. `SSL_CERT_FILE` and `SSL_CERT_DIR` are obeyed.
pub(crate) fn system_roots() -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let cause = found.errors.first().map_or_else(String::new, |cause| format!(": {cause}"));
        return Err(Error::NoRoots { cause });
    }
    Ok(found.certs)
}

fn check_common(
    versions: &[Version],
    key_exchange: KeyExchange,
    groups: &[Group],
    alpn: &[Vec<u8>],
) -> Result<(), Error> {
    if versions.is_empty() {
        return Err(config("no TLS version is chosen"));
    }
    if groups.is_empty() {
        return Err(config("no group is chosen"));
    }
    if (1..groups.len()).any(|at| groups[..at].contains(&groups[at])) {
        return Err(config("a group is named twice"));
    }
    let ecdhe12 = versions.contains(&Version::Tls12) && key_exchange == KeyExchange::Ecdhe;
    // The hybrid group is defined for TLS 1.3 only.
    if ecdhe12 && groups.iter().all(|&group| group == Group::X25519MlKem768) {
        return Err(no_group_for(Version::Tls12, groups));
    }
    // RFC 7301 §3.1: a protocol name is 1 to 255 bytes.
    if alpn.iter().any(|name| !(1..=255).contains(&name.len())) {
        return Err(config("an ALPN protocol name has 1 to 255 bytes"));
    }
    Ok(())
}
