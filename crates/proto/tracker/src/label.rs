//! HKDF-Expand-Label without a context (RFC 8446 §7.1), as TLS 1.3 and QUIC derive keys.

use aws_lc_rs::hkdf::{KeyType, Prk};

/// The longest label here, with its prefix: "tls13 traffic upd" and QUIC's are shorter.
const LABEL_MAX: usize = 32;

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Fills `out` with what a secret and a label give; the label is without its prefix "tls13 ".
pub(crate) fn expand_label(secret: &Prk, label: &str, out: &mut [u8]) -> Option<()> {
    const PREFIX: &[u8] = b"tls13 ";
    let label_len = PREFIX.len().checked_add(label.len()).filter(|len| *len <= LABEL_MAX)?;
    let len = u16::try_from(out.len()).ok()?.to_be_bytes();
    let info = [&len[..], &[label_len as u8], PREFIX, label.as_bytes(), &[0]];
    secret.expand(&info, Length(out.len())).ok()?.fill(out).ok()
}
