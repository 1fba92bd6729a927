//! Cipher suites by their names.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use tls::CipherSuite;

/// A cipher suite that can be offered.
#[derive(Clone, Copy, PartialEq)]
pub struct Suite(SupportedCipherSuite);

impl Suite {
    /// Every one that there is, in rustls's order.
    pub fn all() -> impl Iterator<Item = Suite> {
        ALL_CIPHER_SUITES.iter().copied().map(Suite)
    }

    /// Whether it is of TLS 1.3.
    #[must_use]
    pub fn is_tls13(self) -> bool {
        self.0.tls13().is_some()
    }

    pub(crate) fn inner(self) -> SupportedCipherSuite {
        self.0
    }
}

impl Eq for Suite {}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&CipherSuite(self.0.suite().into()), f)
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that names no suite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a cipher suite")]
pub struct UnknownSuite {
    text: String,
    choices: String,
}

impl Explain for UnknownSuite {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("choose from {}", self.choices).into())
    }
}

impl FromStr for Suite {
    type Err = UnknownSuite;

    fn from_str(text: &str) -> Result<Suite, UnknownSuite> {
        let found = Suite::all().find(|suite| suite.to_string().eq_ignore_ascii_case(text));
        found.ok_or_else(|| {
            let choices: Vec<String> = Suite::all().map(|suite| suite.to_string()).collect();
            UnknownSuite { text: text.to_owned(), choices: choices.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_read_as_printed() {
        assert_eq!(Suite::all().count(), 9);
        for suite in Suite::all() {
            assert_eq!(suite.to_string().parse(), Ok(suite));
            assert_eq!(suite.to_string().to_lowercase().parse(), Ok(suite));
            assert!(suite.to_string().starts_with("TLS_"), "{suite}");
        }
        let error = "RC4".parse::<Suite>().unwrap_err();
        assert!(error.to_string().contains("`RC4`"), "{error}");
        let remedy = error.remedy().unwrap_or_default();
        assert!(remedy.contains("TLS_AES_128_GCM_SHA256"), "{remedy}");
    }
}
