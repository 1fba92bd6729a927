//! A dialog with a server, whatever its protocol.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::quote;
use crate::input::Input;
use crate::scripts::{self, Next, Script};
use crate::{Error, Protocol};

/// A client's half of the dialog that leads to TLS. The caller moves the bytes.
pub struct Dialog {
    protocol: Protocol,
    script: Box<dyn Script>,
    input: Input,
    output: Vec<u8>,
    is_done: bool,
}

impl std::fmt::Debug for Dialog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialog")
            .field("protocol", &self.protocol)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

impl Dialog {
    /// Begins a dialog with the server `name` (a DNS name or an address). `client` is this side's
    /// address, by which SMTP's EHLO names it (RFC 5321 §4.1.3).
    #[must_use]
    pub fn new(protocol: Protocol, name: &str, client: IpAddr) -> Self {
        let (script, output) = scripts::begin(protocol, name, client);
        Self { protocol, script, input: Input::default(), output, is_done: false }
    }

    /// Takes the bytes to send now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether TLS may begin, as soon as the output has been sent.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Reads bytes of the server.
    ///
    /// # Errors
    /// [`Error`]: the dialog is over, and TLS must not begin.
    pub fn input(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.is_done && !bytes.is_empty() {
            return Err(Error::injected(bytes));
        }
        if !self.input.push(bytes) {
            return Err(Error::TooMuch);
        }
        while !self.is_done {
            let next = self.script.read(&mut self.input);
            match next.map_err(|error| self.named(error))? {
                Next::Wait => return Ok(()),
                Next::Say(output) => self.say(output)?,
                Next::Go(output) => {
                    self.output.extend(output);
                    self.is_done = true;
                }
            }
        }
        match self.input.rest() {
            [] => Ok(()),
            rest => Err(Error::injected(rest)),
        }
    }

    /// A command goes out. The server may not have answered it already.
    fn say(&mut self, output: Vec<u8>) -> Result<(), Error> {
        let rest = self.input.rest();
        if !rest.is_empty() && !self.script.may_come_unasked(rest) {
            return Err(Error::OutOfTurn { got: quote(rest) });
        }
        self.output.extend(output);
        Ok(())
    }

    /// The error of a server that closed the connection.
    #[must_use]
    pub fn closed(&self) -> Error {
        self.unread().unwrap_or(Error::Closed { awaited: self.script.awaited() })
    }

    /// The error of a server that was silent for `after`.
    #[must_use]
    pub fn silent(&self, after: Duration) -> Error {
        self.unread().unwrap_or(Error::Silent { awaited: self.script.awaited(), after })
    }

    /// Bytes that made no whole message are of another protocol.
    fn unread(&self) -> Option<Error> {
        let rest = self.input.rest();
        let got = (!rest.is_empty()).then(|| quote(rest))?;
        Some(self.named(Error::Malformed { protocol: self.protocol, got }))
    }

    /// Names another protocol by its first bytes.
    fn named(&self, error: Error) -> Error {
        match (&error, self.input.opening()) {
            // RFC 8446 §5.1: an alert or a handshake record.
            (Error::Malformed { .. }, [0x15 | 0x16, 3, ..]) => Error::Tls,
            (Error::Malformed { .. }, opening) if opening.starts_with(b"HTTP/") => Error::Http,
            _ => error,
        }
    }
}
