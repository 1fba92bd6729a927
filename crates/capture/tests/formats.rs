//! Every format, as other tools write it.

use std::borrow::Cow;
use std::time::Duration;

use crate::common::{Owned, bytes, content, frames, path, read_all, read_bytes};
use capture::format::Problem;
use capture::{Error, Merge, Source};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::PcapNgBlock;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, TsResolution};

const LENGTHS: [usize; 5] = [60, 61, 1514, 14, 63];
const NANOS: [u64; 5] = [
    1_700_000_000_000_000_001,
    1_700_000_000_123_456_789,
    1_700_000_000_999_999_999,
    1_700_000_001_500_000_000,
    1_699_999_999_000_001_000,
];

/// What text2pcap was given.
fn plain(link: u32, interface: u32, unit: u64) -> Vec<Owned> {
    let frame = |(number, (nanos, len)): (usize, (&u64, &usize))| Owned {
        nanos: nanos / unit * unit,
        link,
        bytes: content(number, *len),
        len: *len,
        interface,
        source: 0,
    };
    NANOS.iter().zip(&LENGTHS).enumerate().map(frame).collect()
}

#[test]
fn wiresharks_files_are_read_exactly() {
    assert_eq!(frames("plain.pcapng"), plain(1, 0, 1));
    assert_eq!(frames("nano.pcap"), plain(1, 0, 1));
    assert_eq!(frames("micro.pcap"), plain(1, 0, 1_000));
    let snapped: Vec<Owned> = plain(1, 0, 1)
        .into_iter()
        .map(|frame| Owned { bytes: frame.bytes.into_iter().take(40).collect(), ..frame })
        .collect();
    assert_eq!(frames("snapped.pcapng"), snapped);
    let both = [plain(1, 0, 1), plain(101, 1, 1)].concat();
    assert_eq!(frames("two.pcapng"), both);
    assert_eq!(frames("sections.pcapng"), both);
}

#[test]
fn compressed_files_are_told_by_content() {
    for name in ["nano.pcap.gz", "nano.pcap.zst", "members.pcap.gz", "frames.pcap.zst"] {
        assert_eq!(frames(name), plain(1, 0, 1), "{name}");
        // Under whatever name, or none.
        assert_eq!(read_bytes(bytes(name)).frames, plain(1, 0, 1), "{name}");
    }
}

#[test]
fn a_key_log_comes_before_the_frames() {
    let read = read_all(Source::open(&path("secrets.pcapng")).unwrap());
    let line = format!("CLIENT_RANDOM {} {}\n", "00".repeat(32), "11".repeat(48));
    assert_eq!(read.key_logs, [line.into_bytes()]);
    assert_eq!(read.frames, plain(1, 0, 1));
}

#[test]
fn the_modified_format_is_refused_by_name() {
    let error = Source::open(&path("modified.pcap")).unwrap_err();
    assert!(error.to_string().contains("Kuznetzov"), "{error}");
    assert!(matches!(error, Error::Format { offset: 0, problem: Problem::Foreign(_), .. }));
}

/// tshark's time as nanoseconds; a Simple Packet Block has none there.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + fraction.parse::<u64>().ok()?)
}

#[test]
fn blocks_of_all_kinds_are_read_as_tshark_reads_them() {
    let text = String::from_utf8(bytes("hand.tshark.tsv")).unwrap();
    let tshark: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    // A custom block is a record for tshark; it has no interface.
    let tshark: Vec<_> = tshark.iter().filter(|line| !line[3].is_empty()).collect();
    let (little, big) = (frames("hand-le.pcapng"), frames("hand-be.pcapng"));
    assert_eq!(little, big);
    assert_eq!(little.len(), tshark.len());
    for (number, (ours, theirs)) in little.iter().zip(tshark).enumerate() {
        assert_eq!(ours.bytes, content(number, theirs[1].parse().unwrap()));
        assert_eq!(ours.len, theirs[2].parse::<usize>().unwrap());
        let before = number.checked_sub(1).map(|before| little[before].nanos);
        assert_eq!(Some(ours.nanos), nanos(theirs[0]).or(before), "{number}");
    }
    // Numbers go on in the second section.
    let interfaces: Vec<u32> = little.iter().map(|frame| frame.interface).collect();
    assert_eq!(interfaces, [0, 1, 2, 3, 4, 0, 0, 5]);
    assert_eq!(little[2].link, 101);
}

#[test]
fn pcap_files_of_both_orders_and_resolutions() {
    for endianness in [Endianness::Big, Endianness::Little] {
        for (ts_resolution, unit) in
            [(TsResolution::MicroSecond, 1_000), (TsResolution::NanoSecond, 1)]
        {
            let header = PcapHeader { endianness, ts_resolution, ..PcapHeader::default() };
            let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
            for frame in plain(1, 0, 1) {
                let at = Duration::from_nanos(frame.nanos);
                let packet = PcapPacket::new(at, frame.len as u32, &frame.bytes);
                writer.write_packet(&packet).unwrap();
            }
            let read = read_bytes(writer.into_writer());
            assert_eq!(read.frames, plain(1, 0, unit), "{endianness:?} {ts_resolution:?}");
            assert!(read.cut.is_none() && read.error.is_none());
        }
    }
}

#[test]
fn pcapng_files_of_both_orders() {
    for endianness in [Endianness::Big, Endianness::Little] {
        let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed("odd")),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_block(&interface.into_block()).unwrap();
        for frame in plain(1, 0, 1) {
            let block = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: Duration::from_nanos(frame.nanos),
                original_len: frame.len as u32,
                data: Cow::Borrowed(&frame.bytes),
                options: Vec::new(),
            };
            writer.write_block(&block.into_block()).unwrap();
        }
        let read = read_bytes(writer.into_inner());
        assert_eq!(read.frames, plain(1, 0, 1), "{endianness:?}");
        assert!(read.cut.is_none() && read.error.is_none());
    }
}

#[test]
fn progress_counts_stored_bytes() {
    for name in ["nano.pcap", "nano.pcap.gz", "nano.pcap.zst"] {
        let mut source = Source::open(&path(name)).unwrap();
        while source.next().unwrap().is_some() {}
        let progress = source.progress();
        assert_eq!(Some(progress.read), progress.of, "{name}");
        assert_eq!(progress.read, bytes(name).len() as u64, "{name}");
    }
    let mut source = Source::from_reader("pipe", std::io::Cursor::new(bytes("nano.pcap"))).unwrap();
    while source.next().unwrap().is_some() {}
    assert_eq!(source.progress().of, None);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let error = Merge::open(&[path("nowhere.pcap")]).unwrap_err();
    assert!(error.to_string().contains("nowhere.pcap"), "{error}");
    let error = Source::open(&path("README.md")).unwrap_err();
    assert!(matches!(error, Error::Format { problem: Problem::Unknown, .. }), "{error}");
    let error = Source::open(&path("")).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
