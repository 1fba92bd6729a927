//! The TLS configuration of a run, and each worker's own copy of it.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use rustls_pki_types::{CertificateDer, ServerName};
use tls::{AcceptAnyCertificate, Group, Trust, Version};

use crate::certificate::Shown;
use crate::tickets::ThreadTickets;
use crate::verify::Remembering;
use crate::{Error, Options};

/// The TLS configuration of a worker, for who sets the generator beside its library alone.
///
/// # Errors
/// As [`crate::run()`].
pub fn client_config(options: &Options) -> Result<Arc<ClientConfig>, Error> {
    options.check()?;
    Template::new(options)?.configure()
}

/// What the workers share to make their configurations: the roots are read once.
#[derive(Debug)]
pub(crate) struct Template<'a> {
    options: &'a Options,
    roots: Option<Arc<RootCertStore>>,
    pub(crate) name: ServerName<'static>,
}

impl<'a> Template<'a> {
    pub(crate) fn new(options: &'a Options) -> Result<Template<'a>, Error> {
        let name = ServerName::try_from(options.server_name.clone())
            .map_err(|_| Error::ServerName(options.server_name.clone()))?;
        let roots = match &options.trust {
            Trust::Insecure | Trust::Unchecked => None,
            Trust::System => Some(system_roots()?),
            Trust::Roots(roots) => Some(given_roots(roots)?),
        };
        Ok(Template { options, roots: roots.map(Arc::new), name })
    }

    /// A configuration that shares nothing which is counted or locked with another one's.
    pub(crate) fn configure(&self) -> Result<Arc<ClientConfig>, Error> {
        let provider = Arc::new(self.provider());
        let wrong = |cause: &dyn std::fmt::Display| Error::Options(cause.to_string());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.roots {
            None => Arc::new(AcceptAnyCertificate::new(Arc::clone(&provider))),
            Some(roots) => {
                let (roots, provider) = (Arc::clone(roots), Arc::clone(&provider));
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider);
                Arc::new(Remembering(verifier.build().map_err(|cause| wrong(&cause))?))
            }
        };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions())
            .map_err(|cause| wrong(&cause))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(Shown::new(
                self.options.client_certificate.as_ref(),
            )));
        config.alpn_protocols = self.options.protocols();
        config.resumption = Resumption::store(Arc::new(ThreadTickets));
        Ok(Arc::new(config))
    }

    fn provider(&self) -> CryptoProvider {
        let default = aws_lc_rs::default_provider();
        let suites = &self.options.suites;
        CryptoProvider {
            cipher_suites: if suites.is_empty() {
                cheapest_first(default.cipher_suites)
            } else {
                suites.iter().map(|suite| suite.inner()).collect()
            },
            kx_groups: self.options.groups.iter().map(|group| kx_group_of(*group)).collect(),
            ..default
        }
    }

    fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let versions = self.options.versions.iter();
        versions
            .map(|version| match version {
                Version::Tls12 => &rustls::version::TLS12,
                Version::Tls13 => &rustls::version::TLS13,
            })
            .collect()
    }
}

/// AES-128-GCM with SHA-256 before the others: as good for a measurement, and less work than the
/// SHA-384 that rustls would rather have.
fn cheapest_first(mut suites: Vec<SupportedCipherSuite>) -> Vec<SupportedCipherSuite> {
    let cheap = [
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ];
    suites.sort_by_key(|suite| !cheap.contains(suite));
    suites
}

fn kx_group_of(group: Group) -> &'static dyn SupportedKxGroup {
    match group {
        Group::X25519 => kx_group::X25519,
        Group::Secp256r1 => kx_group::SECP256R1,
        Group::X25519MlKem768 => kx_group::X25519MLKEM768,
    }
}

fn given_roots(roots: &[Vec<u8>]) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for root in roots {
        let root = CertificateDer::from(root.as_slice()).into_owned();
        store.add(root).map_err(|cause| Error::Trust(cause.to_string()))?;
    }
    if store.is_empty() {
        return Err(Error::Trust("no root is trusted, so no server can be".to_owned()));
    }
    Ok(store)
}

/// `SSL_CERT_FILE` and `SSL_CERT_DIR` are obeyed.
fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let cause = found.errors.first().map_or_else(String::new, |cause| format!(": {cause}"));
        return Err(Error::NoRoots { cause });
    }
    Ok(store)
}
