//! The name/value header block, uncompressed (§2.6.10).

use super::FORMAT;
use crate::{Error, Reader};

/// Pairs up to which duplicates are looked for pair by pair; above, the names are sorted.
const FEW: usize = 24;

/// A view of a header block whose names and values are as §2.6.10 asks: names in lower-case ASCII, none
/// empty, none twice; values without NUL at their ends or two of them in a row; no byte left over.
#[derive(Debug, Clone, Copy)]
pub struct NameValues<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> NameValues<'a> {
    /// A view of `bytes`. It allocates a list of the names if they are many.
    ///
    /// # Errors
    /// What §2.6.10 does not allow.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let said = reader.u32()?;
        let mut count = 0_usize;
        while !reader.is_empty() {
            let (name, value) = (read(&mut reader)?, read(&mut reader)?);
            check_name(name)?;
            check_value(value)?;
            count += 1;
        }
        if u32::try_from(count) != Ok(said) {
            return Err(Error::malformed(FORMAT, "another number of headers than the block says"));
        }
        let block = NameValues { bytes, count };
        if block.has_duplicates() {
            return Err(Error::malformed(FORMAT, "a header name appears twice"));
        }
        Ok(block)
    }

    fn has_duplicates(&self) -> bool {
        let names = || self.iter().map(|(name, _)| name);
        if self.count <= FEW {
            return names()
                .enumerate()
                .any(|(at, name)| names().take(at).any(|other| other == name));
        }
        let mut sorted: Vec<_> = names().collect();
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| matches!(pair, [one, other] if one == other))
    }

    /// The headers in their order.
    #[must_use]
    pub fn iter(&self) -> Pairs<'a> {
        let mut reader = Reader::new(FORMAT, self.bytes);
        let _ = reader.u32();
        Pairs { reader }
    }

    /// The value of a header; of several they are separated by NUL: [`values`] takes them apart.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// How many headers there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The values of a header, which NUL separates (§2.6.10).
pub fn values(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == 0)
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
    let length = reader.u32()?;
    reader.take(usize::try_from(length).unwrap_or(usize::MAX))
}

fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::malformed(FORMAT, "an empty header name"));
    }
    match name.iter().all(|byte| matches!(byte, 1..=0x7f) && !byte.is_ascii_uppercase()) {
        true => Ok(()),
        false => Err(Error::malformed(FORMAT, "a header name that is not lower-case ASCII")),
    }
}

fn check_value(value: &[u8]) -> Result<(), Error> {
    match value.is_empty() || values(value).all(|part| !part.is_empty()) {
        true => Ok(()),
        false => Err(Error::malformed(FORMAT, "a header value with an empty part beside NUL")),
    }
}

/// Walks the headers of a block.
#[derive(Debug, Clone)]
pub struct Pairs<'a> {
    reader: Reader<'a>,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // The block was checked: an error is only the end.
        let name = read(&mut self.reader).ok()?;
        let value = read(&mut self.reader).ok()?;
        Some((str::from_utf8(name).ok()?, value))
    }
}

/// Headers, held as the block that they are on the wire before compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    block: Vec<u8>,
    count: u32,
}

impl Default for Headers {
    fn default() -> Self {
        Headers::new()
    }
}

impl Headers {
    /// An empty block, which counts 0 headers.
    #[must_use]
    pub fn new() -> Self {
        Headers { block: vec![0; 4], count: 0 }
    }

    /// The headers of a block.
    ///
    /// # Errors
    /// As of [`NameValues::new_checked`].
    pub fn from_block(block: Vec<u8>) -> Result<Self, Error> {
        let count = NameValues::new_checked(&block)?.len() as u32;
        Ok(Headers { block, count })
    }

