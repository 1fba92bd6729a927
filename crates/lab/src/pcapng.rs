//! A capture file in pcapng format.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outfile::OutFile;
use packet::capture::{Captured, Direction};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::PcapNgBlock;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::unknown::UnknownBlock;
use pcap_file::{DataLink, Endianness, PcapError};

use crate::link::End;

const BUFFER: usize = 256 * 1024;

/// if_tsresol 9: stamps count nanoseconds (pcapng §4.2).
const NANOSECONDS: u8 = 9;

/// A Decryption Secrets Block (pcapng §4.7), and in it a TLS key log.
const DECRYPTION_SECRETS: u32 = 10;
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// A file that has its name only when it is complete ([`OutFile`]). Dropped before, it is removed.
pub(crate) struct CaptureFile<W: Write = BufWriter<OutFile>> {
    writer: PcapNgWriter<W>,
    path: PathBuf,
}

impl CaptureFile {
    /// Begins a file of what `end` sees. `command` is noted in it.
    pub(crate) fn create(path: &Path, end: &End, command: &str) -> io::Result<CaptureFile> {
        CaptureFile::begin(path, OutFile::create(path)?, end, command)
    }

    /// As [`CaptureFile::create`], for a name that the user did not type.
    pub(crate) fn create_in_place_of(
        path: &Path,
        end: &End,
        command: &str,
    ) -> io::Result<CaptureFile> {
        CaptureFile::begin(path, OutFile::create_in_place_of(path)?, end, command)
    }

    fn begin(path: &Path, file: OutFile, end: &End, command: &str) -> io::Result<CaptureFile> {
        // Relative to the directory of now, which the program may leave.
        let path = std::path::absolute(path)?;
        let buffered = BufWriter::with_capacity(BUFFER, file);
        Ok(CaptureFile { writer: begin(buffered, end, command)?, path })
    }

    /// Writes what is buffered and gives the file its name.
    pub(crate) fn finish(self) -> io::Result<PathBuf> {
        let file = self.writer.into_inner().into_inner().map_err(io::IntoInnerError::into_error)?;
        file.finish().map(|()| self.path)
    }
}

impl<W: Write> CaptureFile<W> {
    /// Adds TLS secrets, in the format of SSLKEYLOGFILE, for the frames that follow.
    pub(crate) fn secrets(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = u32::try_from(lines.len()).map_err(io::Error::other)?;
        let head = [TLS_KEY_LOG.to_ne_bytes(), length.to_ne_bytes()].concat();
        let body = [&head[..], lines].concat();
        let block = UnknownBlock::new(DECRYPTION_SECRETS, 0, &body);
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(io_error)
    }

    /// Adds a frame.
    pub(crate) fn write(&mut self, frame: &Captured<'_>) -> io::Result<()> {
        // Bits 0 and 1 of the flags: 1 inbound, 2 outbound (pcapng §4.3).
        let flags = match frame.direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(frame.at.as_nanos()),
            original_len: u32::try_from(frame.original_len).unwrap_or(u32::MAX),
            data: Cow::Borrowed(frame.bytes),
            options: vec![EnhancedPacketOption::Flags(flags)],
        };
        self.writer.write_block(&block.into_block()).map(|_| ()).map_err(io_error)
    }
}

fn begin<W: Write>(to: W, end: &End, command: &str) -> io::Result<PcapNgWriter<W>> {
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
    Ok(writer)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
