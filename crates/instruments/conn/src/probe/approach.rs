//! The way to a target: its name in TLS, the first hop, what comes before TLS.

use std::sync::Arc;

use super::report::{BeforeTls, Verdict};
use super::{ProbeError, Target, resolve};
use crate::Failure;
use crate::opening::Opening;

impl Target {
    /// The name that TLS asks for.
    pub(super) fn name(&self) -> &str {
        resolve::bare(self.server_name.as_deref().unwrap_or(&self.host))
    }

    /// Host and port of the TCP connection: those of the proxy, if there is one.
    pub(super) fn hop(&self) -> (&str, u16) {
        match &self.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (resolve::bare(&self.host), self.port),
        }
    }

    /// Returns the dialogs before TLS, if any.
    pub(super) fn opening(&self) -> Option<Arc<Opening>> {
        let Target { proxy, starttls, port, .. } = self;
        (proxy.is_some() || starttls.is_some()).then(|| {
            Arc::new(Opening {
                proxy: proxy.clone(),
                starttls: *starttls,
                host: resolve::bare(&self.host).to_owned(),
                port: *port,
                name: self.name().to_owned(),
            })
        })
    }

    /// The steps before TLS, for the report.
    pub(super) fn before_tls(&self) -> Option<BeforeTls> {
        let Target { proxy, starttls, port, .. } = self;
        (proxy.is_some() || starttls.is_some()).then(|| BeforeTls {
            proxy: proxy.as_ref().map(ToString::to_string),
            port: proxy.as_ref().map(|_| *port),
            starttls: starttls.map(|protocol| protocol.name().to_owned()),
        })
    }

    /// The client of every connection, before it is said what it offers.
    pub(super) fn client(&self, library: tls::Library) -> tls::ClientConfig {
        let config = tls::ClientConfig::new(library, self.name(), self.trust.clone());
        tls::ClientConfig { identity: self.identity.clone(), ..config }
    }

    /// The application protocols of a web client; none with STARTTLS, which has named its own already.
    pub(super) fn alpn(&self, names: &[&[u8]]) -> Vec<Vec<u8>> {
        match self.starttls {
            Some(_) => Vec::new(),
            None => names.iter().map(|name| name.to_vec()).collect(),
        }
    }

    /// Leaves out a mode in which nothing may come before TLS. `why` is a sentence that ends with the
    /// names of what comes.
    pub(super) fn begins_with_tls(&self, why: &str) -> Result<(), Verdict> {
        let what = match (&self.proxy, self.starttls) {
            (None, None) => return Ok(()),
            (Some(_), None) => "proxy",
            (None, Some(_)) => "STARTTLS",
            (Some(_), Some(_)) => "proxy or STARTTLS",
        };
        Err(Verdict::NotTested { reason: format!("left out: {why} {what}") })
    }

    /// Leaves out a mode with a request of HTTP.
    pub(super) fn speaks_http(&self) -> Result<(), Verdict> {
        let Some(protocol) = self.starttls else { return Ok(()) };
        let reason = format!("left out: the request is of HTTP, not of {}", protocol.title());
        Err(Verdict::NotTested { reason })
    }

    /// The error of a host that no attempt reached.
    pub(super) fn unreached(&self, failure: Option<Failure>) -> ProbeError {
        let failure = failure.unwrap_or(Failure::Protocol("has no address"));
        match (&failure, &self.proxy) {
            (Failure::Starttls(_) | Failure::Proxy(_), _) => {
                ProbeError::Opening { host: self.host.clone(), port: self.port, failure }
            }
            (_, Some(proxy)) => {
                let host = format!("the proxy {}", proxy.host);
                ProbeError::NoConnection { host, port: proxy.port, failure }
            }
            (_, None) => {
                ProbeError::NoConnection { host: self.host.clone(), port: self.port, failure }
            }
        }
    }
}
