//! Bodies: cut from one block that all share, so that a response of any size copies nothing; one may
//! begin with bytes of its own.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use sha2::{Digest, Sha256};

/// Bytes of the block that bodies repeat.
const BLOCK_LEN: usize = 64 * 1024;

/// Incompressible enough that a proxy or a disk image gains nothing by it: a linear congruential
/// generator's high bytes (multiplier of Knuth's MMIX).
static BLOCK: [u8; BLOCK_LEN] = {
    let mut block = [0; BLOCK_LEN];
    let mut state: u64 = 1;
    let mut at = 0;
    while at < BLOCK_LEN {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        block[at] = (state >> 56) as u8;
        at += 1;
    }
    block
};

/// What is left of a body.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    at: u64,
    len: u64,
    /// What it begins with, in place of the block.
    start: Bytes,
}

impl Body {
    pub(crate) fn new(len: u64) -> Self {
        Body::starting(Bytes::new(), len)
    }

    /// A body of `len` bytes that begins with these, as far as they are in it.
    pub(crate) fn starting(start: Bytes, len: u64) -> Self {
        Body { at: 0, len, start }
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.len - self.at
    }

    /// Bytes of the pieces so far.
    pub(crate) fn given(&self) -> u64 {
        self.at
    }

    /// The next piece, of at most `limit` bytes; empty at the end.
    pub(crate) fn next(&mut self, limit: usize) -> Bytes {
        let rest = usize::try_from(self.remaining()).unwrap_or(usize::MAX);
        let begun = usize::try_from(self.at).unwrap_or(usize::MAX);
        if begun < self.start.len() {
            let piece = (self.start.len() - begun).min(limit).min(rest);
            self.at += piece as u64;
            return self.start.slice(begun..begun + piece);
        }
        let offset = usize::try_from(self.at % BLOCK_LEN as u64).unwrap_or(0);
        let block = BLOCK.get(offset..).unwrap_or_default();
        let piece = block.get(..block.len().min(limit).min(rest)).unwrap_or_default();
        self.at += piece.len() as u64;
        Bytes::from_static(piece)
    }
}

/// SHA-256 of a body of `len` bytes as this crate makes it, to compare with [`crate::Outcome::digest`].
#[must_use]
pub fn digest(len: u64) -> [u8; 32] {
    let mut body = Body::new(len);
    let mut hash = Sha256::new();
    while body.remaining() > 0 {
        hash.update(body.next(BLOCK_LEN));
    }
    hash.finalize().into()
}

/// Who is told of each piece of a body that hyper took, and whether it was the last.
pub(crate) trait Given {
    /// So many bytes more were taken.
    fn given(&mut self, bytes: usize, last: bool);
}

/// A body for hyper, in pieces of a bounded length.
pub(crate) struct Pieces<G> {
    body: Body,
    longest: usize,
    told: G,
}

impl<G: Given> Pieces<G> {
    pub(crate) fn new(body: Body, longest: usize, told: G) -> Self {
        Pieces { body, longest, told }
    }
}

impl<G: Given + Unpin> http_body::Body for Pieces<G> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Pieces { body, longest, told } = &mut *self;
        let piece = body.next(*longest);
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        told.given(piece.len(), body.remaining() == 0);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.remaining() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.remaining())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_begins_with_its_own_bytes() {
        for (len, limit) in [(0, 7), (3, 2), (5, 100), (70_000, 4096)] {
            let mut body = Body::starting(Bytes::from_static(b"hello"), len);
            let mut bytes = Vec::new();
            while body.remaining() > 0 {
                bytes.extend(body.next(limit));
            }
            assert_eq!(bytes.len() as u64, len);
            let own = bytes.len().min(5);
            assert_eq!(bytes[..own], b"hello"[..own]);
            assert!(
                bytes.iter().enumerate().skip(5).all(|(at, byte)| *byte == BLOCK[at % BLOCK_LEN])
            );
        }
    }

    #[test]
    fn however_it_is_cut_a_body_is_the_same() {
        let whole: Vec<u8> = BLOCK.iter().chain(&BLOCK).copied().take(100_000).collect();
        for limit in [1, 777, 16_384, 200_000] {
            let mut body = Body::new(100_000);
            let mut bytes = Vec::new();
            while body.remaining() > 0 {
                let piece = body.next(limit);
                assert!((1..=limit).contains(&piece.len()));
                bytes.extend_from_slice(&piece);
            }
            assert!(bytes == whole, "cut to {limit}");
            assert!(body.next(limit).is_empty());
        }
        assert_eq!(digest(100_000), <[u8; 32]>::from(Sha256::digest(&whole)));
    }
}
