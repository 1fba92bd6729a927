//! What sources hand out.

use units::Time;

/// A captured frame, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was captured: nanoseconds since 1970 by the capture's clock.
    pub at: Time,
    /// LINKTYPE number: what its bytes begin with.
    pub link: u32,
    /// The frame, as far as it was captured.
    pub bytes: &'a [u8],
    /// Bytes that it had on the link; never fewer than [`Frame::bytes`] has.
    pub original_len: usize,
    /// The interface within its source, from 0.
    pub interface: u32,
    /// The source, from 0: its place among those given to a [`crate::Merge`].
    pub source: usize,
}

/// What comes next in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// TLS secrets, in the format of SSLKEYLOGFILE, for the frames that follow. The same may come
    /// again.
    KeyLog(&'a [u8]),
}

/// A capture that ends within a record: it was cut, or is still being written. All whole frames
/// before were handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub name: String,
    /// Where what is not whole begins, in the uncompressed file.
    pub offset: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: the capture ends within a record, at byte {}", self.name, self.offset)
    }
}

/// How far a source is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read, as stored: compressed ones where the file is.
    pub read: u64,
    /// Of so many; `None` if a pipe is among them.
    pub of: Option<u64>,
}
