//! What client and server do in the same way: plaintext in and out, and the ends of both.

use std::io::Write;

use rustls::ConnectionCommon;

use crate::session::{Plaintext, check_room};
use crate::{CallerError, Error};

/// Both directions of a connection, as far as they are the same on either side.
#[derive(Default)]
pub(super) struct Flow {
    /// Decrypted, and not yet taken by the caller.
    pub plaintext: Plaintext,
    /// Bytes given by the caller since the last `write_tls`.
    unsent: usize,
    closed: bool,
    /// The peer's close_notify was read.
    pub peer_closed: bool,
}

impl Flow {
    /// Appends what is to go to the transport.
    pub(super) fn write_tls<D>(
        &mut self,
        connection: &mut ConnectionCommon<D>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        while connection.wants_write() {
            connection.write_tls(out).map_err(super::library)?;
        }
        self.unsent = 0;
        Ok(())
    }

    /// Counts `len` bytes that the caller wants to send.
    pub(super) fn admit(&mut self, len: usize) -> Result<(), Error> {
        check_room(self.unsent, len)?;
        self.unsent += len;
        Ok(())
    }

    pub(super) fn send<D>(
        &mut self,
        connection: &mut ConnectionCommon<D>,
        data: &[u8],
    ) -> Result<(), Error> {
        if self.closed {
            return Err(CallerError::Closed.into());
        }
        self.admit(data.len())?;
        connection.writer().write_all(data).map_err(super::library)
    }

    pub(super) fn close<D>(&mut self, connection: &mut ConnectionCommon<D>) {
        if !self.closed {
            self.closed = true;
            connection.send_close_notify();
        }
    }
}
