//! QuicTLS, OpenSSL with an interface for QUIC: built as OpenSSL is.

use std::path::Path;

use crate::openssl::build;

/// Builds QuicTLS out of a source folder, and the shim on it.
///
/// # Panics
/// If the build fails.
pub fn quictls(source: &Path) {
    build(source, &[], &[("WT_QUICTLS", "1")]);
}
