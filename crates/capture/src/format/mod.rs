//! Capture formats: bytes in, where the frames are out. Pure: no files, no clock.
//!
//! A [`Reader`] is given the bytes from where it stands on, as far as they are known, and says by a
//! [`Step`] what is there or how many bytes it wants to see. It copies nothing and, but for a
//! section's interfaces, holds nothing.

pub mod pcap;
pub mod pcapng;

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;
use units::Time;

/// The most bytes of a frame that are believed: libpcap's MAXIMUM_SNAPLEN. Whatever says more is
/// damaged.
pub const MAX_CAPTURED: u32 = 262_144;

/// Bytes that [`Reader::recognise`] wants to see; with fewer, nothing more may follow.
pub const RECOGNISED_BY: usize = 4;

/// A frame's record. Positions count from the first byte that the reader was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it was captured, by the capture's clock: nanoseconds since 1970.
    pub at: Time,
    /// LINKTYPE number: what the frame begins with.
    pub link: u32,
    /// Number of the interface: 0 is the capture's first. Those of a later section go on counting.
    pub interface: u32,
    /// Where the frame's bytes begin.
    pub start: u32,
    /// How many of them are there.
    pub captured: u32,
    /// How many it had on the link; never less than what was captured.
    pub original_len: u32,
    /// Where the next record begins.
    pub used: u32,
}

/// What stands at the reader's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A frame: where it is and what is said of it.
    Frame(Record),
    /// A TLS key log (of a Decryption Secrets Block), `len` bytes from `start`.
    KeyLog {
        /// Where it begins.
        start: usize,
        /// Bytes of the key log.
        len: usize,
        /// Where the next block begins.
        used: usize,
    },
    /// Nothing of interest up to there, which may be beyond the given bytes: a whole block.
    Pass(u64),
    /// As [`Step::Pass`], but the block goes on.
    Part(u64),
    /// Unknown until this many bytes are seen: more than were given, and less than
    /// [`pcapng::MAX_SECRETS`] and some.
    Need(usize),
}

/// Why bytes are no capture that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// It is compressed, and cut before the first byte that could be decompressed.
    #[error("it is compressed and cut off before its first block ends")]
    CutOff,
    /// Its first bytes are of no format known.
    #[error("it is neither pcap nor pcapng, nor one of these in gzip or zstd")]
    Unknown,
    /// A format that is known by name only.
    #[error("it is {0}, which is not supported")]
    Foreign(&'static str),
    /// Something compressed by other means.
    #[error("it is compressed by {0}")]
    Compression(&'static str),
    /// A version of the format with other records.
    #[error("version {major}.{minor} of the format is not supported")]
    Version {
        /// The file header's major version.
        major: u16,
        /// The file header's minor version.
        minor: u16,
    },
    /// A frame longer than any.
    #[error("a frame of {0} captured bytes is not possible (at most {MAX_CAPTURED})")]
    FrameLength(u32),
    /// A block whose length is no multiple of four, too short for its type or too long.
    #[error("a block of type {kind:#x} cannot have {len} bytes")]
    BlockLength {
        /// The block's type.
        kind: u32,
        /// Its Block Total Length.
        len: u32,
    },
    /// The two lengths of a block differ.
    #[error("a block's length is {first} at its beginning and {last} at its end")]
    BlockEnds {
        /// That at its beginning.
        first: u32,
        /// That at its end.
        last: u32,
    },
    /// A section without byte-order magic.
    #[error("a section header has no byte-order magic")]
    ByteOrder,
    /// A frame of an interface that was not described.
    #[error("a frame is of interface {0}, which the section does not describe")]
    Interface(u32),
    /// More interfaces than are believed.
    #[error("a section describes more than {} interfaces", pcapng::MAX_INTERFACES)]
    TooManyInterfaces,
    /// An interface's option that is cut or of impossible length.
    #[error("option {0} of an interface is damaged")]
    Option(u16),
}

impl Explain for Problem {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        const CONVERT: &str = "convert it with `editcap IN OUT.pcapng`";
        match self {
            Problem::Unknown => Some(format!("if it is another capture format, {CONVERT}").into()),
            Problem::Foreign(_) | Problem::Version { .. } => Some(CONVERT.into()),
            Problem::CutOff => Some("copy or capture it again: nothing in it can be read".into()),
            Problem::Compression(program) => {
                let remedy = format!("decompress it and pipe it in (`{program} -dc FILE | … -`)");
                Some(remedy.into())
            }
            _ => None,
        }
    }
}

/// A reader of either format.
#[derive(Debug)]
pub enum Reader {
    /// Of pcap, the older format.
    Pcap(pcap::Reader),
    /// Of pcapng, which has blocks of several kinds.
    PcapNg(pcapng::Reader),
}

