//! HPACK (RFC 7541): the header block of a request, and the status in that of a response.
//!
//! Blocks are read in full and nothing of them is kept but what the dynamic table needs: of each entry its size,
//! and its value where it is a status. A table of 4096 bytes has at most 128 entries.

use std::collections::VecDeque;

use super::huffman;

/// The size of the dynamic table that a peer may use (RFC 9113 §6.5.2, the initial value).
const TABLE_SIZE: u32 = 4096;
/// What an entry takes beside its name and value (RFC 7541 §4.1).
const ENTRY_OVERHEAD: u32 = 32;
/// Most bytes of the fields of a block, counted as the table counts them.
const MAX_LIST: u64 = 1 << 20;

/// Bytes of the static table's names, from index 1 on (RFC 7541 Appendix A).
const NAME_LENGTHS: [u32; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14,
    16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10,
    25, 17, 10, 4, 3, 16,
];
/// The static table's statuses: indexes 8 to 14.
const FIRST_STATUS: u32 = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// The block cannot be read: the connection's tables differ from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Broken;

/// A header block, as far as it is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Block {
    /// The value of `:status`.
    pub(super) status: Option<u16>,
    /// Its fields break HTTP/2 (RFC 9113 §8.3): two statuses, one that is no number of three digits, or one
    /// behind other fields.
    pub(super) malformed: bool,
    regular: bool,
}

/// A field: its name's length, whether it is `:status`, its value's length, and the value of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    name: Name,
    value_len: u32,
    /// The value, if it is three digits.
    number: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    len: u32,
    is_status: bool,
    is_pseudo: bool,
}

impl Field {
    fn size(self) -> u32 {
        self.name.len.saturating_add(self.value_len).saturating_add(ENTRY_OVERHEAD)
    }
}

/// The receiving side's state.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The newest first.
    entries: VecDeque<Field>,
    size: u32,
    limit: u32,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { entries: VecDeque::new(), size: 0, limit: TABLE_SIZE }
    }
}

impl Decoder {
    /// Reads a whole block.
    pub(super) fn decode(&mut self, mut input: &[u8]) -> Result<Block, Broken> {
        let (mut block, mut list) = (Block::default(), 0u64);
        let mut begun = false;
        while let Some(first) = input.first().copied() {
            // RFC 7541 §4.2, §6.3: changes of the size come first.
            if first & 0xe0 == 0x20 {
                let limit = integer(&mut input, 5)?;
                if begun || limit > TABLE_SIZE {
                    return Err(Broken);
                }
                self.limit = limit;
                self.evict(0);
                continue;
            }
            begun = true;
            let field = if first & 0x80 != 0 {
                let index = integer(&mut input, 7)?;
                self.field(index)?
            } else {
                let indexed = first & 0x40 != 0;
                let name = match integer(&mut input, if indexed { 6 } else { 4 })? {
                    0 => name(&mut input)?,
                    index => self.field(index)?.name,
                };
                let (value_len, number) = value(&mut input)?;
                let field = Field { name, value_len, number };
                if indexed {
                    self.insert(field);
                }
                field
            };
            list += u64::from(field.size());
            if list > MAX_LIST {
                return Err(Broken);
            }
            block.take(field);
        }
        Ok(block)
    }

    fn field(&self, index: u32) -> Result<Field, Broken> {
        let at = index.checked_sub(1).ok_or(Broken)?;
        let Some(len) = NAME_LENGTHS.get(at as usize) else {
            let at = at as usize - NAME_LENGTHS.len();
            return self.entries.get(at).copied().ok_or(Broken);
        };
        let status = index.checked_sub(FIRST_STATUS).and_then(|at| STATUSES.get(at as usize));
        let name = Name { len: *len, is_status: status.is_some(), is_pseudo: index <= 14 };
        // The values of others are not looked at. Their sizes would count if they were put into the table
        // again, which a field that is indexed as a whole is not.
        Ok(Field { name, value_len: status.map_or(0, |_| 3), number: status.copied() })
    }

