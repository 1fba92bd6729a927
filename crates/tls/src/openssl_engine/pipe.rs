//! The transport that OpenSSL reads and writes: two buffers in memory.

use std::io::{self, Read, Write};

use crate::MAX_BUFFERED;

/// Room for records that OpenSSL adds by itself (handshake, tickets, alerts) over the caller's data.
const SLACK: usize = 1 << 18;

/// Two buffers in memory, of bytes that came and bytes that are to go.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    incoming: Vec<u8>,
    read: usize,
    outgoing: Vec<u8>,
}

impl Pipe {
    /// Adds bytes that came. OpenSSL reads them all before it asks for more, so they do not pile up.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.incoming.drain(..self.read);
        self.read = 0;
        self.incoming.extend_from_slice(bytes);
    }

    pub(super) fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    pub(super) fn take_outgoing(&mut self, out: &mut Vec<u8>) -> usize {
        let len = self.outgoing.len();
        out.append(&mut self.outgoing);
        len
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let waiting = self.incoming.get(self.read..).unwrap_or_default();
        let len = waiting.len().min(into.len());
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        into[..len].copy_from_slice(&waiting[..len]);
        self.read += len;
        Ok(len)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Encryption adds 22 bytes to at most 16 KiB (RFC 8446 §5.2); a peer that makes us answer
        // without end while nothing is written out is cut off here.
        if self.outgoing.len() + bytes.len() > MAX_BUFFERED + SLACK {
            return Err(io::Error::other("too many bytes wait to be written"));
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
