//! What a build is told, and the key of all that goes into it.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::source::{hex, sum};
use crate::{Error, Kind, Library, Locks, Quic, Release};

/// Changes when the same inputs are built in another way.
const RECIPE: &str = "1";

/// What make is told. Only what the scenarios need is built in.
pub(crate) fn arguments(library: &Library, locks: Locks) -> Vec<String> {
    let folder = |name: &str| library.sdk.join(name).display().to_string();
    let kind = match library.kind {
        Kind::OpenSsl => "USE_OPENSSL=1",
        Kind::AwsLc => "USE_OPENSSL_AWSLC=1",
        Kind::WolfSsl => "USE_OPENSSL_WOLFSSL=1",
    };
    let mut all: Vec<String> = vec![
        "TARGET=linux-glibc".into(),
        kind.into(),
        format!("SSL_INC={}", folder("include")),
        format!("SSL_LIB={}", folder("lib")),
        "USE_THREAD=1".into(),
        // Static archives do not say what they need.
        "ADDLIB=-lpthread -ldl -lm".into(),
        "DEBUG_CFLAGS=".into(),
    ];
    let without = ["LUA", "PCRE", "PCRE2", "SYSTEMD", "SLZ", "ZLIB", "CRYPT_H", "LIBCRYPT", "QUIC"];
    let without = without.iter().filter(|name| library.quic.is_none() || **name != "QUIC");
    all.extend(without.map(|name| format!("USE_{name}=")));
    if library.quic.is_some() {
        all.push("USE_QUIC=1".into());
    }
    if library.quic == Some(Quic::Compat) {
        all.push("USE_QUIC_OPENSSL_COMPAT=1".into());
    }
    if locks == Locks::Light {
        all.push("USE_PTHREAD_EMULATION=1".into());
    }
    all
}

/// The hash of all that goes into a build.
pub(crate) fn key(release: &Release, library: &Library) -> Result<String, Error> {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    part(RECIPE);
    part(release.source.sha256);
    part(release.patches.sha256);
    part(&library.name);
    for locks in [Locks::Pthread, Locks::Light] {
        arguments(library, locks)
            .iter()
            .filter(|one| !one.starts_with("SSL_"))
            .for_each(|one| part(one));
    }
    for folder in ["include", "lib"] {
        let root = library.sdk.join(folder);
        for file in files(&root)? {
            part(&file.strip_prefix(&root).unwrap_or(&file).to_string_lossy());
            part(&sum(&file)?);
        }
    }
    let mut key = hex(&hash.finalize());
    key.truncate(16);
    Ok(key)
}

/// All headers and archives under a folder, in the order of their names.
fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(Error::io("looking into it", &folder))?;
        for entry in entries {
            let path = entry.map_err(Error::io("looking into it", &folder))?.path();
            let matters = path.extension().is_some_and(|kind| kind == "h" || kind == "a");
            match path.is_dir() {
                true => folders.push(path),
                false if matters => files.push(path),
                false => {}
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::Explain as _;

    fn library(folder: &Path) -> Library {
        for part in ["include/openssl", "lib"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        fs::write(folder.join("include/openssl/ssl.h"), "a header").unwrap();
        fs::write(folder.join("lib/libssl.a"), "an archive").unwrap();
        Library::at("openssl-3.5.5", folder).unwrap()
    }

    #[test]
    fn the_key_is_of_content_and_not_of_place() {
        let release = Release::find("3.0.11").unwrap();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (library(one.path()), library(two.path()));
        let first = key(release, &a).unwrap();
        assert_eq!(first, key(release, &b).unwrap());
        assert_eq!(first.len(), 16);
        assert_ne!(first, key(Release::find("2.6.12").unwrap(), &b).unwrap());
        fs::write(two.path().join("lib/README"), "no part of it").unwrap();
        assert_eq!(first, key(release, &b).unwrap());
        fs::write(two.path().join("lib/libssl.a"), "another archive").unwrap();
        assert_ne!(first, key(release, &b).unwrap());
    }

    #[test]
    fn nothing_that_is_not_needed_is_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let arguments = arguments(&library, Locks::Light);
        for wanted in ["USE_OPENSSL=1", "USE_THREAD=1", "USE_LUA=", "USE_PTHREAD_EMULATION=1"] {
            assert!(arguments.iter().any(|one| one == wanted), "{wanted}");
        }
    }

    #[test]
    fn a_build_with_quic_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let library = library(folder.path());
        let release = Release::find("3.0.11").unwrap();
        let with = release.with_quic(library.clone()).unwrap();
        assert_ne!(key(release, &library).unwrap(), key(release, &with).unwrap());
        let told = arguments(&with, Locks::Pthread);
        let is_told = |wanted: &str| told.iter().any(|one| one == wanted);
        assert!(is_told("USE_QUIC=1") && is_told("USE_QUIC_OPENSSL_COMPAT=1"));
        assert!(!is_told("USE_QUIC=") && is_told("USE_LUA="));
        assert!(Release::find("2.6.12").unwrap().with_quic(library).is_err());
    }

    #[test]
    fn a_release_without_code_for_a_library_refuses_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut library = library(folder.path());
        library.kind = Kind::AwsLc;
        assert!(Release::find("3.0.11").unwrap().supports(&library).is_ok());
        let refused = Release::find("2.6.12").unwrap().supports(&library);
        assert!(matches!(refused, Err(Error::Unsupported { .. })));
        let lacks =
            [("libressl-3.1.0", "SSL_get0_verified_chain"), ("openssl-4.0.3", "ASN1_STRING")];
        for (name, reason) in lacks {
            let other = Library { name: name.into(), kind: Kind::OpenSsl, ..library.clone() };
            let refused = Release::find("3.0.11").unwrap().supports(&other).unwrap_err();
            assert!(refused.to_string().contains(reason), "{refused}");
        }
        let unknown = Release::find("9.9").unwrap_err();
        assert_eq!(unknown.remedy().unwrap(), "choose from 3.0.11, 2.6.12");
    }
}
