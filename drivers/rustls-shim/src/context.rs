//! Contexts: rustls configurations with exactly what the harness asked for.

use std::ffi::CStr;
use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SignatureAlgorithm, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::store::Store;
use crate::{Fail, Library, abi, session};

/// `wt_context`: a configuration of rustls's, which all threads share.
pub enum Context {
    /// A client's, with what its sessions are held against.
    Client(Arc<ClientSide>),
    /// A server's, with its certificate and where it keeps sessions.
    Server(Arc<ServerConfig>),
}

/// What a client's connections and sessions have in common.
pub struct ClientSide {
    /// What rustls makes connections of, with the verifier of their certificates.
    pub config: Arc<ClientConfig>,
    /// The name to ask for and to verify.
    pub name: ServerName<'static>,
    /// Version, cipher suite, group, signature scheme, certificate's group, by what sessions are resumed.
    pins: [u32; 6],
    roots: Vec<u8>,
}

impl ClientSide {
    /// Whether both came of the same configuration.
    pub fn is_like(&self, other: &Self) -> bool {
        self.pins == other.pins && self.name == other.name && self.roots == other.roots
    }
}

impl Context {
    /// Makes what `config` describes.
    ///
    /// # Safety
    /// The pointers in `config` are null or as the header says.
    pub unsafe fn new<L: Library>(config: &abi::Config) -> Result<Self, Fail> {
        let version = match config.version {
            0x0303 => &rustls::version::TLS12,
            0x0304 => &rustls::version::TLS13,
            _ => return Err(Fail::Unsupported("rustls has TLS 1.2 and 1.3 only")),
        };
        if config.sessions > abi::SESSIONS_EXTERNAL {
            return Err(Fail::Unsupported("no such way to resume sessions"));
        }
        if config.sessions != abi::SESSIONS_TICKETS && config.version != 0x0303 {
            return Err(Fail::Unsupported("session IDs resume nothing in TLS 1.3"));
        }
        let provider = Arc::new(pinned(L::provider(), config)?);
        if config.server == 0 {
            // SAFETY: the caller's contract.
            unsafe { client(config, provider, version) }.map(|side| Self::Client(Arc::new(side)))
        } else {
            // SAFETY: the caller's contract.
            unsafe { server::<L>(config, provider, version) }
                .map(|config| Self::Server(Arc::new(config)))
        }
    }
}

/// The provider with one cipher suite, one group and one signature scheme.
fn pinned(mut provider: CryptoProvider, config: &abi::Config) -> Result<CryptoProvider, Fail> {
    provider.cipher_suites.retain(|suite| {
        u32::from(u16::from(suite.suite())) == config.cipher
            && u32::from(u16::from(suite.version().version)) == config.version
    });
    if provider.cipher_suites.is_empty() {
        return Err(Fail::Unsupported("rustls with this provider lacks the cipher suite"));
    }

    let all = std::mem::take(&mut provider.kx_groups);
    let find = |number: u32| {
        all.iter().copied().find(|group| u32::from(u16::from(group.name())) == number)
    };
    let group =
        find(config.group).ok_or(Fail::Unsupported("rustls with this provider lacks the group"))?;
    if config.version == 0x0303 && config.group == 0x11ec {
        return Err(Fail::Unsupported("the hybrid group came with TLS 1.3"));
    }
    provider.kx_groups.push(group);
    // RFC 8422 §5.1: in TLS 1.2 a client's groups are those of the server's certificate too.
    let second = config.certificate_group;
    if config.server == 0 && config.version == 0x0303 && second != 0 && second != config.group {
        let missing = Fail::Unsupported("rustls with this provider lacks the certificate's group");
        provider.kx_groups.push(find(second).ok_or(missing)?);
    }

    let schemes = provider.signature_verification_algorithms;
    let mapping = schemes.mapping;
    let at = mapping
        .iter()
        .position(|(scheme, _)| u32::from(u16::from(*scheme)) == config.signature)
        .ok_or(Fail::Unsupported("rustls with this provider lacks the signature scheme"))?;
    // The chain's own signatures are verified by any algorithm that the provider has.
    provider.signature_verification_algorithms = WebPkiSupportedAlgorithms {
        all: schemes.all,
        mapping: mapping.get(at..=at).unwrap_or_default(),
    };
    Ok(provider)
}

