//! The TLS libraries that this program has in it anyway, as drivers that nobody has to build.
//!
//! OpenSSL's is a shared object as any driver's, made of the vendored OpenSSL by the shim of its family and
//! carried along. rustls's is in the program itself, by the shim of its family. A host finds either by a
//! name in place of a file's, and so the driver without cryptography.

use std::ffi::{CStr, CString, c_void};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use child::MemoryFile;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::ProducesTickets;
use rustls_shim::{Library, abi, cpu_features};

use crate::NULL;
use crate::catalog::{Driver, State};

/// What the names of these drivers end in.
pub const BUILT_IN: &str = "-built-in";

/// The shared object of OpenSSL's driver.
const OPENSSL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openssl.so"));

/// Begins what stands for a driver of this program in place of a file. No path of a file looks like it.
const PREFIX: &str = "built-in:";
const RUSTLS: &str = "built-in:rustls";
const OPENSSL_BUILT_IN: &str = "built-in:openssl-built-in";
/// Stands for the driver without cryptography.
pub(crate) const NULL_DRIVER: &str = "built-in:null";

/// The name of the driver that a path stands for, where it stands for one of this program.
pub(crate) fn name_of(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// The table of a driver that is in this program, where the path stands for one.
pub(crate) fn table(path: &Path) -> Option<*const c_void> {
    (path == Path::new(RUSTLS)).then(rustls_shim::driver::<AwsLcRs>)
}

/// The shared object that a path stands for, where it stands for one.
fn bytes(path: &Path) -> Option<&'static [u8]> {
    match path.to_str()? {
        OPENSSL_BUILT_IN => Some(OPENSSL),
        NULL_DRIVER => Some(NULL),
        _ => None,
    }
}

/// The file of a driver: in memory if the path stands for an object of this program, and then the same
/// as long as this process lives, so that the loader knows it again.
pub(crate) fn file(path: &Path) -> io::Result<PathBuf> {
    static FILES: [OnceLock<MemoryFile>; 2] = [const { OnceLock::new() }; 2];
    let Some(bytes) = bytes(path) else { return Ok(path.to_owned()) };
    let [openssl, null] = &FILES;
    let place = if path == Path::new(NULL_DRIVER) { null } else { openssl };
    if place.get().is_none() {
        let name = format!("{}.so", name_of(path).unwrap_or_default());
        // Another thread may have been first: its file is as good.
        let _ = place.set(MemoryFile::sealed(&name, bytes)?);
    }
    Ok(place.get().map_or_else(|| path.to_owned(), MemoryFile::path))
}

/// The same with a name in a folder: a debugger reads symbols of files with names only.
///
/// # Errors
/// It cannot be written.
pub(crate) fn file_in(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    let Some(bytes) = bytes(path) else { return Ok(path.to_owned()) };
    let file = folder.join(format!("{}.so", name_of(path).unwrap_or_default()));
    std::fs::write(&file, bytes)?;
    Ok(file)
}

/// The drivers.
pub(crate) fn drivers() -> Vec<Driver> {
    let versions = tls::library_versions();
    let version = |name: &str| {
        // OpenSSL's is a sentence: `OpenSSL 3.5.5 27 Jan 2026`.
        let text = versions.get(name).map_or("", String::as_str);
        text.split(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("")
    };
    let driver = |name: &str, library: &str, number: &str, licence: &str, object: &str| Driver {
        name: format!("{name}{BUILT_IN}"),
        library: library.to_owned(),
        version: format!("{number} (built in)"),
        default: false,
        about: "in this program".to_owned(),
        licence: licence.to_owned(),
        facts: Vec::new(),
        state: State::Built { object: PathBuf::from(object) },
        place: PathBuf::new(),
    };
    vec![
        driver("openssl", "OpenSSL", version("OpenSSL"), "Apache-2.0", OPENSSL_BUILT_IN),
        driver("rustls", "rustls", version("rustls"), "Apache-2.0 OR ISC OR MIT", RUSTLS),
    ]
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
        for driver in drivers() {
            let library = crate::Library::load(driver.object().unwrap()).unwrap();
            let described = library.described();
            assert_eq!(described.library, driver.library);
            let number = driver.version.strip_suffix(" (built in)").unwrap();
            assert!(!number.is_empty() && described.version.contains(number), "{described:?}");
            assert!(!described.build_flags.is_empty(), "{described:?}");
        }
        let null = crate::Library::load(Path::new(NULL_DRIVER)).unwrap();
        assert_eq!(null.described().library, "null");
    }

    /// A library that is client and server has one heap and one set of locks.
    #[test]
    fn an_object_is_loaded_once() {
        let path = Path::new(OPENSSL_BUILT_IN);
        let files =
            [file(path).unwrap(), file(path).unwrap(), file(Path::new(NULL_DRIVER)).unwrap()];
        assert!(files[0] == files[1] && files[0] != files[2]);
        assert_eq!(file(Path::new("/a/b.so")).unwrap(), Path::new("/a/b.so"));
        let folder = tempfile::tempdir().unwrap();
        let named = file_in(folder.path(), path).unwrap();
        assert_eq!(std::fs::read(named).unwrap(), OPENSSL);
    }

    #[test]
    fn a_name_of_no_driver_is_a_file() {
        assert!(table(Path::new("built-in:gnutls")).is_none());
        assert!(crate::Library::load(Path::new("built-in:gnutls")).is_err());
    }
}
