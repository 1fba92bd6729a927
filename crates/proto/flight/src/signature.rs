//! How long signatures are.

use units::named;

named! {
    /// A signature scheme against which quantum computers are not known to help, as FIPS 204 (ML-DSA) and
    /// FIPS 205 (SLH-DSA, with SHA-2) name them.
    pub enum PostQuantum: "post-quantum signature" {
        /// ML-DSA-44, security category 2.
        MlDsa44 = "ml-dsa-44" | "mldsa44",
        /// ML-DSA-65, security category 3.
        MlDsa65 = "ml-dsa-65" | "mldsa65",
        /// ML-DSA-87, security category 5.
        MlDsa87 = "ml-dsa-87" | "mldsa87",
        /// SLH-DSA-SHA2-128s: category 1, small signatures.
        SlhDsa128s = "slh-dsa-sha2-128s" | "slhdsa128s",
        /// SLH-DSA-SHA2-128f: category 1, made fast.
        SlhDsa128f = "slh-dsa-sha2-128f" | "slhdsa128f",
        /// SLH-DSA-SHA2-192s: category 3, small signatures.
        SlhDsa192s = "slh-dsa-sha2-192s" | "slhdsa192s",
        /// SLH-DSA-SHA2-256s: category 5, small signatures.
        SlhDsa256s = "slh-dsa-sha2-256s" | "slhdsa256s",
    }
}

impl PostQuantum {
    /// Bytes of a signature (FIPS 204 table 2, FIPS 205 table 2).
    #[must_use]
    pub const fn signature(self) -> usize {
        match self {
            PostQuantum::MlDsa44 => 2_420,
            PostQuantum::MlDsa65 => 3_309,
            PostQuantum::MlDsa87 => 4_627,
            PostQuantum::SlhDsa128s => 7_856,
            PostQuantum::SlhDsa128f => 17_088,
            PostQuantum::SlhDsa192s => 16_224,
            PostQuantum::SlhDsa256s => 29_792,
        }
    }

    /// Bytes of a public key (the same tables).
    #[must_use]
    pub const fn public_key(self) -> usize {
        match self {
            PostQuantum::MlDsa44 => 1_312,
            PostQuantum::MlDsa65 => 1_952,
            PostQuantum::MlDsa87 => 2_592,
            PostQuantum::SlhDsa128s | PostQuantum::SlhDsa128f => 32,
            PostQuantum::SlhDsa192s => 48,
            PostQuantum::SlhDsa256s => 64,
        }
    }

    /// Whether TLS 1.3 has a code point by which a leaf with such a key can sign its handshake, and the
    /// code point (IANA TLS SignatureScheme). SLH-DSA keys are those of authorities only.
    #[must_use]
    pub const fn scheme(self) -> Option<u16> {
        match self {
            PostQuantum::MlDsa44 => Some(0x0904),
            PostQuantum::MlDsa65 => Some(0x0905),
            PostQuantum::MlDsa87 => Some(0x0906),
            _ => None,
        }
    }
}

/// Bytes of a signature by an RSA key of so many bits (RFC 8017 §8).
#[must_use]
pub const fn rsa_signature(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// Bytes of the longest signature by an ECDSA key on a curve of so many bits, in DER (RFC 3279 §2.2.3):
/// two integers, each with a zero before it when its first bit is set. Most are a byte or two shorter.
#[must_use]
pub const fn ecdsa_signature(bits: usize) -> usize {
    // P-521's integers begin with a byte of one bit, which needs no zero before it.
    let zero = if bits.is_multiple_of(8) { 1 } else { 0 };
    let integers = 2 * (2 + bits.div_ceil(8) + zero);
    let length = if integers < 128 { 1 } else { 2 };
    1 + length + integers
}
