//! The parsers of untrusted bytes, for fuzz targets. Not an interface to build on.

use crate::probe::{Speaker, certificate, old_hello};
use crate::quic::messages::{Handshake, Messages};

/// Handshake messages from QUIC's CRYPTO frames, fed in pieces of `cut` bytes (at least 1).
pub fn quic_handshake(bytes: &[u8], cut: usize) {
    let (mut messages, mut handshake) = (Messages::default(), Handshake::new());
    for piece in bytes.chunks(cut.max(1)) {
        messages.feed(piece, &mut handshake);
    }
}

/// A server's first bytes, after a hello or before one.
pub fn first_bytes(bytes: &[u8], port: u16) {
    let _ = (Speaker::of(bytes, port), old_hello::first_message(bytes));
}

/// A certificate (DER).
pub fn certificate(der: &[u8]) {
    let _ = certificate::key_type(der);
}
