//! A capture file in pcapng format.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outfile::OutFile;
use packet::RingStatistics;
use packet::capture::{Captured, Direction};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::PcapNgBlock;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::name_resolution::{
    Ipv4Record, Ipv6Record, NameResolutionBlock, Record,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::unknown::UnknownBlock;
use pcap_file::{DataLink, Endianness, PcapError};
use units::Time;

use crate::comments::{Comments, Held};
use crate::link::End;

const BUFFER: usize = 256 * 1024;

/// if_tsresol 9: stamps count nanoseconds (pcapng §4.2).
const NANOSECONDS: u8 = 9;

/// A Decryption Secrets Block (pcapng §4.7), and in it a TLS key log.
const DECRYPTION_SECRETS: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// An Interface Statistics Block and its options (pcapng §4.6).
const INTERFACE_STATISTICS: u32 = 5;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// A file that has its name only when it is complete ([`OutFile`]). Dropped before, it is removed.
pub(crate) struct CaptureFile<W: Write = BufWriter<OutFile>> {
    writer: PcapNgWriter<W>,
    comments: Comments,
    path: PathBuf,
}

impl CaptureFile {
    /// Begins a file of what `end` sees, with the names of the nodes at its links. `command` is noted in it.
    pub(crate) fn create(
        path: &Path,
        end: &End,
        names: &[End],
        command: &str,
    ) -> io::Result<CaptureFile> {
        CaptureFile::begin(path, OutFile::create(path)?, end, names, command)
    }

    /// As [`CaptureFile::create`], for a name that the user did not type.
    pub(crate) fn create_in_place_of(
        path: &Path,
        end: &End,
        names: &[End],
        command: &str,
    ) -> io::Result<CaptureFile> {
        CaptureFile::begin(path, OutFile::create_in_place_of(path)?, end, names, command)
    }

    fn begin(
        path: &Path,
        file: OutFile,
        end: &End,
        names: &[End],
        command: &str,
    ) -> io::Result<CaptureFile> {
        // Relative to the directory of now, which the program may leave.
        let path = std::path::absolute(path)?;
        let buffered = BufWriter::with_capacity(BUFFER, file);
        let writer = begin(buffered, end, names, command)?;
        Ok(CaptureFile { writer, comments: Comments::new(), path })
    }

    /// Writes what is held and, at this time, how many frames were lost, if that is known; gives the file its
    /// name.
    pub(crate) fn finish(mut self, counted: Option<(Time, RingStatistics)>) -> io::Result<PathBuf> {
        self.comments.close();
        while let Some(frame) = self.comments.due(true) {
            self.put(&frame)?;
        }
        if let Some((at, counted)) = counted {
            self.statistics(at, counted)?;
        }
        let file = self.writer.into_inner().into_inner().map_err(io::IntoInnerError::into_error)?;
        file.finish().map(|()| self.path)
    }
}

impl<W: Write> CaptureFile<W> {
    /// Adds TLS secrets, in the format of SSLKEYLOGFILE, for the frames that follow.
    pub(crate) fn secrets(&mut self, lines: &[u8]) -> io::Result<()> {
        self.comments.secrets(lines);
        let length = u32::try_from(lines.len()).map_err(io::Error::other)?;
        let head = [TLS_KEY_LOG.to_ne_bytes(), length.to_ne_bytes()].concat();
        let body = [&head[..], lines].concat();
        let block = UnknownBlock::new(DECRYPTION_SECRETS, 0, &body);
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(io_error)
    }

    /// Adds a frame. It is written when its comments are known.
    pub(crate) fn write(&mut self, frame: &Captured<'_>) -> io::Result<()> {
        self.comments.take(frame);
        while let Some(frame) = self.comments.due(false) {
            self.put(&frame)?;
        }
        Ok(())
    }

    fn put(&mut self, frame: &Held) -> io::Result<()> {
        // Bits 0 and 1 of the flags: 1 inbound, 2 outbound (pcapng §4.3).
        let flags = match frame.direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let comments = frame.comments.iter();
        let comments = comments.map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text)));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(frame.at.as_nanos()),
            original_len: u32::try_from(frame.original_len).unwrap_or(u32::MAX),
            data: Cow::Borrowed(&frame.bytes),
            options: comments.chain([EnhancedPacketOption::Flags(flags)]).collect(),
        };
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(io_error)
    }

    /// An Interface Statistics Block. pcap-file writes its time in the wrong order of words, hence by hand.
    fn statistics(&mut self, at: Time, counted: RingStatistics) -> io::Result<()> {
        let nanos = at.as_nanos();
        let mut body = Vec::new();
        body.extend(0u32.to_ne_bytes());
        for half in [(nanos >> 32) as u32, nanos as u32] {
            body.extend(half.to_ne_bytes());
        }
        for (code, count) in [(ISB_IFRECV, counted.frames), (ISB_IFDROP, counted.drops)] {
            body.extend(code.to_ne_bytes());
            body.extend(8u16.to_ne_bytes());
            body.extend(count.to_ne_bytes());
        }
        // opt_endofopt.
        body.extend([0; 4]);
        let block = UnknownBlock::new(INTERFACE_STATISTICS, 0, &body);
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(io_error)
    }
}

fn begin<W: Write>(to: W, end: &End, names: &[End], command: &str) -> io::Result<PcapNgWriter<W>> {
    let section = SectionHeaderBlock {
        endianness: Endianness::native(),
        options: vec![
            SectionHeaderOption::OS(Cow::Borrowed("Linux")),
            SectionHeaderOption::UserApplication(Cow::Borrowed("wiretax")),
            SectionHeaderOption::Comment(Cow::Owned(command.to_owned())),
        ],
        ..SectionHeaderBlock::default()
    };
    let mut writer = PcapNgWriter::with_section_header(to, section).map_err(io_error)?;
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Owned(end.interface.clone())),
            InterfaceDescriptionOption::IfDescription(Cow::Owned(format!("node {}", end.node))),
            InterfaceDescriptionOption::IfMacAddr(Cow::Owned(end.mac.to_vec())),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    writer.write_block(&interface.into_block()).map_err(io_error)?;
    let records: Vec<Record<'_>> = names.iter().flat_map(name_records).collect();
    if !records.is_empty() {
        let block = NameResolutionBlock { records, options: Vec::new() };
        writer.write_block(&block.into_block()).map_err(io_error)?;
    }
    Ok(writer)
}

/// The node's name at each of its addresses (pcapng §4.5).
fn name_records(end: &End) -> impl Iterator<Item = Record<'_>> {
    end.addresses.iter().map(|prefix| {
        let names = vec![Cow::Borrowed(end.node.as_str())];
        match prefix.address() {
            IpAddr::V4(address) => {
                let ip_addr = Cow::Owned(address.octets().to_vec());
                Record::Ipv4(Ipv4Record { ip_addr, names })
            }
            IpAddr::V6(address) => {
                let ip_addr = Cow::Owned(address.octets().to_vec());
                Record::Ipv6(Ipv6Record { ip_addr, names })
            }
        }
    })
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
