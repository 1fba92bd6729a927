//! How fast a capture becomes records, on one thread and on two: from the page cache, 10,000 connections of
//! which each has opened, then packets in their middle, small ones and full-size ones.
#![allow(missing_docs)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use capture::Merge;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use observe::reading::{Reading, SinkOptions};
use pcap_file::pcap::{PcapPacket, PcapWriter};
use study::Nobody;

/// Bytes of each file; few where it is only tried, in a build that is not optimised.
const FILE: usize = if cfg!(debug_assertions) { 8 << 20 } else { 256 << 20 };
/// Connections among which the frames are spread.
const FLOWS: u32 = 10_000;

/// A TCP segment of a connection, `len` bytes on the link: a SYN, a byte from each side, then any.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let (flow, turn) = (number % FLOWS * 7919 % FLOWS, number / FLOWS);
    let mut bytes = vec![0; len];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..16].copy_from_slice(&[0x45, 0]);
    bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 6]);
    let (client, server) = (0x0a00_0000 + flow, 0x0ac8_0001_u32);
    let from_client = turn != 2 && turn % 2 == 1 || turn == 0;
    let (from, to) = if from_client { (client, server) } else { (server, client) };
    let ports: [u8; 4] = if from_client { [0xc0, 0, 1, 0xbb] } else { [1, 0xbb, 0xc0, 0] };
    bytes[26..30].copy_from_slice(&from.to_be_bytes());
    bytes[30..34].copy_from_slice(&to.to_be_bytes());
    bytes[34..38].copy_from_slice(&ports);
    let sequence = if turn == 0 { 0 } else { 1 + (turn / 2) * (len as u32 - 54) };
    bytes[38..42].copy_from_slice(&sequence.to_be_bytes());
    bytes[46..48].copy_from_slice(&[0x50, if turn == 0 { 0x02 } else { 0x10 }]);
    bytes
}

/// A capture of so many frames, one per microsecond.
fn write(path: &Path, len: usize) -> u64 {
    let mut writer = PcapWriter::new(BufWriter::new(File::create(path).unwrap())).unwrap();
    let count = (FILE / (len + 16)) as u32;
    for number in 0..count {
        let at = Duration::from_micros(number.into());
        writer.write_packet(&PcapPacket::new(at, len as u32, &frame(number, len))).unwrap();
    }
    writer.into_writer().flush().unwrap();
    u64::from(count)
}

fn read(path: &Path, threads: usize) -> u64 {
    let mut reading = Reading::open(SinkOptions::default(), 1_000_000, threads).unwrap();
    reading.files(&mut Merge::open(&[path]).unwrap(), &mut Nobody::default()).unwrap();
    reading.finish().unwrap().counters.frames
}

fn threads(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    for (size, len) in [("small", 66), ("full", 1514)] {
        let path = folder.path().join(size);
        let frames = write(&path, len);
        let bytes = std::fs::metadata(&path).unwrap().len();
        let mut group = criterion.benchmark_group(format!("threads/{size}"));
        group.sample_size(10).measurement_time(Duration::from_secs(2));
        group.warm_up_time(Duration::from_millis(300));
        group.throughput(Throughput::ElementsAndBytes { elements: frames, bytes });
        for count in [1, 2] {
            group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                bencher.iter(|| assert_eq!(read(&path, count), frames));
            });
        }
        group.finish();
        std::fs::remove_file(&path).unwrap();
    }
}

criterion_group!(benches, threads);
criterion_main!(benches);
