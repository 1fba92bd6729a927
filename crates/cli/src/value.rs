//! Values of the command line: what is wrong with one and what to do about it stand apart, as in every
//! other error.

use std::fmt;
use std::str::FromStr;

use fault::{Fault, Problem};
use rustls_pki_types::{DnsName, ServerName};

/// A value that cannot be read. clap prints it, and keeps it as the cause of its own error.
#[derive(Debug)]
pub struct Refused(Problem);

impl Refused {
    /// A value that is not what its option needs.
    pub fn new(what: impl fmt::Display, remedy: &'static str) -> Refused {
        Refused(Problem::new(Fault::Caller, what).with_remedy(remedy))
    }

    /// What to do about it.
    pub fn remedy(&self) -> Option<&str> {
        self.0.remedy()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", fault::one_line(&self.0.to_string()))
    }
}

impl std::error::Error for Refused {}

/// Reads the name of a server, as a certificate carries it: a parser for clap.
pub fn server_name(text: &str) -> Result<String, Refused> {
    let remedy = "give the name that the certificate carries";
    let wrong = |_| Refused::new("neither a DNS name nor an IP address", remedy);
    ServerName::try_from(text).map(|_| text.to_owned()).map_err(wrong)
}

/// Reads a DNS name: a parser for clap.
pub fn dns_name(text: &str) -> Result<String, Refused> {
    let wrong = |_| Refused::new("not a DNS name", "write it like public.example");
    DnsName::try_from(text).map(|_| text.to_owned()).map_err(wrong)
}

/// Reads a group of a key exchange, of any kind: a parser for clap.
pub fn named_group(text: &str) -> Result<tls::NamedGroup, Refused> {
    tls::named_group(text).ok_or_else(|| {
        Refused::new("not a group of TLS", "write it like x25519, p256, p384, p521 or ffdhe2048")
    })
}

/// Reads a value: a parser for clap.
pub fn value<T: FromStr<Err: Into<Problem>>>(text: &str) -> Result<T, Refused> {
    text.parse().map_err(|error: T::Err| Refused(error.into()))
}
