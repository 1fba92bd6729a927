//! The releases of HAProxy that are built, pinned by the sums of their sources.

use crate::{Error, Kind, Library};

/// A file of a source, in Debian's archive.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name there.
    pub name: &'static str,
    /// Its SHA-256, in hexadecimal.
    pub sha256: &'static str,
}

impl SourceFile {
    /// Where it is fetched from. The sum makes plain HTTP safe.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://deb.debian.org/debian/pool/main/h/haproxy/{}", self.name)
    }
}

/// A release of HAProxy.
#[derive(Debug, PartialEq, Eq)]
pub struct Release {
    /// Its version, by which it is chosen.
    pub version: &'static str,
    /// Debian's version of it: with which corrections it is built.
    pub debian: &'static str,
    /// The upstream source.
    pub source: SourceFile,
    /// Debian's corrections to it.
    pub patches: SourceFile,
    /// The first version that has light locks, AWS-LC, WolfSSL and curves for servers is 3.0 here.
    modern: bool,
}

/// All that there are, the newest first. The newest in Debian's archive that can still be fetched;
/// 2.6 is for libraries that 3.0 has left behind.
pub const RELEASES: &[Release] = &[
    Release {
        version: "3.0.11",
        debian: "3.0.11-1+deb13u3",
        source: SourceFile {
            name: "haproxy_3.0.11.orig.tar.gz",
            sha256: "a133e2d550c5fd9a849b5c7ab17bb945bcdad209ca140d41f45ebf31943ae783",
        },
        patches: SourceFile {
            name: "haproxy_3.0.11-1+deb13u3.debian.tar.xz",
            sha256: "3c038b0a9f488a846d723aed4cc24f36b12c3cb846deece50e506386a8dbe6b7",
        },
        modern: true,
    },
    Release {
        version: "2.6.12",
        debian: "2.6.12-1+deb12u3",
        source: SourceFile {
            name: "haproxy_2.6.12.orig.tar.gz",
            sha256: "58f9edb26bf3288f4b502658399281cc5d6478468bd178eafe579c8f41895854",
        },
        patches: SourceFile {
            name: "haproxy_2.6.12-1+deb12u3.debian.tar.xz",
            sha256: "90667334095484aea4225ebdebf027505c77366ab1c4dbf06bcecdcc9eae356a",
        },
        modern: false,
    },
];

impl Release {
    /// A release by its version.
    ///
    /// # Errors
    /// [`Error::Unknown`] with all that there are.
    pub fn find(version: &str) -> Result<&'static Release, Error> {
        RELEASES.iter().find(|release| release.version == version).ok_or_else(|| Error::Unknown {
            what: "HAProxy release",
            given: version.to_owned(),
            known: RELEASES.iter().map(|release| release.version.to_owned()).collect(),
        })
    }

    /// Whether it can be built with light locks (USE_PTHREAD_EMULATION).
    #[must_use]
    pub fn has_light_locks(&self) -> bool {
        self.modern
    }

    /// Whether a server line takes a list of curves.
    #[must_use]
    pub fn has_server_curves(&self) -> bool {
        self.modern
    }

    /// The library as HAProxy is built on it with QUIC.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where it has no QUIC with it.
    pub fn with_quic(&self, library: Library) -> Result<Library, Error> {
        let quic = Library::quic_of(&library.name).filter(|_| self.modern);
        match quic {
            Some(_) => Ok(Library { quic, ..library }),
            None => Err(Error::Unsupported {
                haproxy: self.version,
                library: library.name,
                reason: "there is no QUIC with it",
            }),
        }
    }

    /// # Errors
    /// [`Error::Unsupported`] when the release has no code for the library.
    pub fn supports(&self, library: &Library) -> Result<(), Error> {
        let reason = match library.kind {
            Kind::OpenSsl if self.modern && library.name == "libressl-3.1.0" => {
                "it calls SSL_get0_verified_chain, which LibreSSL 3.1.0 lacks"
            }
            Kind::OpenSsl if library.name.starts_with("openssl-4.") => {
                "it reads the fields of ASN1_STRING, which OpenSSL 4 hides"
            }
            Kind::OpenSsl => return Ok(()),
            Kind::AwsLc | Kind::WolfSsl if self.modern => return Ok(()),
            Kind::AwsLc | Kind::WolfSsl => "it came with a later release",
        };
        let library = library.name.clone();
        Err(Error::Unsupported { haproxy: self.version, library, reason })
    }
}
