//! What is linked.

use std::collections::BTreeMap;

/// The libraries linked into this program and their exact versions: a crate's by its name as the lock
/// file of this build has it (several versions joined by `+`), and under `OpenSSL` what the linked C
/// library tells of itself.
pub fn library_versions() -> BTreeMap<String, String> {
    let mut versions: BTreeMap<_, _> = env!("TLS_CRATE_VERSIONS")
        .split(';')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect();
    versions.insert("OpenSSL".to_owned(), openssl::version::version().to_owned());
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A belief about the build: the linked OpenSSL is the long-term support release 3.5.
    #[test]
    fn linked_openssl_is_3_5_lts() {
        let number = openssl::version::number();
        assert_eq!(number >> 20, 0x305, "{}", openssl::version::version());
        assert!(library_versions()["OpenSSL"].starts_with("OpenSSL 3.5."));
    }

    #[test]
    fn the_c_library_is_the_one_of_the_lock_file() {
        let versions = library_versions();
        let (_, source) = versions["openssl-src"].rsplit_once('+').expect("300.x.y+3.x.y");
        assert!(versions["OpenSSL"].starts_with(&format!("OpenSSL {source} ")), "{versions:?}");
    }

    #[test]
    fn every_library_has_a_version() {
        let versions = library_versions();
        for name in ["rustls", "aws-lc-rs", "aws-lc-sys", "openssl", "rcgen"] {
            assert!(versions[name].starts_with(|c: char| c.is_ascii_digit()), "{name}");
        }
    }
}
