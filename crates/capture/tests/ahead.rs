//! Files that other threads read ahead give what they give otherwise.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::Owned;
use capture::{Batch, Cut, Merge};
use lab_test::Pcap;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// A nanosecond pcap of about so many bytes: frames of all lengths, some longer than any buffer keeps free
/// for what is left of the block before.
fn pcap(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut pcap = Pcap::new(Pcap::ETHERNET);
    let mut nanos = 1_700_000_000_000_000_000_u64;
    while pcap.as_bytes().len() < len {
        nanos += random.random_range(1..1_000_000);
        let frame: usize = match random.random_range(0..100) {
            0 => random.random_range(60_000..262_144),
            1..20 => random.random_range(1..66_000),
            _ => random.random_range(0..200),
        };
        let at = pcap.as_bytes().len();
        let frame: Vec<u8> = (0..frame).map(|index| (at + index * 7) as u8).collect();
        pcap.push(nanos, &frame);
    }
    pcap.as_bytes().to_vec()
}

/// A pcapng of an interface and secrets of so many bytes.
fn secrets(len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20] {
        bytes.extend(word.to_le_bytes());
    }
    for _ in 0..2 {
        let total = 20 + len as u32;
        for word in [10, total, 0x544c_534b, len as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((0..len).map(|index| (index % 97) as u8));
        bytes.extend(total.to_le_bytes());
    }
    bytes
}

/// What a merge gives: frames, secrets, where it is cut and the error at its end.
type Given = (Vec<Owned>, Vec<Vec<u8>>, Vec<Cut>, Option<String>);

fn read(merge: &mut Merge) -> Given {
    let (mut frames, mut keys, mut error) = (Vec::new(), Vec::new(), None);
    loop {
        match merge.next_batch() {
            Ok(Some(Batch::Frames(some))) => frames.extend(some.map(Owned::from)),
            Ok(Some(Batch::KeyLog(text))) => keys.push(text.to_vec()),
            Ok(Some(other)) => panic!("{other:?}"),
            Ok(None) => break,
            Err(failed) => {
                assert!(error.is_none());
                error = Some(failed.to_string());
            }
        }
    }
    (frames, keys, merge.cuts().to_vec(), error)
}

fn is_the_same(files: &[PathBuf]) -> Given {
    let expected = read(&mut Merge::open(files).unwrap());
    for helpers in [0, 1, 3] {
        let mut merge = Merge::open(files).unwrap();
        let (ahead, done) = (merge.read_ahead(), AtomicBool::new(false));
        let given = thread::scope(|scope| {
            for _ in 0..helpers {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        if !ahead.help() {
                            thread::yield_now();
                        }
                    }
                });
            }
            let given = read(&mut merge);
            done.store(true, Ordering::Relaxed);
            given
        });
        assert!(given == expected, "{files:?}, {helpers} helpers");
        assert_eq!(Some(merge.progress().read), merge.progress().of, "{files:?}");
    }
    expected
}

fn write(path: &Path, bytes: &[u8]) -> PathBuf {
    fs::write(path, bytes).unwrap();
    path.to_owned()
}

#[test]
fn who_reads_makes_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let long = pcap(1, 5_000_000);
    let plain = write(&at("plain"), &long);
    let (frames, ..) = is_the_same(std::slice::from_ref(&plain));
    assert!(frames.len() > 300, "{}", frames.len());
    // Others take turns with it, one of them compressed, which nobody reads ahead.
    let other = write(&at("other"), &pcap(2, 4_000_000));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&pcap(3, 2_000_000)).unwrap();
    let packed = write(&at("packed"), &packed.finish().unwrap());
    let (all, ..) = is_the_same(&[plain, other, packed]);
    assert!(all.len() > frames.len());
    // Cut within a frame, and at the end of a block's worth.
    for len in [long.len() - 1, 3 << 20, 4 << 19, 512 * 1024] {
        let cut = write(&at("cut"), &long[..len]);
        let (_, _, cuts, error) = is_the_same(&[cut]);
        assert_eq!((cuts.len(), error), (1, None), "{len}");
    }
    let keys = write(&at("keys"), &secrets(3 << 20));
    assert_eq!(is_the_same(&[keys]).1.len(), 2);
}

#[test]
fn what_is_damaged_ends_at_the_same_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = pcap(4, 3_000_000);
    bytes.truncate(2_000_000);
    bytes.extend([0xff; 300_000]);
    let path = write(&folder.path().join("damaged"), &bytes);
    let expected = read(&mut Merge::open(&[&path]).unwrap());
    assert!(!expected.0.is_empty() && expected.3.is_some());
    let mut merge = Merge::open(&[&path]).unwrap();
    let ahead = merge.read_ahead();
    let given = thread::scope(|scope| {
        scope.spawn(|| while ahead.help() {});
        read(&mut merge)
    });
    assert!(given == expected);
}
