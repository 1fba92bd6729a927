//! Cuts a byte stream that comes in pieces into records, without a copy.

use wire::tls::{RECORD_HEADER_LEN, RecordHeader};

/// The record layer of one direction.
#[derive(Debug)]
pub(crate) enum RecordReader {
    /// Before or in a header: what there is of it.
    Header { bytes: [u8; RECORD_HEADER_LEN], have: usize },
    /// In a payload: bytes left of it.
    Payload { header: RecordHeader, left: usize },
    /// After bytes that are no record: nothing more can be read.
    Broken,
}

impl Default for RecordReader {
    fn default() -> Self {
        RecordReader::Header { bytes: [0; RECORD_HEADER_LEN], have: 0 }
    }
}

/// A step through the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordEvent<'a> {
    /// A header is complete.
    Begin(RecordHeader),
    /// Payload of the record.
    Payload(RecordHeader, &'a [u8]),
    /// The record is complete.
    End(RecordHeader),
    /// The bytes are no record.
    NotTls,
}

impl RecordReader {
    /// The next event in `input`, from whose front it takes bytes; `None` when it wants more.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<RecordEvent<'a>> {
        match self {
            RecordReader::Header { bytes, have } => {
                while *have < RECORD_HEADER_LEN {
                    let (first, rest) = input.split_first()?;
                    if let Some(to) = bytes.get_mut(*have) {
                        *to = *first;
                    }
                    *have += 1;
                    *input = rest;
                }
                match RecordHeader::parse(bytes) {
                    Ok(header) => {
                        *self = RecordReader::Payload { header, left: header.length.into() };
                        Some(RecordEvent::Begin(header))
                    }
                    Err(_) => {
                        *self = RecordReader::Broken;
                        Some(RecordEvent::NotTls)
                    }
                }
            }
            RecordReader::Payload { header, left: 0 } => {
                let header = *header;
                *self = RecordReader::default();
                Some(RecordEvent::End(header))
            }
            RecordReader::Payload { header, left } => {
                let taken = (*left).min(input.len());
                let (payload, rest) = input.split_at_checked(taken)?;
                if payload.is_empty() {
                    return None;
                }
                *left -= taken;
                *input = rest;
                Some(RecordEvent::Payload(*header, payload))
            }
            RecordReader::Broken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records' types and payloads of a stream that comes in pieces of `step` bytes.
    fn read(bytes: &[u8], step: usize) -> Vec<(u8, Vec<u8>)> {
        let mut reader = RecordReader::default();
        let (mut out, mut payload) = (Vec::new(), Vec::new());
        for mut piece in bytes.chunks(step) {
            while let Some(event) = reader.next(&mut piece) {
                match event {
                    RecordEvent::Begin(_) => payload.clear(),
                    RecordEvent::Payload(_, bytes) => payload.extend_from_slice(bytes),
                    RecordEvent::End(header) => {
                        out.push((header.content_type.number(), payload.clone()));
                    }
                    RecordEvent::NotTls => return out,
                }
            }
        }
        out
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            payloads in proptest::collection::vec((20u8..25, proptest::collection::vec(any::<u8>(), 0..50)), 0..6),
            step in 1usize..40,
        ) {
            let mut bytes = Vec::new();
            for (kind, payload) in &payloads {
                bytes.extend([*kind, 3, 3, 0, payload.len() as u8]);
                bytes.extend_from_slice(payload);
            }
            prop_assert_eq!(read(&bytes, step), payloads);
        }
    }

    #[test]
    fn what_is_no_record_ends_it() {
        assert_eq!(read(b"GET / HTTP/1.1\r\n", 3), []);
    }
}
