//! Captures that are cut, damaged or made to harm.

use crate::common::{Read, bytes, frames, read_bytes};
use capture::format::{MAX_CAPTURED, Problem};
use capture::{Error, Source};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const PLAIN: [&str; 6] = [
    "nano.pcap",
    "micro.pcap",
    "two.pcapng",
    "sections.pcapng",
    "secrets.pcapng",
    "hand-be.pcapng",
];
const COMPRESSED: [&str; 4] =
    ["nano.pcap.gz", "nano.pcap.zst", "members.pcap.gz", "frames.pcap.zst"];

/// What was read must be the beginning of what is there.
fn begins(read: &Read, whole: &[crate::common::Owned], what: &str) {
    assert!(read.frames.len() <= whole.len(), "{what}");
    assert_eq!(read.frames, whole[..read.frames.len()], "{what}");
}

#[test]
fn a_file_cut_anywhere_gives_its_whole_frames() {
    for name in PLAIN {
        let (bytes, whole) = (bytes(name), frames(name));
        let mut seen = 0;
        for len in 0..bytes.len() {
            let read = read_bytes(bytes[..len].to_vec());
            let what = format!("{name} cut at {len}");
            begins(&read, &whole, &what);
            // Never fewer than of a shorter piece.
            assert!(read.frames.len() >= seen, "{what}");
            seen = read.frames.len();
            match (read.error, read.cut) {
                (Some(Error::Format { problem: Problem::Empty | Problem::Unknown, .. }), None) => {
                    assert!(len < 4, "{what}");
                }
                (None, Some(cut)) => assert!(cut.offset < len as u64, "{what}: {cut}"),
                // At a border between records.
                (None, None) => assert!(len >= 24, "{what}"),
                (error, cut) => panic!("{what}: {error:?} {cut:?}"),
            }
        }
        let at_end = read_bytes(bytes[..bytes.len() - 1].to_vec());
        assert_eq!(at_end.frames.len() + 1, whole.len(), "{name}: all but the last");
    }
}

// Where each record ends is known in pcap: the count is exact.
#[test]
fn a_cut_is_where_the_record_begins() {
    let (bytes, whole) = (bytes("nano.pcap"), frames("nano.pcap"));
    for len in 24..bytes.len() {
        let (mut at, mut count) = (24, 0);
        while let Some(frame) = whole.get(count)
            && at + 16 + frame.bytes.len() <= len
        {
            at += 16 + frame.bytes.len();
            count += 1;
        }
        let read = read_bytes(bytes[..len].to_vec());
        assert_eq!(read.frames.len(), count);
        assert_eq!(read.cut.map(|cut| cut.offset), (at < len).then_some(at as u64));
    }
}

#[test]
fn a_compressed_file_cut_anywhere_gives_whole_frames() {
    for name in COMPRESSED {
        let (bytes, whole) = (bytes(name), frames(name));
        for len in 4..bytes.len() {
            let read = read_bytes(bytes[..len].to_vec());
            begins(&read, &whole, name);
            // Between members or frames the stream is whole and the capture is cut.
            let reported = read.cut.is_some() || read.error.is_some();
            assert!(reported, "{name} cut at {len}: {} frames", read.frames.len());
        }
    }
}

#[test]
fn flipped_bits_end_in_frames_and_an_error_at_most() {
    let mut random = Pcg64::seed_from_u64(5);
    for name in PLAIN.iter().chain(&COMPRESSED) {
        let (bytes, whole) = (bytes(name), frames(name));
        for _ in 0..2_000 {
            let mut damaged = bytes.clone();
            for _ in 0..random.random_range(1..=4) {
                let at = random.random_range(0..damaged.len());
                damaged[at] ^= 1 << random.random_range(0..8);
            }
            let read = read_bytes(damaged);
            // No frame is shorter than nothing: a file has no more of them than it has headers.
            let most = if COMPRESSED.contains(name) { 2 * whole.len() } else { bytes.len() / 16 };
            assert!(read.frames.len() <= most, "{name}");
            for frame in &read.frames {
                assert!(
                    frame.bytes.len() <= MAX_CAPTURED as usize && frame.len >= frame.bytes.len()
                );
            }
        }
    }
}