    /// RFC 7541 §4.4: an entry larger than the table empties it.
    fn insert(&mut self, field: Field) {
        let size = field.size();
        self.evict(size);
        if size <= self.limit {
            self.size += size;
            self.entries.push_front(field);
        }
    }

    /// Makes room for so many bytes.
    fn evict(&mut self, room: u32) {
        while self.size.saturating_add(room) > self.limit {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size = self.size.saturating_sub(oldest.size());
        }
    }
}

impl Block {
    fn take(&mut self, field: Field) {
        if field.name.is_status {
            let known = field.number.filter(|number| *number >= 100);
            self.malformed |= self.status.is_some() || self.regular || known.is_none();
            self.status = known.or(self.status);
        } else if field.name.is_pseudo {
            // RFC 9113 §8.3.2: a response has no other.
            self.malformed = true;
        } else {
            self.regular = true;
        }
    }
}

/// An integer with a prefix of so many bits (RFC 7541 §5.1).
fn integer(input: &mut &[u8], prefix: u32) -> Result<u32, Broken> {
    let mask = (1u32 << prefix) - 1;
    let mut value = u32::from(byte(input)?) & mask;
    if value < mask {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let next = byte(input)?;
        value += u32::from(next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
    }
    // Above 2^28: longer than any block.
    Err(Broken)
}

fn byte(input: &mut &[u8]) -> Result<u8, Broken> {
    let (first, rest) = input.split_first().ok_or(Broken)?;
    *input = rest;
    Ok(*first)
}

/// The first bytes of a string, and its length.
#[derive(Default)]
struct Text {
    first: [u8; 7],
    len: u32,
}

impl Text {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.first.get_mut(self.len as usize) {
            *place = byte;
        }
        self.len = self.len.saturating_add(1);
    }
}

/// A string literal (RFC 7541 §5.2).
fn text(input: &mut &[u8]) -> Result<Text, Broken> {
    let huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let len = integer(input, 7)? as usize;
    let (bytes, rest) = input.split_at_checked(len).ok_or(Broken)?;
    *input = rest;
    let mut text = Text::default();
    if huffman {
        huffman::decode(bytes, |byte| text.push(byte)).ok_or(Broken)?;
    } else {
        text.len = len as u32;
        text.first.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
    Ok(text)
}

fn name(input: &mut &[u8]) -> Result<Name, Broken> {
    let text = text(input)?;
    let is_status = text.len == 7 && text.first == *b":status";
    Ok(Name { len: text.len, is_status, is_pseudo: text.len > 0 && text.first[0] == b':' })
}

/// The length of a value, and its number if it is three digits.
fn value(input: &mut &[u8]) -> Result<(u32, Option<u16>), Broken> {
    let text = text(input)?;
    let [a, b, c, ..] = text.first;
    let digits = text.len == 3 && [a, b, c].iter().all(u8::is_ascii_digit);
    let digit = |byte: u8| u16::from(byte - b'0');
    Ok((text.len, digits.then(|| digit(a) * 100 + digit(b) * 10 + digit(c))))
}

/// The header block of `GET path`, without references to the dynamic table and without Huffman code: it is
/// the same for each request of each connection.
pub(crate) fn get(scheme: &str, authority: &str, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, if scheme == "http" { 0x86 } else { 0x87 }];
    literal(&mut block, 1, authority);
    match path {
        "/" => block.push(0x84),
        path => literal(&mut block, 4, path),
    }
    literal(&mut block, 58, "wiretax");
    literal(&mut block, 19, "*/*");
    block
}

/// A literal without indexing whose name is in the static table (RFC 7541 §6.2.2).
fn literal(block: &mut Vec<u8>, name: usize, value: &str) {
    push_integer(block, 4, name);
    push_integer(block, 7, value.len());
    block.extend_from_slice(value.as_bytes());
}

