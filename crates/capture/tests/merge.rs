//! Several captures as one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Owned, path};
use capture::{Batch, Event, Merge};
use lab_test::Pcap;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Writes a nanosecond pcap of frames that hold a number each.
fn write(path: &Path, frames: &[(u64, u32)]) {
    let mut pcap = Pcap::new(Pcap::ETHERNET);
    for (nanos, number) in frames {
        pcap.push(*nanos, &number.to_le_bytes());
    }
    fs::write(path, pcap.as_bytes()).unwrap();
}

fn read(merge: &mut Merge) -> Vec<Owned> {
    let mut frames = Vec::new();
    while let Some(event) = merge.next().unwrap() {
        if let Event::Frame(frame) = event {
            frames.push(frame.into());
        }
    }
    frames
}

/// The same, several at once.
fn read_batches(merge: &mut Merge) -> Vec<Owned> {
    let mut all = Vec::new();
    while let Some(batch) = merge.next_batch().unwrap() {
        if let Batch::Frames(frames) = batch {
            all.extend(frames.map(Owned::from));
        }
    }
    all
}

fn numbers(paths: &[PathBuf]) -> Vec<u32> {
    let mut merge = Merge::open(paths).unwrap();
    let frames = read(&mut merge);
    let progress = merge.progress();
    assert_eq!(Some(progress.read), progress.of);
    assert_eq!(read_batches(&mut Merge::open(paths).unwrap()), frames);
    frames.iter().map(|frame| u32::from_le_bytes(frame.bytes[..4].try_into().unwrap())).collect()
}

#[test]
fn directions_come_in_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Pcg64::seed_from_u64(7);
    for round in 0..20 {
        // 500 frames at growing times, each in one of the files.
        let files = random.random_range(1..6);
        let mut parts = vec![Vec::new(); files];
        let mut nanos = 1_700_000_000_000_000_000_u64;
        for number in 0..500 {
            nanos += random.random_range(1..2_000_000_000);
            parts[random.random_range(0..files)].push((nanos, number));
        }
        let paths: Vec<PathBuf> =
            (0..files).map(|index| folder.path().join(format!("{round}-{index}"))).collect();
        for (path, frames) in paths.iter().zip(&parts) {
            write(path, frames);
        }
        assert_eq!(numbers(&paths), (0..500).collect::<Vec<u32>>());
    }
}

#[test]
fn rotated_files_may_be_named_in_any_order_and_are_not_all_open_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for file in 0..300_u64 {
        let path = folder.path().join(format!("{file}"));
        let first = 1_700_000_000_000_000_000 + file * 1_000_000_000;
        write(&path, &[(first, 2 * file as u32), (first + 5, 2 * file as u32 + 1)]);
        paths.push(path);
    }
    paths.shuffle(&mut Pcg64::seed_from_u64(1));
    let mut merge = Merge::open(&paths).unwrap();
    let inside = |target: PathBuf| target.starts_with(folder.path());
    let (mut count, mut most) = (0_u32, 0);
    while let Some(event) = merge.next().unwrap() {
        let Event::Frame(frame) = event else { panic!() };
        assert_eq!(frame.bytes, count.to_le_bytes());
        count += 1;
        let descriptors = fs::read_dir("/proc/self/fd").unwrap();
        let open = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        most = most.max(open.filter(|target| inside(target.clone())).count());
    }
    assert_eq!(count, 600);
    assert!(most <= 2, "{most} files open at once");
}

#[test]
fn each_file_keeps_its_own_order() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    // The second frame of `a` is stamped before the first.
    write(&a, &[(5_000, 0), (1_000, 1), (7_000, 4)]);
    write(&b, &[(5_000, 2), (6_000, 3), (7_000, 5)]);
    assert_eq!(numbers(&[a.clone(), b.clone()]), [0, 1, 2, 3, 4, 5]);
    // Of the same time, the file that was given first.
    assert_eq!(numbers(&[b, a]), [2, 0, 1, 3, 5, 4]);
}

#[test]
fn key_logs_come_before_all_frames() {
    let paths = [path("nano.pcap"), path("secrets.pcapng")];
    let mut merge = Merge::open(&paths).unwrap();
    let mut events = Vec::new();
    while let Some(event) = merge.next().unwrap() {
        events.push(match event {
            Event::Frame(frame) => Some(frame.source),
            _ => None,
        });
    }
    assert_eq!(events.first(), Some(&None));
    assert_eq!(events.iter().flatten().count(), 10);
    assert_eq!(events.iter().flatten().filter(|source| **source == 1).count(), 5);
}

#[test]
fn a_damaged_file_ends_alone_and_a_cut_one_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["good", "bad", "cut", "empty"].map(|name| folder.path().join(name));
    let [good, bad, cut, empty] = &names;
    write(good, &[(1, 0), (4, 1), (9, 2)]);
    write(bad, &[(2, 3), (5, 4), (6, 5)]);
    write(cut, &[(3, 6), (7, 7)]);
    write(empty, &[]);
    let mut bytes = fs::read(bad).unwrap();
    bytes[24 + 20 + 8..24 + 20 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(bad, bytes).unwrap();
    let bytes = fs::read(cut).unwrap();
    fs::write(cut, &bytes[..bytes.len() - 1]).unwrap();
    let mut merge = Merge::open(&names).unwrap();
    let (mut seen, mut errors) = (Vec::new(), Vec::new());
    loop {
        match merge.next() {
            Ok(Some(Event::Frame(frame))) => seen.push(frame.bytes[0]),
            Ok(Some(_)) => panic!(),
            Ok(None) => break,
            Err(error) => errors.push(error.to_string()),
        }
    }
    assert_eq!(seen, [0, 3, 6, 1, 2]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("bad cannot be read beyond byte 44"), "{errors:?}");
    assert_eq!(merge.cuts().len(), 1);
    assert!(merge.cuts()[0].name.ends_with("cut") && merge.cuts()[0].offset == 44);
}

#[test]
fn frames_to_be_doubted_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut pcap = Pcap::new(Pcap::ETHERNET);
    for (millis, cut) in [(5_000, false), (4_500, false), (3_999, true), (7_000, true)] {
        pcap.push_cut(millis * 1_000_000, &[0; 60], if cut { 61 } else { 60 });
    }
    // A section with an interface, then a Simple Packet Block of four bytes.
    let words = [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20];
    let simple = [3, 20, 4, 0, 20];
    // Enhanced Packet Blocks with microseconds of the year 2603 and of 1970.
    let enhanced = |high: u32, low: u32| [6, 32, 0, high, low, 0, 0, 32];
    let words = words.iter().chain(&simple).copied();
    let words = words.chain(enhanced(4_650_000, 0)).chain(enhanced(0, 7));
    let pcapng: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    let paths = [folder.path().join("pcap"), folder.path().join("pcapng")];
    fs::write(&paths[0], pcap.as_bytes()).unwrap();
    fs::write(&paths[1], pcapng).unwrap();
    let mut merge = Merge::open(&paths).unwrap();
    assert_eq!(read_batches(&mut merge).len(), 6);
    let doubts = merge.doubts();
    assert_eq!((doubts.cut_short, doubts.out_of_order, doubts.timeless), (2, 1, 1));
    assert_eq!(doubts.misdated, 1);
}
