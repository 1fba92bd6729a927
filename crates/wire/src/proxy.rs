//! The PROXY protocol's header, versions 1 and 2, by which a proxy names the client before the first byte of
//! its stream (HAProxy's document `proxy-protocol.txt`, §2).

/// The first bytes of version 1 (§2.1).
const TEXT: &[u8; 6] = b"PROXY ";
/// Bytes of the longest header of version 1, its CRLF included (§2.1).
const TEXT_MAX: usize = 107;
/// The first bytes of version 2 (§2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before the addresses: signature, version and command, family, length.
const FIXED: usize = 16;

/// Progress of a [`HeaderReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The header goes on.
    More,
    /// The header ended after so many of the bytes given last.
    End(usize),
    /// The stream begins with no PROXY header.
    NotProxy,
}

/// Finds the end of a PROXY header in a stream, whose bytes may come in any pieces. Keeps 16 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeaderReader {
    /// The first bytes.
    first: [u8; FIXED],
    /// Bytes read.
    len: usize,
    /// The last byte was a carriage return.
    carriage_return: bool,
}

impl HeaderReader {
    /// Whether a stream that begins with `byte` may begin with a header.
    #[must_use]
    pub const fn may_begin(byte: u8) -> bool {
        byte == TEXT[0] || byte == SIGNATURE[0]
    }

    /// Bytes of the header read so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the stream's next bytes. Call it no more once the header has ended.
    pub fn next(&mut self, bytes: &[u8]) -> Progress {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let Some(total) = self.binary_len() {
                let missing = total.saturating_sub(self.len);
                let taken = missing.min(bytes.len().saturating_sub(at));
                self.len = self.len.saturating_add(taken);
                let ended = self.len >= total;
                return if ended {
                    Progress::End(at.saturating_add(taken))
                } else {
                    Progress::More
                };
            }
            if !self.take(*byte) {
                return Progress::NotProxy;
            }
            at = at.saturating_add(1);
            // A header of version 2 without addresses ends with its length.
            if self.binary_len() == Some(self.len) || self.text_ended(*byte) {
                return Progress::End(at);
            }
        }
        Progress::More
    }

    /// Takes one byte of what has no length yet. Whether it fits.
    fn take(&mut self, byte: u8) -> bool {
        let at = self.len;
        if let Some(place) = self.first.get_mut(at) {
            *place = byte;
        }
        self.len = at.saturating_add(1);
        if self.first[0] == TEXT[0] {
            let line = byte.is_ascii_graphic() || byte == b' ' || byte == b'\r';
            let ends = byte == b'\n' && self.carriage_return;
            return self.len <= TEXT_MAX
                && TEXT.get(at).map_or(line || ends, |wanted| *wanted == byte);
        }
        match at {
            0..12 => SIGNATURE.get(at) == Some(&byte),
            // Version 2, and a command that is known.
            12 => byte == 0x20 || byte == 0x21,
            _ => true,
        }
    }

    /// Bytes of a header of version 2, once they are known.
    fn binary_len(&self) -> Option<usize> {
        let is_binary = self.len >= FIXED && self.first[0] == SIGNATURE[0];
        let [.., high, low] = self.first;
        is_binary.then(|| FIXED.saturating_add(u16::from_be_bytes([high, low]).into()))
    }

    /// Whether the line of version 1 has ended with `byte`, the one read last.
    fn text_ended(&mut self, byte: u8) -> bool {
        let ended = self.first[0] == TEXT[0] && self.carriage_return && byte == b'\n';
        self.carriage_return = byte == b'\r';
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 2 with so many bytes of addresses and vectors.
    fn binary(len: u16) -> Vec<u8> {
        let mut header = [&SIGNATURE[..], &[0x21, 0x11], &len.to_be_bytes()].concat();
        header.resize(FIXED + usize::from(len), 0x5a);
        header
    }

    fn read(bytes: &[u8], step: usize) -> (Progress, usize) {
        let mut reader = HeaderReader::default();
        for (number, piece) in bytes.chunks(step).enumerate() {
            match reader.next(piece) {
                Progress::More => {}
                Progress::End(at) => return (Progress::End(at), number * step + at),
                Progress::NotProxy => return (Progress::NotProxy, number),
            }
        }
        (Progress::More, reader.len())
    }

    #[test]
    fn a_header_ends_where_it_says_in_whatever_pieces() {
        let text = b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n".to_vec();
        let headers = [text, b"PROXY UNKNOWN\r\n".to_vec(), binary(0), binary(12), binary(700)];
        for header in headers {
            let stream = [&header[..], &[22, 3, 1]].concat();
            for step in 1..=stream.len() {
                let (progress, end) = read(&stream, step);
                assert!(matches!(progress, Progress::End(_)), "{step}");
                assert_eq!(end, header.len(), "{step}");
            }
            for cut in 1..header.len() {
                assert_eq!(read(&header[..cut], 3).0, Progress::More, "{cut}");
            }
        }
    }

    #[test]
    fn other_streams_have_no_header() {
        let mut wrong_version = binary(12);
        wrong_version[12] = 0x11;
        let mut long = b"PROXY UNKNOWN ".to_vec();
        long.resize(120, b'x');
        let others: [&[u8]; 6] =
            [b"POST / HTTP/1.1", b"\r\n\r\nGET", &wrong_version, &long, b"PROXY \n", &[22, 3]];
        for other in others {
            assert_eq!(read(other, 200).0, Progress::NotProxy, "{other:?}");
        }
        assert!(!HeaderReader::may_begin(22) && HeaderReader::may_begin(b'\r'));
    }
}