impl Reader {
    /// The reader for what begins with `bytes`: [`RECOGNISED_BY`] of them, unless there are fewer.
    ///
    /// # Errors
    /// [`Problem::Empty`], [`Problem::Unknown`], [`Problem::Foreign`].
    pub fn recognise(bytes: &[u8]) -> Result<Reader, Problem> {
        let Some(magic) = bytes.first_chunk::<4>() else {
            return Err(if bytes.is_empty() { Problem::Empty } else { Problem::Unknown });
        };
        if let Some(reader) = pcap::Reader::recognise(*magic) {
            return Ok(Reader::Pcap(reader));
        }
        if *magic == pcapng::SECTION_HEADER.to_ne_bytes() {
            return Ok(Reader::PcapNg(pcapng::Reader::new()));
        }
        Err(foreign(*magic))
    }

    /// What stands at the beginning of `bytes`. After a frame, a key log or a block the reader
    /// must be given the bytes behind it.
    ///
    /// # Errors
    /// Any [`Problem`]: nothing that follows can be read.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Problem> {
        match self {
            Reader::Pcap(reader) => reader.step(bytes),
            Reader::PcapNg(reader) => reader.step(bytes),
        }
    }

    /// Frames without a time so far.
    pub(crate) fn timeless(&self) -> u64 {
        match self {
            Reader::Pcap(_) => 0,
            Reader::PcapNg(reader) => reader.timeless(),
        }
    }

    /// Frames so far that were passed over for their impossible times.
    pub(crate) fn misdated(&self) -> u64 {
        match self {
            // 32 bits of seconds.
            Reader::Pcap(_) => 0,
            Reader::PcapNg(reader) => reader.misdated(),
        }
    }

    /// What [`Reader::step`] says if it is a whole frame; if it is not, nothing has happened.
    // Inlined, so that the record stays in registers.
    #[inline(always)]
    pub(crate) fn frame(&mut self, bytes: &[u8]) -> Option<Record> {
        match self {
            Reader::Pcap(reader) => reader.frame(bytes),
            Reader::PcapNg(reader) => reader.frame(bytes),
        }
    }
}

/// What else begins with these bytes.
fn foreign(magic: [u8; 4]) -> Problem {
    match magic {
        // Both byte orders of 0xa1b2cd34: as written by Kuznetzov's and Red Hat's libpcap.
        [0xa1, 0xb2, 0xcd, 0x34] | [0x34, 0xcd, 0xb2, 0xa1] => {
            Problem::Foreign("Kuznetzov's modified pcap")
        }
        [0x1c, 0x00, 0x01, 0xac | 0xab] | [0xac | 0xab, 0x01, 0x00, 0x1c] => {
            Problem::Foreign("a pcap of IXIA's")
        }
        [b's', b'n', b'o', b'o'] => Problem::Foreign("a snoop capture"),
        [b'b', b't', b's', b'n'] => Problem::Foreign("a btsnoop capture"),
        [0xfd, b'7', b'z', b'X'] => Problem::Compression("xz"),
        [b'B', b'Z', b'h', _] => Problem::Compression("bzip2"),
        [0x04, 0x22, 0x4d, 0x18] => Problem::Compression("lz4"),
        _ => Problem::Unknown,
    }
}

/// The 32-bit numbers of a header, as if they were little endian. `M` is `N / 4`.
#[inline(always)]
pub(crate) fn words<const N: usize, const M: usize>(bytes: &[u8; N]) -> [u32; M] {
    let mut words = [0; M];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}

/// Byte order of a file or a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Order {
    #[inline]
    pub(crate) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    pub(crate) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    /// 32-bit numbers that were read as little endian ones.
    #[inline(always)]
    pub(crate) fn of_little<const N: usize>(self, numbers: [u32; N]) -> [u32; N] {
        match self {
            Order::Little => numbers,
            Order::Big => numbers.map(u32::swap_bytes),
        }
    }

    #[inline]
    pub(crate) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Order::Little => i64::from_le_bytes(bytes),
            Order::Big => i64::from_be_bytes(bytes),
        }
    }

    /// The 16-bit number at `offset`.
    #[inline]
    pub(crate) fn u16_at(self, bytes: &[u8], offset: usize) -> Option<u16> {
        bytes.get(offset..)?.first_chunk().map(|chunk| self.u16(*chunk))
    }

    /// The 32-bit number at `offset`.
    #[inline]
    pub(crate) fn u32_at(self, bytes: &[u8], offset: usize) -> Option<u32> {
        bytes.get(offset..)?.first_chunk().map(|chunk| self.u32(*chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_named() {
        let problem = |bytes: &[u8]| Reader::recognise(bytes).map(|_| ()).unwrap_err();
        assert_eq!(problem(b""), Problem::Empty);
        assert_eq!(problem(b"abc"), Problem::Unknown);
        assert_eq!(problem(b"hello there"), Problem::Unknown);
        for order in [0xa1b2_cd34_u32.to_le_bytes(), 0xa1b2_cd34_u32.to_be_bytes()] {
            let text = problem(&order).in_one_text();
            assert!(text.contains("Kuznetzov") && text.contains("editcap"), "{text}");
        }
        assert_eq!(problem(b"\xfd7zXZ\0"), Problem::Compression("xz"));
    }
}
