//! rustls with ring's cryptography.

use std::ffi::{CStr, CString, c_void};
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::ProducesTickets;
use rustls_shim::{Library, cpu_features};

struct Ring;

impl Library for Ring {
    const FUNCTIONS: u64 = 0;

    fn provider() -> CryptoProvider {
        ring::default_provider()
    }

    fn ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
        ring::Ticketer::new()
    }

    fn version() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        TEXT.get_or_init(|| CString::new(env!("DRIVER_VERSION")).unwrap_or_default())
    }

    fn build_flags() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        TEXT.get_or_init(|| CString::new(env!("DRIVER_FLAGS")).unwrap_or_default())
    }

    fn cpu_features() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        TEXT.get_or_init(|| {
            cpu_features!(
                x86_64: "aes" "pclmulqdq" "ssse3" "sse4.1" "avx" "avx2" "bmi1" "bmi2" "adx" "sha" "vaes" "vpclmulqdq";
                aarch64: "neon" "aes" "pmull" "sha2" "sha3"
            )
        })
    }
}

/// The one symbol of a driver.
#[unsafe(no_mangle)]
pub extern "C" fn wiretax_driver() -> *const c_void {
    rustls_shim::driver::<Ring>()
}
