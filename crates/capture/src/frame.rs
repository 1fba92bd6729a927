//! What sources hand out.

use std::sync::Arc;

use units::Time;

use crate::format::Record;

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
    /// The next frame of the source.
    Frame(Frame<'a>),
    /// TLS secrets, in the format of SSLKEYLOGFILE, for the frames that follow. The same may come
    /// again.
    KeyLog(&'a [u8]),
}

/// What comes next in a source, several frames at once.
#[derive(Debug)]
#[non_exhaustive]
pub enum Batch<'a> {
    /// One frame or more, in order.
    Frames(Frames<'a>),
    /// TLS secrets: as [`Event::KeyLog`].
    KeyLog(&'a [u8]),
}

/// Frames that lie in a source's buffer, one behind the other.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    pub(crate) records: std::slice::Iter<'a, Record>,
    pub(crate) bytes: &'a [u8],
    pub(crate) source: usize,
    /// What `bytes` are a part of, and where they begin in it.
    pub(crate) buffer: (&'a Arc<[u8]>, usize),
}

impl<'a> Frames<'a> {
    /// The buffer in which the frames lie: it stays as it is for as long as somebody has it, so that
    /// another thread can look at them later.
    #[must_use]
    pub fn buffer(&self) -> &'a Arc<[u8]> {
        self.buffer.0
    }

    /// The next frame, and where its bytes begin in the buffer.
    #[inline]
    pub fn next_placed(&mut self) -> Option<(Frame<'a>, usize)> {
        let record = self.records.next()?;
        let place = self.buffer.1 + record.start as usize;
        Some((Frames::frame(record, self.bytes, self.source), place))
    }

    pub(crate) fn frame(record: &Record, bytes: &'a [u8], source: usize) -> Frame<'a> {
        let start = record.start as usize;
        Frame {
            at: record.at,
            link: record.link,
            bytes: bytes.get(start..start + record.captured as usize).unwrap_or_default(),
            original_len: record.original_len as usize,
            interface: record.interface,
            source,
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    #[inline]
    fn next(&mut self) -> Option<Frame<'a>> {
        let record = self.records.next()?;
        Some(Frames::frame(record, self.bytes, self.source))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

/// A capture that ends within a record: it was cut, or is still being written. All whole frames
/// before were handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Path of the file, or `standard input`.
    pub name: String,
    /// Where what is not whole begins, in the uncompressed file.
    pub offset: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: the capture ends within a record, at byte {}", self.name, self.offset)
    }
}

/// Frames of which what is said must be doubted, of those that were handed out in batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubts {
    /// Frames of which fewer bytes were captured than they had: by a snap length.
    pub cut_short: u64,
    /// Frames more than a second earlier than one before them in their file.
    pub out_of_order: u64,
    /// Frames more than a day later than all before them in their file: clocks that were set, more often than a
    /// day's silence.
    pub leaps: u64,
    /// Frames without a time: they take that of the frame before (pcapng §4.4).
    pub timeless: u64,
    /// Frames that were passed over: their times lie before 1970 or after 2554.
    pub misdated: u64,
}

impl Doubts {
    pub(crate) fn plus(self, other: Doubts) -> Doubts {
        Doubts {
            cut_short: self.cut_short + other.cut_short,
            out_of_order: self.out_of_order + other.out_of_order,
            leaps: self.leaps + other.leaps,
            timeless: self.timeless + other.timeless,
            misdated: self.misdated + other.misdated,
        }
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
