//! rustls with AWS-LC's cryptography.

use std::ffi::{CStr, CString, c_void};
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::ProducesTickets;
use rustls_shim::{Library, abi, cpu_features};

struct AwsLcRs;

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
        TEXT.get_or_init(|| {
            let text =
                format!("{}, AWS-LC {}", env!("DRIVER_VERSION"), ::aws_lc_rs::awslc_version());
            CString::new(text).unwrap_or_default()
        })
    }

    fn build_flags() -> &'static CStr {
        static TEXT: OnceLock<CString> = OnceLock::new();
        TEXT.get_or_init(|| CString::new(env!("DRIVER_FLAGS")).unwrap_or_default())
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

/// The one symbol of a driver.
#[unsafe(no_mangle)]
pub extern "C" fn wiretax_driver() -> *const c_void {
    rustls_shim::driver::<AwsLcRs>()
}
