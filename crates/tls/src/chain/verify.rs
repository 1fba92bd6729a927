//! What the libraries' own verifiers say of a chain.

use core::time::Duration;
use std::net::IpAddr;
use std::sync::Arc;

use openssl::error::ErrorStack;
use openssl::stack::Stack;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509VerifyParam;
use openssl::x509::{X509, X509PurposeId, X509StoreContext};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde::Serialize;

use super::Chain;
use crate::config::system_roots;
use crate::openssl_engine::failed;
use crate::{CertificateFault, Error, Library, Trust};

/// What a library says of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The library whose verifier says it.
    pub library: Library,
    /// Why it refuses the chain, in its own words; `None` if it does not.
    pub refused: Option<String>,
}

/// A cause without the lists that rustls puts behind some: of every algorithm that it knows.
fn in_short(cause: &str) -> String {
    cause.split_once(" {").map_or(cause, |(what, _)| what).trim_end_matches("Context").to_owned()
}

impl Chain {
    /// What each library's verifier says of the chain, for a server of this name at a time in seconds since
    /// 1970: what a client would, that trusts so.
    ///
    /// # Errors
    /// [`Error::NoRoots`]; [`Error::Caller`] for a trust that is none; [`Error::Library`] when memory is
    /// short.
    pub fn verify(&self, trust: &Trust, name: &str, now: i64) -> Result<Vec<Verdict>, Error> {
        let roots = match trust {
            Trust::Roots(roots) => roots.clone(),
            Trust::System => system_roots()?.iter().map(|root| root.to_vec()).collect(),
            Trust::Insecure | Trust::Unchecked => Vec::new(),
        };
        let by_openssl = self.by_openssl(&roots, name, now).map_err(failed)?;
        let by_rustls = self.by_rustls(&roots, name, now)?;
        Ok(vec![
            Verdict { library: Library::Rustls, refused: by_rustls },
            Verdict { library: Library::OpenSsl, refused: by_openssl },
        ])
    }

    fn by_openssl(
        &self,
        roots: &[Vec<u8>],
        name: &str,
        now: i64,
    ) -> Result<Option<String>, ErrorStack> {
        let mut store = X509StoreBuilder::new()?;
        for root in roots {
            // The system may hold what this library cannot read.
            if let Ok(root) = X509::from_der(root) {
                store.add_cert(root)?;
            }
        }
        let mut param = X509VerifyParam::new()?;
        match name.parse::<IpAddr>() {
            Ok(address) => param.set_ip(address)?,
            Err(_) => param.set_host(name)?,
        }
        param.set_time(now);
        param.set_purpose(X509PurposeId::SSL_SERVER)?;
        store.set_param(&param)?;
        let store = store.build();
        let mut others = Stack::new()?;
        for certificate in self.certificates.iter().skip(1) {
            others.push(certificate.clone())?;
        }
        let Some(leaf) = self.certificates.first() else { return Ok(None) };
        let mut context = X509StoreContext::new()?;
        context.init(&store, leaf, &others, |context| {
            let good = context.verify_cert()?;
            Ok((!good).then(|| context.error().error_string().to_owned()))
        })
    }

    fn by_rustls(&self, roots: &[Vec<u8>], name: &str, now: i64) -> Result<Option<String>, Error> {
        Ok(self.refused_by_rustls(roots, name, now)?.map(|(_, detail)| in_short(&detail)))
    }

    /// Why rustls refuses the chain: the kind, and its own words.
    pub(super) fn refused_by_rustls(
        &self,
        roots: &[Vec<u8>],
        name: &str,
        now: i64,
    ) -> Result<Option<(CertificateFault, String)>, Error> {
        let other = |detail: String| Ok(Some((CertificateFault::Other, detail)));
        let mut store = RootCertStore::empty();
        let roots = roots.iter().map(|root| CertificateDer::from(root.as_slice()));
        store.add_parsable_certificates(roots);
        if store.is_empty() {
            return other("no root of those that are trusted can be read".to_owned());
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .map_err(|cause| crate::error::config(format!("trust: {cause}")))?;
        let Ok(name) = ServerName::try_from(name.to_owned()) else {
            return other(format!("`{name}` is neither a DNS name nor an IP address"));
        };
        let der = self.der()?;
        let mut der = der.iter().map(|der| CertificateDer::from(der.as_slice()));
        let Some(leaf) = der.next() else { return Ok(None) };
        let others: Vec<_> = der.collect();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or(0)));
        let verified = verifier.verify_server_cert(&leaf, &others, &name, &[], now);
        Ok(verified.err().map(|cause| {
            let detail = cause.to_string();
            match crate::rustls_engine::error(cause) {
                Error::Certificate(error) => (error.reason, detail),
                _ => (CertificateFault::Other, detail),
            }
        }))
    }
}
