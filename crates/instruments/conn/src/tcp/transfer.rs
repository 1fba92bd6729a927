//! Bytes between a [`Layer`] and a TCP socket: each flight one write.

use std::io;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use units::Time;

use super::{TcpInfo, socket};
use crate::Failure;
use crate::layer::Layer;
use crate::now;
use crate::opening::FirstBytes;

/// Most bytes read in one call: a full TLS record fits.
const READ_SIZE: usize = 18 * 1024;

/// A socket, what lies over it, and what was counted.
pub(super) struct Transfer {
    pub stream: TcpStream,
    pub layer: Layer,
    /// Decrypted bytes of the last read.
    pub data: Vec<u8>,
    /// When the SYN-ACK was seen, if it was.
    pub connected: Option<Time>,
    /// Bytes that the kernel took before it had a SYN-ACK.
    pub syn_bytes: usize,
    pub writes: u32,
    pub partial_writes: u32,
    /// The check of what comes behind STARTTLS.
    pub first: FirstBytes,
    outbound: Vec<u8>,
    inbound: Vec<u8>,
}

impl Transfer {
    pub fn new(stream: TcpStream, layer: Layer) -> Self {
        Transfer {
            stream,
            layer,
            data: Vec::new(),
            connected: None,
            syn_bytes: 0,
            writes: 0,
            partial_writes: 0,
            first: FirstBytes::default(),
            outbound: Vec::new(),
            inbound: vec![0; READ_SIZE],
        }
    }

    pub fn info(&self) -> Result<TcpInfo, Failure> {
        info(&self.stream)
    }

    /// Waits for the SYN-ACK; later calls return at once.
    pub async fn established(&mut self) -> Result<(), Failure> {
        if self.connected.is_some() {
            return Ok(());
        }
        let stream = &self.stream;
        // With a deferred connect the socket was writable before its SYN went out, so readiness alone
        // says nothing.
        let looked = stream.async_io(Interest::WRITABLE, || {
            let info = TcpInfo::of(std::os::fd::AsFd::as_fd(stream))?;
            if info.is_connecting() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        looked
            .await
            .map_err(|error| Failure::from_io("getsockopt TCP_INFO", CONNECTING, &error))?;
        let time = now();
        if let Some(error) = self.stream.take_error().ok().flatten() {
            return Err(Failure::from_io("connect", CONNECTING, &error));
        }
        self.connected = Some(time);
        Ok(())
    }

    /// Writes what the layer has, in one call if the kernel takes it. The time is that just before the
    /// call; `None` if there was nothing to write.
    pub async fn flush(&mut self) -> Result<Option<Time>, Failure> {
        self.outbound.clear();
        self.layer.write(&mut self.outbound)?;
        if self.outbound.is_empty() {
            return Ok(None);
        }
        let time = now();
        self.writes += 1;
        let mut written = match socket::send(&self.stream, &self.outbound) {
            Ok(count) => count,
            Err(error) if is_not_yet(&error) => 0,
            Err(error) => return Err(Failure::from_io("send", SENDING, &error)),
        };
        if self.connected.is_none() {
            self.syn_bytes = written;
        }
        if written < self.outbound.len() {
            self.partial_writes += 1;
        }
        self.established().await?;
        while let Some(rest) = self.outbound.get(written..).filter(|rest| !rest.is_empty()) {
            let stream = &self.stream;
            let sent = stream.async_io(Interest::WRITABLE, || socket::send(stream, rest)).await;
            written += sent.map_err(|error| Failure::from_io("send", SENDING, &error))?;
        }
        Ok(Some(time))
    }

    /// Reads once: `data` then holds what it decrypted to. `false` at the end of the stream.
    pub async fn read(&mut self, during: &'static str) -> Result<bool, Failure> {
        self.data.clear();
        let count = loop {
            let ready = self.stream.readable().await;
            ready.map_err(|error| Failure::from_io("poll", during, &error))?;
            match self.stream.try_read(&mut self.inbound) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Failure::from_io("recv", during, &error)),
            }
        };
        let bytes = self.inbound.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(false);
        }
        self.first.check(bytes)?;
        self.layer.read(bytes)?;
        self.layer.receive(&mut self.data)?;
        Ok(true)
    }

    /// Reads once before `deadline`, and drops the bytes: behind this side's end they may be anything, as
    /// Exim goes on in plaintext there. `false` at the end of the stream.
    pub async fn discard(&mut self, deadline: Instant) -> bool {
        let ready = timeout_at(deadline, self.stream.readable()).await;
        match ready.map(|ready| ready.and_then(|()| self.stream.try_read(&mut self.inbound))) {
            Ok(Ok(count)) => count > 0,
            Ok(Err(error)) => error.kind() == io::ErrorKind::WouldBlock,
            Err(_) => false,
        }
    }

    /// Takes bytes that were read with something else: `data` then holds what they decrypt to.
    pub fn take_in(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.data.clear();
        self.layer.read(bytes)?;
        self.layer.receive(&mut self.data)?;
        Ok(())
    }

    /// Sends what the layer still has (an alert, close_notify) if the kernel takes it at once, then FIN.
    pub fn finish(&mut self) {
        self.outbound.clear();
        // The connection is over: what cannot be sent now is of no use.
        if self.layer.write(&mut self.outbound).is_ok() && !self.outbound.is_empty() {
            self.writes += 1;
            let _ = socket::send(&self.stream, &self.outbound);
        }
        let _ = socket2::SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write);
    }
}

const CONNECTING: &str = "connecting";
const SENDING: &str = "sending";

pub(super) fn info(stream: &TcpStream) -> Result<TcpInfo, Failure> {
    TcpInfo::of(std::os::fd::AsFd::as_fd(stream))
        .map_err(|error| Failure::from_io("getsockopt TCP_INFO", CONNECTING, &error))
}

/// The kernel will take the bytes later: buffer full, or the SYN with the cookie request is out.
fn is_not_yet(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::EINPROGRESS)
}
