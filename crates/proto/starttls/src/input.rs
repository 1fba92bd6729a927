//! Bytes that came and are not read yet.

/// Maximum number of bytes that a peer may send before TLS.
pub const MAX_INPUT: usize = 64 << 10;
/// First bytes that are kept, to name the protocol that a peer speaks in place of the expected one.
const OPENING: usize = 8;

/// Unread bytes, bounded over the whole dialog.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    opening: Vec<u8>,
    total: usize,
}

impl Input {
    /// Appends bytes; `false` if the peer has sent more than [`MAX_INPUT`].
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.total = self.total.saturating_add(bytes.len());
        if self.total > MAX_INPUT {
            return false;
        }
        let room = OPENING.saturating_sub(self.opening.len());
        self.opening.extend(bytes.iter().take(room));
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// The unread bytes.
    pub fn rest(&self) -> &[u8] {
        &self.bytes
    }

    /// The first bytes of the whole dialog.
    pub fn opening(&self) -> &[u8] {
        &self.opening
    }

    /// Takes the first `count` bytes, or none if there are fewer.
    pub fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        (self.bytes.len() >= count).then(|| self.bytes.drain(..count).collect())
    }

    /// Takes a line without its end (CRLF; a bare LF is taken too).
    pub fn line(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// Takes everything.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}
