//! TCP options (RFC 9293 §3.2, RFC 7323, RFC 2018, RFC 7413).

use crate::{Error, Reader};

const FORMAT: &str = "TCP option";

/// Bytes of options that a header has room for.
pub const MAX_OPTIONS_LEN: usize = 40;

/// The experiment identifier of Fast Open under kinds 253 and 254 (RFC 6994, RFC 7413 §4.1.1).
const FAST_OPEN_EXPERIMENT: u16 = 0xf989;

/// An option of a TCP header (RFC 9293 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Padding between options (kind 1).
    NoOperation,
    /// The largest segment that the sender takes, bytes (kind 2).
    MaximumSegmentSize(u16),
    /// Bits by which the window field is to be shifted (kind 3).
    WindowScale(u8),
    /// Selective acknowledgments may be sent (kind 4).
    SackPermitted,
    /// Blocks received out of order (kind 5).
    Sack(SackBlocks),
    /// The sender's clock and the echo of the peer's (kind 8).
    Timestamps {
        /// TSval: the sender's clock (RFC 7323 §3.2).
        value: u32,
        /// TSecr: the peer's latest TSval; valid with ACK only.
        echo: u32,
    },
    /// A Fast Open cookie, or the request for one (kind 34, or 253 and 254 with 0xf989).
    FastOpen(FastOpen<'a>),
    /// An option of any other kind.
    Unknown {
        /// Its kind's number (IANA TCP Option Kind Numbers).
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

/// A Fast Open option (RFC 7413 §4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpen<'a> {
    /// The cookie, an even number of bytes from 4 to 16; empty is the request for one.
    pub cookie: &'a [u8],
    /// Whether it came under the experimental kinds that preceded kind 34.
    pub experimental: bool,
}

/// Blocks of a SACK option: left edge, and right edge one past the last byte (RFC 2018 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: usize,
}

impl SackBlocks {
    /// The first four of `blocks`: no more fit.
    #[must_use]
    pub fn new(blocks: &[(u32, u32)]) -> Self {
        let mut list = SackBlocks::default();
        for (to, from) in list.blocks.iter_mut().zip(blocks) {
            *to = *from;
            list.count = list.count.saturating_add(1);
        }
        list
    }

    /// The blocks' left and right edges, in the order of the wire (RFC 2018 §3).
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        self.blocks.get(..self.count).unwrap_or(&[])
    }
}

/// Walks options. A malformed one gives one error and ends the walk.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    reader: Reader<'a>,
}

impl<'a> Options<'a> {
    /// A walk over the bytes between header and payload.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Options { reader: Reader::new(FORMAT, bytes) }
    }

    fn read(&mut self) -> Result<Option<TcpOption<'a>>, Error> {
        let kind = match self.reader.u8()? {
            0 => return Ok(None),
            1 => return Ok(Some(TcpOption::NoOperation)),
            kind => kind,
        };
        let length = usize::from(self.reader.u8()?);
        let Some(data_len) = length.checked_sub(2) else {
            return Err(Error::malformed(FORMAT, "its length is below 2"));
        };
        parse(kind, self.reader.take(data_len)?).map(Some)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let read = self.read();
        if !matches!(read, Ok(Some(_))) {
            self.reader = Reader::new(FORMAT, &[]);
        }
        read.transpose()
    }
}

fn parse(kind: u8, data: &[u8]) -> Result<TcpOption<'_>, Error> {
    let mut reader = Reader::new(FORMAT, data);
    let option = match (kind, data.len()) {
        (2, 2) => TcpOption::MaximumSegmentSize(reader.u16()?),
        (3, 1) => TcpOption::WindowScale(reader.u8()?),
        (4, 0) => TcpOption::SackPermitted,
        (5, 8 | 16 | 24 | 32) => {
            let mut blocks = SackBlocks::default();
            for block in &mut blocks.blocks {
                if reader.is_empty() {
                    break;
                }
                *block = (reader.u32()?, reader.u32()?);
                blocks.count = blocks.count.saturating_add(1);
            }
            TcpOption::Sack(blocks)
        }
        (8, 8) => TcpOption::Timestamps { value: reader.u32()?, echo: reader.u32()? },
        (2 | 3 | 4 | 5 | 8, _) => {
            return Err(Error::malformed(FORMAT, "its length is not its kind's"));
        }
        (34, len) if is_cookie_length(len) => {
            TcpOption::FastOpen(FastOpen { cookie: data, experimental: false })
        }
        (253 | 254, 2..)
            if reader.u16()? == FAST_OPEN_EXPERIMENT && is_cookie_length(data.len() - 2) =>
        {
            TcpOption::FastOpen(FastOpen { cookie: reader.rest(), experimental: true })
        }
        _ => TcpOption::Unknown { kind, data },
    };
    Ok(option)
}

/// Whether a Fast Open option of so many bytes is valid: none request a cookie, and a cookie has an even number
/// from 4 to 16 (RFC 7413 §4.1.1).
const fn is_cookie_length(len: usize) -> bool {
    len == 0 || (len >= 4 && len <= 16 && len.is_multiple_of(2))
}

/// The options that Wiretax knows, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionList<'a> {
    /// The largest segment that the sender takes, bytes.
    pub mss: Option<u16>,
    /// Bits by which the window field is to be shifted.
    pub window_scale: Option<u8>,
    /// Selective acknowledgments may be sent.
    pub sack_permitted: bool,
    /// The sender's clock and the echo of the peer's.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks received out of order.
    pub sack: SackBlocks,
    /// A Fast Open cookie, or the request for one.
    pub fast_open: Option<FastOpen<'a>>,
}

