//! Certificates that the user names.

use std::path::Path;

use fault::{Fault, Problem};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// The certificates of a PEM file, in DER; at least one.
pub fn roots_in(path: &Path) -> Result<Vec<Vec<u8>>, Problem> {
    let text = study::Options::none().text_of(path, "certificate file")?;
    let certificates: Result<Vec<Vec<u8>>, _> = CertificateDer::pem_slice_iter(text.as_bytes())
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect();
    let wrong = |what: &dyn std::fmt::Display| {
        let what = format!("{}: {what}", path.display());
        Problem::new(Fault::Caller, what).with_remedy("give a file in PEM")
    };
    let certificates = certificates.map_err(|error| wrong(&error))?;
    if certificates.is_empty() {
        return Err(wrong(&"no certificate in it"));
    }
    Ok(certificates)
}
