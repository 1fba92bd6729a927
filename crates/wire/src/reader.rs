//! A cursor over bytes that never reads past their end.

use crate::Error;

/// A cursor over bytes: each read takes from the front or says what was missing.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    format: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the first of `bytes`; `format` is what its errors name.
    #[must_use]
    pub const fn new(format: &'static str, bytes: &'a [u8]) -> Self {
        Reader { format, rest: bytes }
    }

    /// What has not been read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(self.truncated(N))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.truncated(count))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|b| b[0])
    }

    /// The next two bytes in network order.
    pub fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(|b| u16::from_be_bytes(*b))
    }

    /// The next three bytes in network order.
    pub fn u24(&mut self) -> Result<u32, Error> {
        self.array::<3>().map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]]))
    }

    /// The next four bytes in network order.
    pub fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(|b| u32::from_be_bytes(*b))
    }

    /// A vector behind a length of one byte (RFC 8446 §3.4).
    pub fn vec8(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u8()?;
        self.take(usize::from(length))
    }

    /// A vector behind a length of two bytes.
    pub fn vec16(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    const fn truncated(&self, needed: usize) -> Error {
        Error::Truncated { format: self.format, needed, had: self.rest.len() }
    }
}

/// The 16-bit numbers of `bytes` in network order; a last odd byte is left out.
pub(crate) fn u16s(bytes: &[u8]) -> impl Iterator<Item = u16> + Clone + '_ {
    bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stop_at_the_end_and_say_what_was_missing() {
        let mut reader = Reader::new("test", &[1, 2, 3, 0, 2, 9, 9, 4]);
        assert_eq!(reader.u24(), Ok(0x01_02_03));
        assert_eq!(reader.vec16(), Ok(&[9, 9][..]));
        assert_eq!(reader.vec8(), Err(Error::Truncated { format: "test", needed: 4, had: 0 }));
    }
}
