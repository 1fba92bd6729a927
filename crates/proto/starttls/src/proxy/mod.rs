//! Proxies that open a TCP connection: HTTP's CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928).

mod address;
mod base64;
mod error;
mod http;
mod socks5;

use std::time::Duration;

pub use address::{Address, AddressError, Credentials, Scheme};
pub use error::Error;

use crate::input::Input;

/// The next step of a client.
#[derive(Debug)]
enum Next {
    /// More bytes are needed.
    Wait,
    /// These bytes go out, and an answer is awaited.
    Say(Vec<u8>),
    /// The connection is made.
    Made,
}

/// A client's half of the dialog with a proxy. The caller moves the bytes.
pub struct Tunnel {
    kind: Kind,
    input: Input,
    output: Vec<u8>,
    is_done: bool,
}

enum Kind {
    Http(http::Connect),
    Socks5(socks5::Socks5),
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel").field("is_done", &self.is_done).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// Begins a dialog that asks `proxy` for a connection to `host` (a DNS name, which the proxy
    /// resolves, or an address without brackets) and `port`.
    ///
    /// # Errors
    /// [`Error::Target`]: SOCKS5 carries no name longer than 255 bytes, and neither proxy one with spaces
    /// or control characters.
    pub fn new(proxy: &Address, host: &str, port: u16) -> Result<Self, Error> {
        let is_odd = |byte: u8| !byte.is_ascii_graphic();
        if host.is_empty() || host.len() > 255 || host.bytes().any(is_odd) {
            return Err(Error::Target);
        }
        let credentials = proxy.credentials.as_ref();
        let (kind, output) = match proxy.scheme {
            Scheme::Http => (
                Kind::Http(http::Connect::new(credentials)),
                http::request(host, port, credentials),
            ),
            Scheme::Socks5 => {
                let begun = socks5::Socks5::new(host, port, credentials.cloned());
                let greeting = begun.greeting();
                (Kind::Socks5(begun), greeting)
            }
        };
        Ok(Self { kind, input: Input::default(), output, is_done: false })
    }

    /// Takes the bytes to send now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Whether the connection is made.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Takes bytes that came behind the proxy's answer: they are the server's.
    pub fn take_rest(&mut self) -> Vec<u8> {
        self.input.take_rest()
    }

    /// Reads bytes of the proxy.
    ///
    /// # Errors
    /// [`Error`]: there is no connection.
    pub fn input(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.input.push(bytes) {
            return Err(Error::TooMuch);
        }
        while !self.is_done {
            let next = match &mut self.kind {
                Kind::Http(connect) => connect.read(&mut self.input)?,
                Kind::Socks5(socks) => socks.read(&mut self.input)?,
            };
            match next {
                Next::Wait => return Ok(()),
                Next::Say(output) => self.output.extend(output),
                Next::Made => self.is_done = true,
            }
        }
        Ok(())
    }

    /// The error of a proxy that closed the connection.
    #[must_use]
    pub fn closed(&self) -> Error {
        Error::Closed
    }

    /// The error of a proxy that was silent for `after`.
    #[must_use]
    pub fn silent(&self, after: Duration) -> Error {
        Error::Silent { after }
    }
}
