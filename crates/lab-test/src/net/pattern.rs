//! A stream of bytes that is never held whole: both ends make it from a seed, so that any byte
//! lost, added, changed or moved is found and its place reported.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes made, written or read at a time.
const CHUNK: usize = 64 << 10;

/// The stream of one seed: SplitMix64's words, low byte first.
pub struct Pattern {
    state: u64,
    word: [u8; 8],
    used: usize,
}

impl Pattern {
    pub fn new(seed: u64) -> Self {
        Pattern { state: seed, word: [0; 8], used: 8 }
    }

    fn next_word(&mut self) -> [u8; 8] {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    }

    /// The next bytes of the stream.
    pub fn fill(&mut self, mut out: &mut [u8]) {
        let left = (8 - self.used).min(out.len());
        out[..left].copy_from_slice(&self.word[self.used..self.used + left]);
        self.used += left;
        out = &mut out[left..];
        let mut words = out.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next_word());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            self.word = self.next_word();
            self.used = rest.len();
            rest.copy_from_slice(&self.word[..rest.len()]);
        }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        self.fill(&mut out);
        out
    }
}

/// Writes `len` bytes of the stream of `seed`.
pub async fn send(to: &mut (impl AsyncWrite + Unpin), seed: u64, len: usize) -> io::Result<()> {
    let mut pattern = Pattern::new(seed);
    let mut buffer = vec![0; CHUNK];
    let mut left = len;
    while left > 0 {
        let part = &mut buffer[..left.min(CHUNK)];
        pattern.fill(part);
        to.write_all(part).await?;
        left -= part.len();
    }
    to.flush().await
}

/// Reads exactly `len` bytes and compares each with the stream of `seed`.
pub async fn check(from: &mut (impl AsyncRead + Unpin), seed: u64, len: usize) -> io::Result<()> {
    let mut pattern = Pattern::new(seed);
    let (mut buffer, mut expected) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut at = 0;
    while at < len {
        let want = CHUNK.min(len - at);
        let got = from.read(&mut buffer[..want]).await?;
        if got == 0 {
            return Err(io::Error::other(format!("the stream ended at byte {at} of {len}")));
        }
        pattern.fill(&mut expected[..got]);
        if let Some(wrong) = (0..got).find(|&i| buffer[i] != expected[i]) {
            return Err(io::Error::other(format!("byte {} of {len} is wrong", at + wrong)));
        }
        at += got;
    }
    Ok(())
}

/// Reads the end of the stream: nothing may come before it.
pub async fn check_end(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    match from.read(&mut [0; 16]).await? {
        0 => Ok(()),
        more => Err(io::Error::other(format!("{more} bytes behind the last one"))),
    }
}

/// Sends `len` bytes of one stream and at the same time checks as many of another; then the end of
/// both.
pub async fn exchange<S>(stream: S, send_seed: u64, check_seed: u64, len: usize) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut read, mut write) = tokio::io::split(stream);
    let sending = async {
        send(&mut write, send_seed, len).await?;
        write.shutdown().await
    };
    let checking = async {
        check(&mut read, check_seed, len).await?;
        check_end(&mut read).await
    };
    let ((), ()) = tokio::try_join!(sending, checking)?;
    Ok(())
}