fn push_integer(block: &mut Vec<u8>, prefix: u32, value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        block.push(value as u8);
        return;
    }
    block.push(mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        block.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(block: &[u8]) -> Option<u16> {
        Decoder::default().decode(block).unwrap().status
    }

    fn from_hex(text: &str) -> Vec<u8> {
        let digits: String = text.split_whitespace().collect();
        let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(pair).collect()
    }

    /// RFC 7541 §C.5 and §C.6: three responses on a table of 256 bytes, plain and by Huffman code.
    #[test]
    fn the_responses_of_the_rfc_are_read() {
        let plain = [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        ];
        let huffman = [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ];
        for blocks in [plain, huffman] {
            // As if the table's size had been agreed on.
            let mut decoder = Decoder { limit: 256, ..Decoder::default() };
            let sizes = [222, 222, 215];
            for ((block, want), size) in blocks.iter().zip([302, 307, 200]).zip(sizes) {
                let block = decoder.decode(&from_hex(block)).unwrap();
                assert_eq!((block.status, block.malformed), (Some(want), false));
                assert_eq!(decoder.size, size);
            }
        }
    }

    #[test]
    fn a_status_is_read_however_it_is_written() {
        assert_eq!(status(&[0x88]), Some(200));
        assert_eq!(status(&[0x8d]), Some(404));
        // Literals: with indexing, without, never indexed; the name in full.
        assert_eq!(status(b"\x48\x03201"), Some(201));
        assert_eq!(status(b"\x08\x03503"), Some(503));
        assert_eq!(status(b"\x18\x03429"), Some(429));
        assert_eq!(status(b"\x00\x07:status\x03206"), Some(206));
        // From the dynamic table, also by name alone.
        let mut decoder = Decoder::default();
        decoder.decode(b"\x40\x07:status\x03299").unwrap();
        assert_eq!(decoder.decode(&[0xbe]).unwrap().status, Some(299));
        assert_eq!(decoder.decode(b"\x0f\x2f\x03298").unwrap().status, Some(298));
        // Behind a change of the table's size, which drops what is in it.
        assert_eq!(decoder.decode(&[0x20, 0x88]).unwrap().status, Some(200));
        assert_eq!(decoder.decode(&[0xbe]), Err(Broken));
    }

    #[test]
    fn what_breaks_http2_is_malformed() {
        for block in [
            &[0x88, 0x88][..],
            b"\x08\x032xx",
            b"\x08\x04200 ",
            b"\x08\x03099",
            // Behind a field, and a pseudo-header of requests.
            b"\x0f\x27\x01a\x88",
            &[0x88, 0x82],
        ] {
            assert!(Decoder::default().decode(block).unwrap().malformed, "{block:x?}");
        }
        let block = Decoder::default().decode(b"\x0f\x27\x01a").unwrap();
        assert_eq!((block.status, block.malformed), (None, false));
    }

    #[test]
    fn broken_blocks_are_refused() {
        for block in [
            &[0x80][..],
            &[0xbe],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            b"\x48\x05200",
            &[0x88, 0x20],
            &[0x3f, 0xe2, 0x1f],
            &[0x48, 0x81, 0x00],
        ] {
            assert_eq!(Decoder::default().decode(block), Err(Broken), "{block:x?}");
        }
    }

    #[test]
    fn a_request_is_written_as_the_rfc_writes_it() {
        // RFC 7541 §C.2.2 has the form of the path.
        let block = get("https", "a.test", "/x");
        assert!(block.starts_with(b"\x82\x87\x01\x06a.test\x04\x02/x\x0f\x2b\x07wiretax"));
        let block = get("http", &"a".repeat(300), "/");
        assert!(block.starts_with(b"\x82\x86\x01\x7f\xad\x01aaa"), "{block:x?}");
        assert!(block.ends_with(b"\x84\x0f\x2b\x07wiretax\x0f\x04\x03*/*"));
    }

    proptest! {
        #[test]
        fn any_blocks_stay_bounded(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..20)) {
            let mut decoder = Decoder::default();
            for block in &blocks {
                if decoder.decode(block).is_err() { break; }
                prop_assert!(decoder.size <= TABLE_SIZE && decoder.entries.len() <= 128);
                prop_assert_eq!(decoder.size, decoder.entries.iter().map(|entry| entry.size()).sum::<u32>());
            }
        }
    }
}
