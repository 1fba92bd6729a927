//! Any bytes as a capture, compressed or not, from a pipe that gives a few at a time. What is not
//! compressed is read as from one that gives all; a decompressor that finds damage may keep back
//! what it had before.

use std::io::{self, Read};

use capture::format::Reader;
use capture::{Event, Source};

struct Trickle {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Trickle {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(to.len()).min(self.step);
        to[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// What there is to be read, and how it ended.
fn read(bytes: &[u8], step: usize) -> (Vec<Vec<u8>>, Option<String>, Option<u64>) {
    let stream = Trickle { bytes: bytes.to_vec(), at: 0, step };
    let mut source = match Source::from_reader("fuzz", stream) {
        Ok(source) => source,
        Err(error) => return (Vec::new(), Some(error.to_string()), None),
    };
    let mut all = Vec::new();
    let error = loop {
        match source.next() {
            Ok(Some(Event::Frame(frame))) => all.push(frame.bytes.to_vec()),
            Ok(Some(Event::KeyLog(bytes))) => all.push(bytes.to_vec()),
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
        // Few bytes may be compressed from many.
        if all.len() > 10_000 {
            break None;
        }
    };
    (all, error, source.cut().map(|cut| cut.offset))
}

/// As the module says.
pub fn source(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let slowly = read(rest, usize::from(*first) + 1);
    if Reader::recognise(rest).is_ok() {
        assert_eq!(slowly, read(rest, usize::MAX));
    }
}
