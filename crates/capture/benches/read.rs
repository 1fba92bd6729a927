//! How fast a capture is read from the page cache: alone, with the tracker, and by pcap-file.
#![allow(missing_docs)]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::{Event, Source};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
use tracker::{Limits, LinkType, Tracker};

/// Bytes of each file.
const FILE: usize = 128 << 20;
/// Connections among which the frames are spread.
const FLOWS: u32 = 1000;

/// A TCP segment of the middle of a connection, `len` bytes on the link.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14..16].copy_from_slice(&[0x45, 0]);
    bytes[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 6]);
    bytes[26..30].copy_from_slice(&(0x0a00_0000 + number % FLOWS).to_be_bytes());
    bytes[30..34].copy_from_slice(&[10, 200, 0, 1]);
    bytes[34..38].copy_from_slice(&[0xc0, 0, 1, 0xbb]);
    let sequence = (number / FLOWS).wrapping_mul((len - 54) as u32).wrapping_add(1);
    bytes[38..42].copy_from_slice(&sequence.to_be_bytes());
    // The first of each flow is its SYN.
    let flags = if number < FLOWS { 0x02 } else { 0x10 };
    bytes[38..42].copy_from_slice(&if number < FLOWS { [0; 4] } else { sequence.to_be_bytes() });
    bytes[46..48].copy_from_slice(&[0x50, flags]);
    bytes
}

/// A capture of so many frames, one per microsecond.
fn pcap(path: &Path, len: usize) -> u64 {
    let mut writer = PcapWriter::new(BufWriter::new(File::create(path).unwrap())).unwrap();
    let count = (FILE / (len + 16)) as u32;
    for number in 0..count {
        let at = Duration::from_micros(number.into());
        writer.write_packet(&PcapPacket::new(at, len as u32, &frame(number, len))).unwrap();
    }
    writer.into_writer().flush().unwrap();
    u64::from(count)
}

fn pcapng(path: &Path, len: usize) -> u64 {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut words =
        |words: &[u32]| words.iter().for_each(|w| file.write_all(&w.to_le_bytes()).unwrap());
    words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    words(&[1, 20, 1, 0, 20]);
    let padded = len.next_multiple_of(4);
    let total = (padded + 32) as u32;
    let count = (FILE / (padded + 32)) as u32;
    for number in 0..count {
        for word in [6, total, 0, 0, number, len as u32, len as u32] {
            file.write_all(&word.to_le_bytes()).unwrap();
        }
        let mut bytes = frame(number, len);
        bytes.resize(padded, 0);
        file.write_all(&bytes).unwrap();
        file.write_all(&total.to_le_bytes()).unwrap();
    }
    file.flush().unwrap();
    u64::from(count)
}

fn read(path: &Path, mut each: impl FnMut(capture::Frame<'_>)) {
    let mut source = Source::open(path).unwrap();
    while let Some(event) = source.next().unwrap() {
        if let Event::Frame(frame) = event {
            each(frame);
        }
    }
}

fn track(path: &Path) -> u64 {
    let mut tracker = Tracker::new(Limits::default());
    read(path, |frame| {
        if let Some(link) = LinkType::from_number(frame.link) {
            tracker.handle_packet(frame.at, link, frame.bytes, frame.original_len);
        }
    });
    tracker.counters().frames
}

fn by_pcap_file(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let mut bytes = 0;
    if path.extension().is_some_and(|extension| extension == "pcap") {
        let mut reader = PcapReader::new(file).unwrap();
        while let Some(packet) = reader.next_packet() {
            bytes += packet.unwrap().data.len();
        }
    } else {
        let mut reader = pcap_file::pcapng::PcapNgReader::new(file).unwrap();
        while let Some(block) = reader.next_block() {
            if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
                bytes += packet.data.len();
            }
        }
    }
    bytes
}

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    for (size, len) in [("full", 1514), ("small", 66)] {
        let files: [(PathBuf, u64); 2] = {
            let (a, b) = (folder.path().join("a.pcap"), folder.path().join("b.pcapng"));
            let counts = (pcap(&a, len), pcapng(&b, len));
            [(a, counts.0), (b, counts.1)]
        };
        for (path, count) in &files {
            let format = path.extension().unwrap().to_str().unwrap();
            let bytes = std::fs::metadata(path).unwrap().len();
            let mut group = criterion.benchmark_group(format!("{size}_{format}"));
            group.sample_size(10).measurement_time(Duration::from_secs(1));
            group.warm_up_time(Duration::from_millis(300));
            group.throughput(Throughput::ElementsAndBytes { elements: *count, bytes });
            let id = |name| BenchmarkId::from_parameter(name);
            group.bench_function(id("alone"), |bencher| {
                bencher.iter(|| {
                    let mut sum = 0;
                    read(path, |frame| sum += frame.bytes.len() + frame.at.as_nanos() as usize);
                    black_box(sum)
                });
            });
            group.bench_function(id("with_tracker"), |bencher| bencher.iter(|| track(path)));
            group.bench_function(id("pcap_file"), |bencher| bencher.iter(|| by_pcap_file(path)));
            group.finish();
        }
    }
}

criterion_group!(read_captures, benches);
criterion_main!(read_captures);