/// # Safety
/// `config.server_name` is null or ends by a zero byte.
unsafe fn server_name(config: &abi::Config) -> Result<ServerName<'static>, Fail> {
    if config.server_name.is_null() {
        return Err(Fail::Text("a client needs the server's name"));
    }
    // SAFETY: the caller's contract.
    let name = unsafe { CStr::from_ptr(config.server_name) };
    let name = name.to_str().map_err(|_| Fail::Text("the server's name is not text"))?;
    ServerName::try_from(name.to_owned())
        .map_err(|_| Fail::Text("the server's name is neither a DNS name nor an address"))
}

/// # Safety
/// `pem.text` is null or has `pem.len` bytes, for as long as the result is used.
unsafe fn bytes<'a>(pem: abi::Pem) -> &'a [u8] {
    if pem.text.is_null() {
        return &[];
    }
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts(pem.text.cast(), pem.len) }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Fail> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| Fail::Owned(format!("certificates: {error}")))?;
    if found.is_empty() { Err(Fail::Text("no certificate in the PEM text")) } else { Ok(found) }
}

/// # Safety
/// The PEM texts are as the header says.
unsafe fn client(
    config: &abi::Config,
    provider: Arc<CryptoProvider>,
    version: &'static SupportedProtocolVersion,
) -> Result<ClientSide, Fail> {
    // SAFETY: the caller's contract.
    let name = unsafe { server_name(config) }?;
    // SAFETY: the caller's contract.
    let pem = unsafe { bytes(config.roots) };
    let mut roots = RootCertStore::empty();
    for root in certificates(pem)? {
        roots.add(root)?;
    }
    let verifier: Arc<dyn ServerCertVerifier> =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| Fail::Owned(error.to_string()))?;
    let mut made = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])?
        .dangerous() // by this name goes any choice of a verifier; this one is the default
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(NoCertificate));
    made.resumption = if config.tickets == 0 {
        Resumption::disabled()
    } else {
        Resumption::store(Arc::new(session::Store))
    };
    if config.sessions != abi::SESSIONS_TICKETS {
        // Then no ticket is offered (RFC 5077 §3.2).
        made.resumption = made.resumption.tls12_resumption(Tls12Resumption::SessionIdOnly);
    }
    Ok(ClientSide {
        config: Arc::new(made),
        name,
        pins: [
            config.version,
            config.cipher,
            config.group,
            config.signature,
            config.certificate_group,
            config.sessions,
        ],
        roots: pem.to_vec(),
    })
}

/// # Safety
/// The PEM texts are as the header says.
unsafe fn server<L: Library>(
    config: &abi::Config,
    provider: Arc<CryptoProvider>,
    version: &'static SupportedProtocolVersion,
) -> Result<ServerConfig, Fail> {
    // SAFETY: the caller's contract.
    let chain = certificates(unsafe { bytes(config.chain) })?;
    // SAFETY: the caller's contract.
    let key = PrivateKeyDer::from_pem_slice(unsafe { bytes(config.key) })
        .map_err(|error| Fail::Owned(format!("private key: {error}")))?;
    let key = provider.key_provider.load_private_key(key)?;
    let scheme = u16::try_from(config.signature)
        .map(SignatureScheme::from)
        .map_err(|_| Fail::Unsupported("signature schemes have 16 bits"))?;
    if key.choose_scheme(&[scheme]).is_none() {
        return Err(Fail::Unsupported("the key cannot sign by this scheme"));
    }
    let identity = CertifiedKey::new(chain, Arc::new(OneScheme { key, scheme }));
    identity.keys_match()?;
    let mut made = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    made.session_storage = match config.sessions {
        abi::SESSIONS_CACHE => ServerSessionMemoryCache::new(abi::SESSIONS_HELD),
        abi::SESSIONS_EXTERNAL => Arc::new(Store::new(abi::SESSIONS_HELD)),
        _ => Arc::new(NoServerSessionStorage {}),
    };
    made.send_tls13_tickets = config.tickets as usize;
    if config.tickets > 0 && config.sessions == abi::SESSIONS_TICKETS {
        made.ticketer = L::ticketer()?;
    }
    Ok(made)
}

/// A key that signs by one scheme, whatever else the client offers.
#[derive(Debug)]
struct OneScheme {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

impl SigningKey for OneScheme {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        if offered.contains(&self.scheme) { self.key.choose_scheme(&[self.scheme]) } else { None }
    }

    fn public_key(&self) -> Option<rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

/// A client without a certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesClientCert for NoCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}