#[test]
fn garbage_in_the_middle_is_an_error_with_its_place() {
    let mut bytes = bytes("nano.pcap");
    let third = 24 + 16 + 60 + 16 + 61;
    bytes[third + 8..third + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let read = read_bytes(bytes);
    assert_eq!(read.frames, frames("nano.pcap")[..2]);
    let Some(Error::Format { offset, problem, .. }) = read.error else { panic!() };
    assert_eq!((offset, problem), (third as u64, Problem::FrameLength(u32::MAX)));
}

/// A section header and one interface, little endian.
fn section() -> Vec<u8> {
    let words = [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn with(words: &[u32]) -> Read {
    let mut bytes = section();
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    read_bytes(bytes)
}

fn problem(words: &[u32]) -> Problem {
    match with(words).error {
        Some(Error::Format { offset: 48, problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocks_that_cannot_be_are_refused() {
    // Lengths: too short, no multiple of four, too long, unlike at the end.
    assert_eq!(problem(&[6, 28]), Problem::BlockLength { kind: 6, len: 28 });
    assert_eq!(problem(&[99, 14, 0]), Problem::BlockLength { kind: 99, len: 14 });
    assert_eq!(problem(&[6, u32::MAX - 3]), Problem::BlockLength { kind: 6, len: u32::MAX - 3 });
    assert_eq!(problem(&[10, 17 << 20]), Problem::BlockLength { kind: 10, len: 17 << 20 });
    assert_eq!(problem(&[99, 12, 16]), Problem::BlockEnds { first: 12, last: 16 });
    assert_eq!(problem(&[6, 32, 0, 0, 0, 0, 0, 36]), Problem::BlockEnds { first: 32, last: 36 });
    // A frame longer than its block; longer than any; of no interface; secrets longer than theirs.
    let long = Problem::BlockLength { kind: 6, len: 32 };
    assert_eq!(problem(&[6, 32, 0, 0, 0, 1, 1, 32]), long);
    let most = Problem::FrameLength(MAX_CAPTURED + 1);
    assert_eq!(problem(&[6, 32, 0, 0, 0, MAX_CAPTURED + 1, 0, 32]), most);
    assert_eq!(problem(&[6, 32, 1, 0, 0, 0, 0, 32]), Problem::Interface(1));
    let secrets = Problem::BlockLength { kind: 10, len: 20 };
    assert_eq!(problem(&[10, 20, 0x544c_534b, 1, 20]), secrets);
    // Options that are cut.
    let option = problem(&[1, 24, 1, 0, 9 | 5 << 16, 24]);
    assert_eq!(option, Problem::Option(9));
    assert_eq!(problem(&[0x0a0d_0d0a, 28, 7, 0, 0, 0, 28]), Problem::ByteOrder);
    // A block that is passed over may be longer than any memory: the file ends within it.
    let read = with(&[99, u32::MAX - 3, 0]);
    assert_eq!(read.cut.map(|cut| cut.offset), Some(48));
    // A frame of length 0 is one.
    assert_eq!(with(&[6, 32, 0, 0, 0, 0, 0, 32]).frames.len(), 1);
}

#[test]
fn interfaces_without_end_are_refused() {
    let mut bytes = section();
    for _ in 0..65_535 {
        bytes.extend([1_u32, 20, 1, 0, 20].iter().flat_map(|word| word.to_le_bytes()));
    }
    assert!(read_bytes(bytes.clone()).error.is_none());
    bytes.extend([1_u32, 20, 1, 0, 20].iter().flat_map(|word| word.to_le_bytes()));
    let error = read_bytes(bytes).error;
    assert!(matches!(error, Some(Error::Format { problem: Problem::TooManyInterfaces, .. })));
}

#[test]
fn a_compressed_file_cut_in_its_first_block_is_not_said_to_be_empty() {
    for name in COMPRESSED {
        let read = Source::from_reader(name, std::io::Cursor::new(bytes(name)[..14].to_vec()));
        match read {
            Err(Error::Format { problem: Problem::CutOff, .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}
