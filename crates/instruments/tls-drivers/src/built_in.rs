//! The TLS libraries that this program has in it anyway, as drivers that nobody has to build.
//!
//! OpenSSL's is a shared object as any driver's, made of the vendored OpenSSL by the shim of its family and
//! carried along; it is loaded from a file. rustls's is in the program itself, by the shim of its family:
//! a host finds its table by a name in place of a file's.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::ProducesTickets;
use rustls_shim::{Library, abi, cpu_features};

use crate::catalog::{Driver, State};

/// What the names of these drivers end in.
pub const BUILT_IN: &str = "-built-in";

/// The shared object of OpenSSL's driver.
const OPENSSL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openssl.so"));

/// Stands for rustls's table in place of a file. No path of a file looks like it.
const RUSTLS: &str = "built-in:rustls";

/// The table of a driver that is in this program, where the path stands for one.
pub(crate) fn table(path: &Path) -> Option<*const c_void> {
    (path == Path::new(RUSTLS)).then(rustls_shim::driver::<AwsLcRs>)
}

/// The drivers; what has to be a file is written into a folder, which is to be kept as long.
///
/// # Errors
/// It cannot be written.
pub(crate) fn drivers(folder: &Path) -> std::io::Result<Vec<Driver>> {
    let object = folder.join("openssl-built-in.so");
    std::fs::write(&object, OPENSSL)?;
    let versions = tls::library_versions();
    let version = |name: &str| {
        // OpenSSL's is a sentence: `OpenSSL 3.5.5 27 Jan 2026`.
        let text = versions.get(name).map_or("", String::as_str);
        text.split(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("")
    };
    let driver = |name: &str, library: &str, number: &str, licence: &str, object: PathBuf| Driver {
        name: format!("{name}{BUILT_IN}"),
        library: library.to_owned(),
        version: format!("{number} (built in)"),
        default: false,
        about: "in this program".to_owned(),
        licence: licence.to_owned(),
        facts: Vec::new(),
        state: State::Built { object },
        place: folder.to_path_buf(),
    };
    Ok(vec![
        driver("openssl", "OpenSSL", version("OpenSSL"), "Apache-2.0", object),
        driver(
            "rustls",
            "rustls",
            version("rustls"),
            "Apache-2.0 OR ISC OR MIT",
            PathBuf::from(RUSTLS),
        ),
    ])
}

/// rustls on AWS-LC, as this program uses it itself.
struct AwsLcRs;

fn once(text: &'static OnceLock<CString>, make: impl FnOnce() -> String) -> &'static CStr {
    text.get_or_init(|| CString::new(make()).unwrap_or_default())
}

impl Library for AwsLcRs {
    // Encrypted Client Hello as a client.
    const FUNCTIONS: u64 = abi::POST_QUANTUM | abi::ECH;

    fn provider() -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = aws_lc_rs::ALL_KX_GROUPS.to_vec();
        provider
    }

    fn ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
        aws_lc_rs::Ticketer::new()
    }

    fn version() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        once(&TEXT, || {
            let versions = tls::library_versions();
            let of =
                |name: &str| format!("{name} {}", versions.get(name).map_or("", String::as_str));
            format!("{}, {}", of("rustls"), of("aws-lc-rs"))
        })
    }

    fn build_flags() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        once(&TEXT, || env!("WIRETAX_BUILD_FLAGS").to_owned())
    }

    fn cpu_features() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        TEXT.get_or_init(|| {
            cpu_features!(
                x86_64: "aes" "pclmulqdq" "ssse3" "sse4.1" "avx" "avx2" "bmi1" "bmi2" "adx" "sha" "rdrand" "vaes"
                    "vpclmulqdq" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512ifma";
                aarch64: "neon" "aes" "pmull" "sha2" "sha3"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_load_and_say_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        for driver in drivers(folder.path()).unwrap() {
            let library = crate::Library::load(driver.object().unwrap()).unwrap();
            let described = library.described();
            assert_eq!(described.library, driver.library);
            let number = driver.version.strip_suffix(" (built in)").unwrap();
            assert!(!number.is_empty() && described.version.contains(number), "{described:?}");
            assert!(!described.build_flags.is_empty(), "{described:?}");
        }
    }

    #[test]
    fn a_name_of_no_driver_is_a_file() {
        assert!(table(Path::new("built-in:gnutls")).is_none());
        assert!(crate::Library::load(Path::new("built-in:gnutls")).is_err());
    }
}
