//! What the tests share.
#![allow(dead_code)]

use std::io::Cursor;
use std::path::PathBuf;

use capture::{Cut, Error, Event, Frame, Source};

/// A capture in `tests/data`.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// A frame that has left its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub nanos: u64,
    pub link: u32,
    pub bytes: Vec<u8>,
    pub len: usize,
    pub interface: u32,
    pub source: usize,
}

impl From<Frame<'_>> for Owned {
    fn from(frame: Frame<'_>) -> Owned {
        Owned {
            nanos: frame.at.as_nanos(),
            link: frame.link,
            bytes: frame.bytes.to_vec(),
            len: frame.original_len,
            interface: frame.interface,
            source: frame.source,
        }
    }
}

/// Frame `number` of the captures in `tests/data`.
pub fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|index| ((number * 31 + index) & 0xff) as u8).collect()
}

/// All that a source gives.
#[derive(Debug, Default)]
pub struct Read {
    pub frames: Vec<Owned>,
    pub key_logs: Vec<Vec<u8>>,
    pub cut: Option<Cut>,
    pub error: Option<Error>,
}

pub fn read_all(mut source: Source) -> Read {
    let mut read = Read::default();
    loop {
        match source.next() {
            Ok(Some(Event::Frame(frame))) => read.frames.push(frame.into()),
            Ok(Some(Event::KeyLog(bytes))) => read.key_logs.push(bytes.to_vec()),
            Ok(Some(other)) => panic!("{other:?}"),
            Ok(None) => break,
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
    }
    // Whatever happened, there is nothing more.
    assert!(matches!(source.next(), Ok(None)));
    read.cut = source.cut().cloned();
    read
}

pub fn read_bytes(bytes: Vec<u8>) -> Read {
    match Source::from_reader("memory", Cursor::new(bytes)) {
        Ok(source) => read_all(source),
        Err(error) => Read { error: Some(error), ..Read::default() },
    }
}

/// The whole of a file that must be good.
pub fn frames(name: &str) -> Vec<Owned> {
    let read = read_all(Source::open(&path(name)).unwrap());
    assert!(read.error.is_none() && read.cut.is_none(), "{name}: {:?} {:?}", read.error, read.cut);
    read.frames
}