    /// Headers of these names and values.
    ///
    /// # Errors
    /// As of [`Headers::push`].
    pub fn from_pairs<'p>(
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
    ) -> Result<Self, Error> {
        let mut headers = Headers::new();
        pairs.into_iter().try_for_each(|(name, value)| headers.push(name, value.as_bytes()))?;
        Ok(headers)
    }

    /// Adds a header. Several values of one name go into one header, separated by NUL.
    ///
    /// # Errors
    /// A name or value that §2.6.10 does not allow, or a name that is there already.
    pub fn push(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        check_name(name.as_bytes())?;
        check_value(value)?;
        if self.get(name).is_some() {
            return Err(Error::malformed(FORMAT, "a header name appears twice"));
        }
        let too_long = |_| Error::DoesNotFit { format: FORMAT, field: "a header" };
        let name_len = u32::try_from(name.len()).map_err(too_long)?;
        let value_len = u32::try_from(value.len()).map_err(too_long)?;
        self.block.extend_from_slice(&name_len.to_be_bytes());
        self.block.extend_from_slice(name.as_bytes());
        self.block.extend_from_slice(&value_len.to_be_bytes());
        self.block.extend_from_slice(value);
        self.count = self.count.saturating_add(1);
        if let Some(place) = self.block.first_chunk_mut() {
            *place = self.count.to_be_bytes();
        }
        Ok(())
    }

    /// The block before compression: the count, then names and values with their lengths (§2.6.10).
    #[must_use]
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// The headers in their order.
    #[must_use]
    pub fn iter(&self) -> Pairs<'_> {
        self.view().iter()
    }

    /// The value of a header; [`values`] takes several apart.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.view().get(name)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn view(&self) -> NameValues<'_> {
        NameValues { bytes: &self.block, count: self.count as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut bytes = (pairs.len() as u32).to_be_bytes().to_vec();
        for (name, value) in pairs {
            for part in [name, value] {
                bytes.extend((part.len() as u32).to_be_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    #[test]
    fn headers_are_the_block_of_the_figure() {
        let headers = Headers::from_pairs([(":path", "/"), ("a", "")]).unwrap();
        assert_eq!(headers.block(), block(&[(b":path", b"/"), (b"a", b"")]));
        assert_eq!(
            headers.block(),
            [
                &[0, 0, 0, 2, 0, 0, 0, 5][..],
                b":path",
                &[0, 0, 0, 1, b'/', 0, 0, 0, 1, b'a', 0, 0, 0, 0]
            ]
            .concat()
        );
        assert_eq!(headers.get(":path"), Some(&b"/"[..]));
        assert_eq!((headers.get("path"), headers.len()), (None, 2));
        assert_eq!(Headers::from_block(headers.block().to_vec()), Ok(headers));
    }

    #[test]
    fn what_the_draft_forbids_is_refused() {
        let cases: [(&str, Vec<u8>); 12] = [
            ("nothing", vec![]),
            ("an empty name", block(&[(b"", b"v")])),
            ("an upper-case name", block(&[(b"Host", b"v")])),
            ("a name with NUL", block(&[(b"ho\0st", b"v")])),
            ("a name beyond ASCII", block(&[("höst".as_bytes(), b"v")])),
            ("a name twice", block(&[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])),
            ("a value that begins with NUL", block(&[(b"a", b"\0v")])),
            ("a value that ends with NUL", block(&[(b"a", b"v\0")])),
            ("an empty value between", block(&[(b"a", b"v\0\0w")])),
            ("fewer than it says", [&[0, 0, 0, 2][..], &block(&[(b"a", b"v")])[4..]].concat()),
            ("more than it says", [&[0, 0, 0, 0][..], &block(&[(b"a", b"v")])[4..]].concat()),
            ("a length beyond the end", vec![0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, b'a']),
        ];
        for (what, bytes) in cases {
            assert!(NameValues::new_checked(&bytes).is_err(), "{what}");
        }
        assert!(NameValues::new_checked(&block(&[(b"a", b"v\0w"), (b"b", b"")])).is_ok());
        assert_eq!(values(b"v\0w").collect::<Vec<_>>(), [b"v", b"w"]);
    }

    #[test]
    fn a_duplicate_among_many_is_found() {
        let names: Vec<String> = (0..100).map(|n| format!("n{n}")).collect();
        let mut pairs: Vec<(&[u8], &[u8])> =
            names.iter().map(|name| (name.as_bytes(), &b"v"[..])).collect();
        assert_eq!(NameValues::new_checked(&block(&pairs)).unwrap().len(), 100);
        pairs.push((b"n50", b"w"));
        assert!(NameValues::new_checked(&block(&pairs)).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(0u8..9, 0..60)) {
            crate::fuzz::spdy_block(&bytes);
        }

        #[test]
        fn headers_are_read_back(pairs in proptest::collection::btree_map("[a-z:-]{1,9}", "[ -~]{0,20}", 0..40)) {
            let headers = Headers::from_pairs(pairs.iter().map(|(n, v)| (n.as_str(), v.as_str()))).unwrap();
            let read = Headers::from_block(headers.block().to_vec()).unwrap();
            let read: Vec<_> = read.iter().map(|(n, v)| (n.to_owned(), v.to_vec())).collect();
            prop_assert_eq!(read, pairs.into_iter().map(|(n, v)| (n, v.into_bytes())).collect::<Vec<_>>());
        }
    }
}
