//! The TLS libraries that HAProxy is built on: what drivers are made of, with headers and static
//! libraries.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;

/// How HAProxy is told about a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// OpenSSL, and what keeps to its interface: QuicTLS, LibreSSL, BoringSSL.
    OpenSsl,
    /// AWS-LC, by the make option `USE_OPENSSL_AWSLC`.
    AwsLc,
    /// WolfSSL, by the make option `USE_OPENSSL_WOLFSSL`.
    WolfSsl,
}

/// How HAProxy has QUIC with a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quic {
    /// By the library's interface for it: QuicTLS, AWS-LC.
    Interface,
    /// Around a library that has none (`USE_QUIC_OPENSSL_COMPAT`, `limited-quic`): OpenSSL, without 0-RTT.
    Compat,
}

/// A library and where its headers and archives are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The driver's name: `openssl-3.5.5`.
    pub name: String,
    /// How HAProxy is told about it.
    pub kind: Kind,
    /// What `haproxy -vv` must name: `3.5.5`. Nothing for a library without versions.
    pub version: String,
    /// The folder that holds `include` and `lib`.
    pub sdk: PathBuf,
    /// Whether HAProxy is built with QUIC on it, and how.
    pub quic: Option<Quic>,
}

/// Families by the first part of the driver's name.
const FAMILIES: &[(&str, Kind)] = &[
    ("openssl", Kind::OpenSsl),
    ("quictls", Kind::OpenSsl),
    ("libressl", Kind::OpenSsl),
    ("boringssl", Kind::OpenSsl),
    ("awslc", Kind::AwsLc),
    ("wolfssl", Kind::WolfSsl),
];

impl Library {
    /// A library by its driver's name, in a folder that is known.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a family that HAProxy has no code for; [`Error::NoSdk`] where the
    /// folder does not hold it.
    pub fn at(name: &str, sdk: &Path) -> Result<Self, Error> {
        let (kind, version) = parse(name)?;
        if !(sdk.join("include").is_dir() && sdk.join("lib").is_dir()) {
            return Err(Error::NoSdk { library: name.to_owned(), sdk: sdk.to_owned() });
        }
        Ok(Self { name: name.to_owned(), kind, version, sdk: sdk.to_owned(), quic: None })
    }

    /// How HAProxy can have QUIC with a driver's library, by its name; none where it cannot.
    #[must_use]
    pub fn quic_of(name: &str) -> Option<Quic> {
        match name.split('-').next()? {
            "quictls" | "awslc" => Some(Quic::Interface),
            "openssl" => Some(Quic::Compat),
            _ => None,
        }
    }

    /// How HAProxy is told about a driver's library, by its name.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a family that HAProxy has no code for.
    pub fn kind_of(name: &str) -> Result<Kind, Error> {
        Ok(parse(name)?.0)
    }

    /// Whether HAProxy has code for a driver's library, by its name.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        parse(name).is_ok()
    }
}

/// The kind, and the version that the program built must show.
fn parse(name: &str) -> Result<(Kind, String), Error> {
    let (family, rest) = name.split_once('-').unwrap_or((name, ""));
    let known = FAMILIES.iter().find(|(known, _)| *known == family);
    let Some((_, kind)) = known else {
        return Err(Error::Unknown {
            what: "TLS library that HAProxy works with",
            given: name.to_owned(),
            known: FAMILIES.iter().map(|(family, _)| format!("{family}-VERSION")).collect(),
        });
    };
    // `awslc-1.29.0-c99`: what follows the version says how it was built.
    let version = rest.split('-').next().unwrap_or(rest);
    Ok((*kind, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::Explain as _;

    #[test]
    fn a_name_says_how_haproxy_is_built_and_what_it_must_show() {
        let parsed = |name: &str| parse(name).unwrap();
        assert_eq!(parsed("openssl-1.1.1w"), (Kind::OpenSsl, "1.1.1w".to_owned()));
        assert_eq!(parsed("quictls-3.1.7"), (Kind::OpenSsl, "3.1.7".to_owned()));
        assert_eq!(parsed("awslc-1.29.0-c99"), (Kind::AwsLc, "1.29.0".to_owned()));
        assert_eq!(parsed("wolfssl-5.9.4"), (Kind::WolfSsl, "5.9.4".to_owned()));
        assert_eq!(parsed("boringssl"), (Kind::OpenSsl, String::new()));
    }

    #[test]
    fn a_library_without_code_in_haproxy_is_refused_with_what_there_is() {
        for name in ["gnutls", "rustls-ring", "", "open-ssl", "OPENSSL-3.5.5"] {
            let error = parse(name).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert!(error.remedy().unwrap().contains("openssl-VERSION"), "{error:?}");
        }
    }

    #[test]
    fn a_folder_without_headers_is_no_library() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("include")).unwrap();
        let missing = Library::at("openssl-3.0.2", folder.path()).unwrap_err();
        let remedy = missing.remedy().unwrap();
        assert!(remedy.contains("wiretax drivers build openssl-3.0.2"), "{missing}: {remedy}");
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        assert!(Library::at("openssl-3.0.2", folder.path()).is_ok());
        assert!(Library::is_known("awslc-5.12.0") && !Library::is_known("botan"));
        assert_eq!(Library::quic_of("awslc-5.12.0"), Some(Quic::Interface));
        assert_eq!(Library::quic_of("openssl-3.5.5"), Some(Quic::Compat));
        assert_eq!(Library::quic_of("libressl-3.1.0"), None);
        assert_eq!(Library::kind_of("wolfssl-5.7.2").unwrap(), Kind::WolfSsl);
    }
}
