//! The measurement against a live server, from the user's own machine and without root.
//!
//! It makes a small, bounded number of connections, one after another with a pause between them. The
//! handshakes are complete and nothing is asked, except by the connections that measure early data: they
//! send `HEAD / HTTP/1.1`, which changes nothing on a server and may be replayed (RFC 8446 §8).
//!
//! What it offers is what the studies measure: TLS 1.2 with ECDHE, TLS 1.3, AES-128-GCM, X25519 and
//! P-256. A server that knows only other suites or groups is refused there; [`OfferReport`] says what a
//! client with today's usual offer gets.

mod approach;
pub(crate) mod certificate;
mod look;
mod prober;
mod report;
mod resolve;

pub use report::{
    BeforeTls, CertificateReport, Dns, Mode, ModeReport, OfferReport, PathReport, ProbeSample,
    REPORT_SCHEMA, Report, Summary, Verdict, Versions,
};
pub use resolve::Family;

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use starttls::{Protocol, proxy};
use thiserror::Error;

use crate::Failure;

/// Most repeats of each mode.
pub const MAX_REPEATS: u32 = 10;

/// What to probe.
#[derive(Debug, Clone)]
pub struct Target {
    /// A name or an address.
    pub host: String,
    /// The port, of TCP and of UDP.
    pub port: u16,
    /// Which addresses of the host to use.
    pub family: Family,
    /// The name to ask for in TLS, if it is not the host.
    pub server_name: Option<String>,
    /// What the server's certificate must lead to.
    pub trust: tls::Trust,
    /// The client's own certificate and key, for a server that asks for one.
    pub identity: Option<tls::ClientIdentity>,
    /// The protocol that changes to TLS; `None` begins with TLS.
    pub starttls: Option<Protocol>,
    /// The proxy that opens the TCP connections, and resolves the host's name.
    pub proxy: Option<proxy::Address>,
}

impl Target {
    /// `host` at port 443, verified by what the system trusts.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Target {
            host: host.to_owned(),
            port: 443,
            family: Family::Any,
            server_name: None,
            trust: tls::Trust::System,
            identity: None,
            starttls: None,
            proxy: None,
        }
    }
}

/// How to probe.
#[derive(Debug, Clone)]
pub struct Options {
    /// Connections counted of each mode, 1 to [`MAX_REPEATS`].
    pub repeats: u32,
    /// When an attempt is given up.
    pub timeout: Duration,
    /// Between two connections.
    pub pause: Duration,
    /// For everything: modes that do not begin before it are not tested.
    pub deadline: Duration,
    /// The library that makes the TLS connections.
    pub library: tls::Library,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            repeats: 3,
            timeout: Duration::from_secs(5),
            pause: Duration::from_millis(50),
            deadline: Duration::from_secs(60),
            library: tls::Library::Rustls,
        }
    }
}

/// How far a probe is: after each mode, and once at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Modes that are done.
    pub done: usize,
    /// All modes of this probe.
    pub of: usize,
    /// The mode that comes next; `None` at the end.
    pub next: Option<Mode>,
}

/// Why there is no report at all. What fails after the first TCP connection is in the report.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The options or the target contradict themselves.
    #[error("{0}")]
    Options(String),
    /// The name does not resolve.
    #[error("the host `{host}` is not known: {detail}")]
    UnknownHost {
        /// The host as given.
        host: String,
        /// The system's words.
        detail: String,
    },
    /// There can be no thread to ask the system for the name.
    #[error("a thread to look up `{host}` could not be started: {detail}")]
    Thread {
        /// The host as given.
        host: String,
        /// The system's words.
        detail: String,
    },
    /// The name has no address of the family asked for.
    #[error("the host `{host}` has no {family} address")]
    NoAddress {
        /// The host as given.
        host: String,
        /// `IPv4` or `IPv6`.
        family: Family,
    },
    /// No address took a TCP connection; the failure is that of the first one.
    #[error("no TCP connection to {host} port {port}: {failure}")]
    NoConnection {
        /// The host as given.
        host: String,
        /// The port as given.
        port: u16,
        /// What the first attempt ran into.
        failure: Failure,
    },
    /// The proxy made no connection, or the server did not change to TLS.
    #[error("{host} port {port}: {failure}")]
    Opening {
        /// The host as given.
        host: String,
        /// The port as given.
        port: u16,
        /// What the first attempt ran into.
        failure: Failure,
    },
}

impl Explain for ProbeError {
    fn fault(&self) -> Fault {
        match self {
            ProbeError::Options(_) | ProbeError::NoAddress { .. } => Fault::Caller,
            ProbeError::UnknownHost { .. } | ProbeError::Thread { .. } => Fault::Machine,
            ProbeError::NoConnection { failure, .. } | ProbeError::Opening { failure, .. } => {
                failure.fault()
            }
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ProbeError::Options(_) => None,
            ProbeError::UnknownHost { .. } => Some("check the name, and this machine's DNS".into()),
            ProbeError::Thread { .. } => Some("raise `ulimit -u`".into()),
            ProbeError::NoAddress { .. } => Some("use the other family".into()),
            ProbeError::NoConnection { failure, .. } | ProbeError::Opening { failure, .. } => {
                failure.remedy()
            }
        }
    }
}

/// The certificates that a server sends, in DER, the leaf first: one connection that only looks, and trusts
/// nothing. Must be called within a tokio runtime.
///
/// # Errors
/// [`ProbeError`] if the host has no address or none of them completes a handshake.
pub async fn chain(target: &Target, timeout: Duration) -> Result<Vec<Vec<u8>>, ProbeError> {
    let (_, addresses) = resolve::resolve(target, timeout).await?;
    let mut first_failure = None;
    for address in addresses {
        match look::look(address, target, timeout).await {
            Ok((_, chain)) => return Ok(chain),
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    Err(target.unreached(first_failure))
}

/// Probes `target`. Must be called within a tokio runtime; a current-thread one keeps CPU times apart.
///
/// # Errors
/// [`ProbeError`] if not even a TCP connection can be made.
pub async fn probe(
    target: &Target,
    options: &Options,
    mut progress: impl FnMut(Progress),
) -> Result<Report, ProbeError> {
    if !(1..=MAX_REPEATS).contains(&options.repeats) {
        let repeats = options.repeats;
        return Err(ProbeError::Options(format!(
            "{repeats} repeats: a probe makes 1 to {MAX_REPEATS} connections of each mode"
        )));
    }
    if options.timeout.is_zero() {
        return Err(ProbeError::Options("a timeout of 0 leaves no time to connect".to_owned()));
    }
    let of = Mode::ALL.len();
    progress(Progress { done: 0, of, next: Some(Mode::Tcp) });
    let (dns, addresses) = resolve::resolve(target, options.timeout).await?;
    let mut prober = prober::Prober::connect(target, options, &addresses).await?;
    for (done, mode) in Mode::ALL.iter().enumerate() {
        prober.measure(*mode).await;
        let next = Mode::ALL.get(done + 1).copied();
        progress(Progress { done: done + 1, of, next });
    }
    Ok(prober.report(dns).await)
}
