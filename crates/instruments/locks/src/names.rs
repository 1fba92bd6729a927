//! Names of functions: shown plainly, and known for wrappers around locks.

/// A symbol as a reader knows it: without what the linker and the compiler added, and C++'s nested
/// names (without templates and parameters) written out.
pub(crate) fn plain(symbol: &str) -> String {
    let symbol = symbol.split(['.', '@']).next().unwrap_or(symbol);
    let symbol = without_version_prefix(symbol);
    nested(symbol).unwrap_or_else(|| symbol.to_owned())
}

/// AWS-LC's crate puts its version before every symbol: `aws_lc_0_47_0_SSL_new`.
fn without_version_prefix(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("aws_lc_") else { return symbol };
    let mut left = rest;
    for _ in 0..3 {
        let digits = left.bytes().take_while(u8::is_ascii_digit).count();
        let after = left.get(digits..).and_then(|tail| tail.strip_prefix('_'));
        match after {
            Some(tail) if digits > 0 => left = tail,
            _ => return symbol,
        }
    }
    left
}

/// `_ZN4bssl8internal5startEv` is `bssl::internal::start` (Itanium C++ ABI §5.1). `None` where it is
/// not as simple as that.
fn nested(symbol: &str) -> Option<String> {
    let rest = symbol.strip_prefix("_Z")?;
    let (mut rest, many) = match rest.strip_prefix('N') {
        Some(inner) => (inner.trim_start_matches(['K', 'V', 'r', 'R', 'O']), true),
        None => (rest, false),
    };
    let mut parts: Vec<&str> = Vec::new();
    if let Some(after) = rest.strip_prefix("St") {
        parts.push("std");
        rest = after;
    }
    loop {
        rest = rest.strip_prefix('L').unwrap_or(rest); // of internal linkage
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at_checked(digits)?;
        let Ok(length) = number.parse::<usize>() else { break };
        let (part, after) = after.split_at_checked(length)?;
        parts.push(if part.starts_with("_GLOBAL__N") { "(anonymous)" } else { part });
        rest = after;
        if !many {
            break;
        }
    }
    // A constructor or destructor: the class is named; anything else would be half a name.
    let whole = !many || rest.starts_with(['E', 'C', 'D', 'I']);
    (!parts.is_empty() && whole).then(|| parts.join("::"))
}

/// Beginnings of names of functions that only pass a lock on: the site of interest is who calls
/// them. OpenSSL and its forks, wolfSSL, GnuTLS, NSPR and NSS, Mbed TLS, C++'s library.
const WRAPPERS: [&str; 44] = [
    "pthread_",
    "__pthread_",
    "CRYPTO_THREAD_",
    "CRYPTO_MUTEX_",
    "CRYPTO_STATIC_MUTEX_",
    "CRYPTO_atomic_",
    "CRYPTO_refcount_",
    "CRYPTO_UP_REF",
    "CRYPTO_DOWN_REF",
    "CRYPTO_GET_REF",
    "CRYPTO_lock",
    "CRYPTO_add",
    "ossl_lib_ctx_read_lock",
    "ossl_lib_ctx_write_lock",
    "ossl_crypto_mutex_",
    "ossl_crypto_condvar_",
    "ossl_rcu_",
    "get_hold_current_qp",
    "allocate_new_qp_group",
    "update_qp",
    "wc_LockMutex",
    "wc_LockRwLock",
    "wolfSSL_Ref",
    "gnutls_static_mutex_",
    "gnutls_system_mutex_",
    "gnutls_rwlock_",
    "p11_mutex_",
    "PR_Lock",
    "PR_EnterMonitor",
    "PR_RWLock_",
    "PZ_",
    "NSSRWLock_",
    "threading_mutex_",
    "mbedtls_mutex_",
    "bssl::MutexReadLock",
    "bssl::MutexWriteLock",
    "bssl::internal::MutexLockBase",
    "std::mutex",
    "std::recursive_mutex",
    "std::lock_guard",
    "std::unique_lock",
    "std::shared_mutex",
    "std::__shared_mutex",
    "__gthread_",
];

/// Whether a plain name is that of a wrapper.
pub(crate) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| name.starts_with(wrapper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for (symbol, name) in [
            ("SSL_new", "SSL_new"),
            ("evp_md_init.constprop.0", "evp_md_init"),
            ("SSL_new@@OPENSSL_3.0.0", "SSL_new"),
            ("aws_lc_0_47_0_CRYPTO_MUTEX_lock_read", "CRYPTO_MUTEX_lock_read"),
            ("aws_lc_rs", "aws_lc_rs"),
            ("aws_lc_0_", "aws_lc_0_"),
            ("_ZN4bssl13ssl_new_stateEPNS_3SSLE", "bssl::ssl_new_state"),
            ("_ZN4bssl12_GLOBAL__N_14stepEv", "bssl::(anonymous)::step"),
            ("_ZNSt5mutex4lockEv", "std::mutex::lock"),
            ("_ZN4bssl13MutexReadLockC2EP9rwlock", "bssl::MutexReadLock"),
            ("_Z4stepi", "step"),
            ("_ZL4stepi", "step"),
            ("_ZNSt6vectorIiE4sizeEv", "std::vector"),
            ("_Z", "_Z"),
            ("_ZN99x", "_ZN99x"),
            ("_ZplRK1aS1_", "_ZplRK1aS1_"),
            ("", ""),
        ] {
            assert_eq!(plain(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn wrappers_are_known() {
        for name in ["CRYPTO_THREAD_read_lock", "wc_LockMutex", "std::mutex::lock"] {
            assert!(is_wrapper(name), "{name}");
        }
        for name in ["ossl_property_read_lock", "ossl_lib_ctx_get_data", "SSL_CTX_up_ref"] {
            assert!(!is_wrapper(name), "{name}");
        }
    }
}