impl<'a> OptionList<'a> {
    /// The known options of a walk, up to a malformed one; of two of a kind the last.
    #[must_use]
    pub fn parse(options: Options<'a>) -> Self {
        let mut list = OptionList::default();
        for option in options.map_while(Result::ok) {
            match option {
                TcpOption::MaximumSegmentSize(mss) => list.mss = Some(mss),
                TcpOption::WindowScale(shift) => list.window_scale = Some(shift),
                TcpOption::SackPermitted => list.sack_permitted = true,
                TcpOption::Sack(blocks) => list.sack = blocks,
                TcpOption::Timestamps { value, echo } => list.timestamps = Some((value, echo)),
                TcpOption::FastOpen(fast_open) => list.fast_open = Some(fast_open),
                TcpOption::NoOperation | TcpOption::Unknown { .. } => {}
            }
        }
        list
    }

    /// Bytes that the options take, padding to four bytes included.
    #[must_use]
    pub fn padded_len(&self) -> usize {
        let sack = match self.sack.count {
            0 => 0,
            count => count.saturating_mul(8).saturating_add(2),
        };
        let fast_open = self.fast_open.map_or(0, |option| {
            let header = if option.experimental { 4 } else { 2 };
            option.cookie.len().saturating_add(header)
        });
        [
            if self.mss.is_some() { 4 } else { 0 },
            if self.window_scale.is_some() { 3 } else { 0 },
            if self.sack_permitted { 2 } else { 0 },
            if self.timestamps.is_some() { 10 } else { 0 },
            sack,
            fast_open,
        ]
        .into_iter()
        .fold(0usize, usize::saturating_add)
        .next_multiple_of(4)
    }

    /// Writes the options into zeroed bytes; the zeros left over are the padding.
    pub(super) fn emit(&self, buffer: &mut [u8; MAX_OPTIONS_LEN]) {
        let mut at = buffer.iter_mut();
        let mut put = |bytes: &[u8]| {
            for (to, from) in at.by_ref().take(bytes.len()).zip(bytes) {
                *to = *from;
            }
        };
        if let Some(mss) = self.mss {
            put(&[2, 4]);
            put(&mss.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            put(&[3, 3, shift]);
        }
        if self.sack_permitted {
            put(&[4, 2]);
        }
        if let Some((value, echo)) = self.timestamps {
            put(&[8, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        }
        if self.sack.count > 0 {
            put(&[5, self.sack.count.saturating_mul(8).saturating_add(2) as u8]);
            for (left, right) in self.sack.as_slice() {
                put(&left.to_be_bytes());
                put(&right.to_be_bytes());
            }
        }
        if let Some(option) = self.fast_open {
            let length = option.cookie.len() as u8;
            if option.experimental {
                put(&[254, length.saturating_add(4)]);
                put(&FAST_OPEN_EXPERIMENT.to_be_bytes());
            } else {
                put(&[34, length.saturating_add(2)]);
            }
            put(option.cookie);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linux_syn_is_read() {
        let bytes = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7, 34, 2, 1, 1];
        let list = OptionList::parse(Options::new(&bytes));
        assert_eq!(list.mss, Some(1460));
        assert_eq!(list.window_scale, Some(7));
        assert_eq!(list.timestamps, Some((9, 0)));
        assert!(list.sack_permitted);
        assert_eq!(list.fast_open, Some(FastOpen { cookie: &[], experimental: false }));
    }

    #[test]
    fn the_experimental_cookie_is_read_and_other_experiments_are_not() {
        let bytes = [254, 8, 0xf9, 0x89, 1, 2, 3, 4];
        let list = OptionList::parse(Options::new(&bytes));
        assert_eq!(list.fast_open, Some(FastOpen { cookie: &[1, 2, 3, 4], experimental: true }));
        let mut other = Options::new(&[254, 4, 0xaa, 0xbb]);
        let expected = TcpOption::Unknown { kind: 254, data: &[0xaa, 0xbb] };
        assert_eq!(other.next(), Some(Ok(expected)));
    }

    #[test]
    fn a_cookie_has_an_even_number_of_bytes() {
        for len in 0..=20usize {
            let valid = len == 0 || [4, 6, 8, 10, 12, 14, 16].contains(&len);
            let cookie = vec![7; len];
            let option = [&[34, len as u8 + 2][..], &cookie].concat();
            let list = OptionList::parse(Options::new(&option));
            assert_eq!(list.fast_open.is_some(), valid, "{len}");
            let option = [&[254, len as u8 + 4, 0xf9, 0x89][..], &cookie].concat();
            let list = OptionList::parse(Options::new(&option));
            assert_eq!(list.fast_open.is_some(), valid, "{len} experimental");
        }
    }

    #[test]
    fn a_hostile_length_ends_the_walk() {
        for bytes in [&[2u8, 0][..], &[2, 1], &[2, 40, 1], &[8, 3, 1], &[3]] {
            let mut options = Options::new(bytes);
            assert!(matches!(options.next(), Some(Err(_))), "{bytes:?}");
            assert_eq!(options.next(), None);
        }
    }

    #[test]
    fn nothing_is_read_after_the_end_of_the_list() {
        assert_eq!(Options::new(&[1, 0, 2, 4, 5, 5]).count(), 1);
    }
}
