//! Certificates that the user names.

use std::path::Path;

use fault::{Problem, WhileDoing};

/// Most bytes of a file of roots.
const LARGEST: u64 = 16 << 20;

/// Returns the certificates of a file, in DER; at least one.
pub fn roots_in(path: &Path) -> Result<Vec<Vec<u8>>, Problem> {
    let file = study::Options::none().bytes_of(LARGEST, path, "certificate file")?;
    tls::certificates_in(&file).while_doing(|| path.display().to_string())
}
