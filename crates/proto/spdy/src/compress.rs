//! Header compression (§2.6.10.1): one zlib stream a direction, begun with the dictionary, flushed at
//! the end of each block.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::dictionary::{ADLER_32, DICTIONARY};

/// What a block needs beyond its own length: zlib's header, stored blocks' headers, the flush.
const SPARE: usize = 128;

/// Why a block could not be compressed: the library refused. Not reachable by input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompressFailed;

/// The compressor of what is sent.
#[derive(Debug)]
pub(crate) struct Compressor(Compress);

impl Compressor {
    /// `level` 0 to 9, `window_bits` 9 to 15.
    pub(crate) fn new(level: u32, window_bits: u8) -> Result<Self, CompressFailed> {
        let level = Compression::new(level.min(9));
        let mut zlib = Compress::new_with_window_bits(level, true, window_bits.clamp(9, 15));
        zlib.set_dictionary(&DICTIONARY).map_err(|_| CompressFailed)?;
        Ok(Compressor(zlib))
    }

    /// Appends the compressed block to `out`.
    pub(crate) fn compress(
        &mut self,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CompressFailed> {
        let mut rest = block;
        loop {
            out.reserve(rest.len() + rest.len() / 256 + SPARE);
            let before = self.0.total_in();
            let flush = FlushCompress::Sync;
            let status = self.0.compress_vec(rest, out, flush).map_err(|_| CompressFailed)?;
            let taken = usize::try_from(self.0.total_in() - before).map_err(|_| CompressFailed)?;
            rest = rest.get(taken..).ok_or(CompressFailed)?;
            // A flush is over when it leaves room behind (zlib.h, deflate()).
            if rest.is_empty() && out.len() < out.capacity() {
                return Ok(());
            }
            if status == Status::StreamEnd {
                return Err(CompressFailed);
            }
        }
    }
}

/// Why a block could not be decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inflate {
    /// It is no zlib data, ends the stream or asks for another dictionary.
    Bad,
    /// It grows beyond the limit.
    TooLarge,
}

/// The decompressor of what is received.
#[derive(Debug)]
pub(crate) struct Decompressor(Decompress);

impl Decompressor {
    pub(crate) fn new() -> Self {
        Decompressor(Decompress::new(true))
    }

    /// The block that these bytes are, of at most `limit` bytes. After an error the stream is lost.
    pub(crate) fn decompress(&mut self, block: &[u8], limit: usize) -> Result<Vec<u8>, Inflate> {
        let mut out = Vec::with_capacity(block.len().saturating_mul(4).clamp(256, limit.max(256)));
        let mut rest = block;
        loop {
            let (taken, made) = (self.0.total_in(), self.0.total_out());
            let status = self.0.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            let taken = usize::try_from(self.0.total_in() - taken).map_err(|_| Inflate::Bad)?;
            rest = rest.get(taken..).ok_or(Inflate::Bad)?;
            let progress = taken > 0 || self.0.total_out() > made;
            match status {
                Ok(Status::StreamEnd) => return Err(Inflate::Bad),
                Ok(_) => {}
                Err(error) if error.needs_dictionary() == Some(ADLER_32) => {
                    self.0.set_dictionary(&DICTIONARY).map_err(|_| Inflate::Bad)?;
                    continue;
                }
                Err(_) => return Err(Inflate::Bad),
            }
            if out.len() > limit {
                return Err(Inflate::TooLarge);
            }
            let full = out.len() == out.capacity();
            match (rest.is_empty(), full) {
                (true, false) => return Ok(out),
                (false, false) if !progress => return Err(Inflate::Bad),
                (_, true) => {
                    out.reserve(out.len().min(limit.saturating_add(1) - out.len()).max(64))
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 64 << 10;

    fn pair(level: u32, bits: u8) -> (Compressor, Decompressor) {
        (Compressor::new(level, bits).unwrap(), Decompressor::new())
    }

    #[test]
    fn a_stream_asks_for_the_dictionary_and_uses_it() {
        let (mut compressor, mut decompressor) = pair(9, 11);
        let block = b"\0\0\0\x01\0\0\0\x0faccept-encoding\0\0\0\x11gzip,deflate,sdch";
        let (mut first, mut second) = (vec![], vec![]);
        compressor.compress(block, &mut first).unwrap();
        compressor.compress(block, &mut second).unwrap();
        // RFC 1950 §2.2: FDICT, then the dictionary's checksum; RFC 1951 §3.2.4: an empty stored block.
        assert_eq!(first[1] & 0x20, 0x20);
        assert_eq!(first[2..6], ADLER_32.to_be_bytes());
        assert!(first.ends_with(&[0, 0, 0xff, 0xff]));
        assert!(
            first.len() < 30 && second.len() < 16,
            "{} and {} bytes",
            first.len(),
            second.len()
        );
        assert_eq!(decompressor.decompress(&first, LIMIT).as_deref(), Ok(&block[..]));
        assert_eq!(decompressor.decompress(&second, LIMIT).as_deref(), Ok(&block[..]));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let (mut compressor, mut decompressor) = pair(9, 15);
        let mut bomb = vec![];
        compressor.compress(&vec![b'a'; 8 << 20], &mut bomb).unwrap();
        assert!(bomb.len() < 20_000);
        assert_eq!(decompressor.decompress(&bomb, LIMIT), Err(Inflate::TooLarge));
    }

    #[test]
    fn what_is_no_stream_of_ours_is_refused() {
        let end = {
            let mut zlib = Compress::new(Compression::fast(), true);
            let mut out = Vec::with_capacity(64);
            zlib.compress_vec(b"abc", &mut out, FlushCompress::Finish).unwrap();
            out
        };
        let other_dictionary = {
            let mut zlib = Compress::new(Compression::fast(), true);
            zlib.set_dictionary(b"another").unwrap();
            let mut out = Vec::with_capacity(64);
            zlib.compress_vec(b"abc", &mut out, FlushCompress::Sync).unwrap();
            out
        };
        for bytes in [&end[..], &other_dictionary, b"\xff\xff\xff", b"GET / HTTP/1.1\r\n"] {
            assert_eq!(Decompressor::new().decompress(bytes, LIMIT), Err(Inflate::Bad));
        }
    }

    #[test]
    fn a_stream_without_a_dictionary_is_taken() {
        let mut zlib = Compress::new(Compression::fast(), true);
        let mut out = Vec::with_capacity(64);
        zlib.compress_vec(b"abc", &mut out, FlushCompress::Sync).unwrap();
        assert_eq!(Decompressor::new().decompress(&out, LIMIT).as_deref(), Ok(&b"abc"[..]));
    }

    proptest! {
        #[test]
        fn blocks_come_back_at_every_level_and_window(
            blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..3000), 1..6),
            level in 0u32..10, bits in 9u8..16,
        ) {
            let (mut compressor, mut decompressor) = pair(level, bits);
            for block in blocks {
                let mut out = vec![];
                compressor.compress(&block, &mut out).unwrap();
                prop_assert_eq!(decompressor.decompress(&out, LIMIT), Ok(block));
            }
        }

        #[test]
        fn any_bytes_end_within_the_limit(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(block) = Decompressor::new().decompress(&bytes, 1000) {
                prop_assert!(block.len() <= 1000);
            }
        }
    }
}
