//! Compressed certificates (RFC 8879).

use std::io::{Read, Write};

use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{
    CertCompressor, CertDecompressor, CompressionFailed, CompressionLevel, DecompressionFailed,
};
use units::named;

named! {
    /// How a server's certificates are compressed (RFC 8879 §7.3). TLS 1.3 and rustls only.
    pub enum Compression: "certificate compression" {
        /// zlib, at its highest level.
        Zlib = "zlib",
        /// Brotli, at its highest quality: what most browsers offer.
        Brotli = "brotli",
        /// Zstandard, at its highest level that needs no large window.
        Zstd = "zstd",
    }
}

/// The highest quality that Brotli has.
const BROTLI_QUALITY: i32 = 11;
/// The highest level of Zstandard that is not called ultra.
const ZSTD_LEVEL: i32 = 19;
/// Bytes of a buffer of Brotli's.
const BUFFER: usize = 4_096;

impl Compression {
    /// The bytes, compressed; `None` when memory is short.
    #[must_use]
    pub fn pack(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Compression::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(bytes).ok()?;
                encoder.finish().ok()
            }
            Compression::Brotli => {
                let params = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    ..Default::default()
                };
                let mut out = Vec::new();
                brotli::BrotliCompress(&mut &*bytes, &mut out, &params).ok()?;
                Some(out)
            }
            Compression::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL).ok(),
        }
    }

    /// Fills `out` with what was compressed. False unless that is exactly as long.
    fn fill(self, bytes: &[u8], out: &mut [u8]) -> bool {
        let mut reader: Box<dyn Read + '_> = match self {
            Compression::Zlib => Box::new(ZlibDecoder::new(bytes)),
            Compression::Brotli => Box::new(brotli::Decompressor::new(bytes, BUFFER)),
            Compression::Zstd => match zstd::stream::read::Decoder::new(bytes) {
                Ok(decoder) => Box::new(decoder),
                Err(_) => return false,
            },
        };
        // RFC 8879 §4: what is longer or shorter than it says is refused.
        reader.read_exact(out).is_ok() && matches!(reader.read(&mut [0]), Ok(0))
    }

    const fn algorithm_id(self) -> CertificateCompressionAlgorithm {
        match self {
            Compression::Zlib => CertificateCompressionAlgorithm::Zlib,
            Compression::Brotli => CertificateCompressionAlgorithm::Brotli,
            Compression::Zstd => CertificateCompressionAlgorithm::Zstd,
        }
    }

    /// The same as rustls takes it: for as long as the program runs.
    const fn shared(self) -> &'static Compression {
        match self {
            Compression::Zlib => &Compression::Zlib,
            Compression::Brotli => &Compression::Brotli,
            Compression::Zstd => &Compression::Zstd,
        }
    }
}

/// What a server may compress by, preferred first.
pub(crate) fn compressors(chosen: &[Compression]) -> Vec<&'static dyn CertCompressor> {
    chosen.iter().map(|one| one.shared() as &dyn CertCompressor).collect()
}

/// What a client offers, preferred first.
pub(crate) fn decompressors(chosen: &[Compression]) -> Vec<&'static dyn CertDecompressor> {
    chosen.iter().map(|one| one.shared() as &dyn CertDecompressor).collect()
}

impl CertCompressor for Compression {
    fn compress(&self, input: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        self.pack(&input).ok_or(CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        self.algorithm_id()
    }
}

impl CertDecompressor for Compression {
    fn decompress(&self, input: &[u8], output: &mut [u8]) -> Result<(), DecompressionFailed> {
        if self.fill(input, output) { Ok(()) } else { Err(DecompressionFailed) }
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        self.algorithm_id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_compressed_comes_back_and_nothing_else() {
        let text = b"a certificate has much that others have ".repeat(40);
        for compression in Compression::ALL {
            let packed = compression.pack(&text).unwrap();
            assert!(packed.len() < text.len() / 4, "{compression}: {}", packed.len());
            let mut out = vec![0; text.len()];
            assert!(compression.fill(&packed, &mut out), "{compression}");
            assert_eq!(out, text, "{compression}");
            // A byte more or less than was promised.
            assert!(!compression.fill(&packed, &mut vec![0; text.len() + 1]), "{compression}");
            assert!(!compression.fill(&packed, &mut vec![0; text.len() - 1]), "{compression}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), len in 0usize..600) {
            for compression in Compression::ALL {
                compression.fill(&bytes, &mut vec![0; len]);
            }
        }
    }
}
