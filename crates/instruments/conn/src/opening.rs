//! The dialogs on a TCP connection before TLS: with a proxy, and for STARTTLS.

use std::net::SocketAddr;
use std::time::Duration;

use starttls::proxy::{Address, Tunnel};
use starttls::{Dialog, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::Failure;

/// Bytes read in one call.
const READ_SIZE: usize = 4096;

/// The dialogs on a TCP connection before TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The proxy that the TCP connection leads to; it opens the one to the server.
    pub proxy: Option<Address>,
    /// The protocol that changes to TLS.
    pub starttls: Option<Protocol>,
    /// The server: a DNS name, which the proxy resolves, or an address without brackets.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// The server's name within the protocol (XMPP).
    pub name: String,
}

/// A connection on which TLS may begin.
#[derive(Debug)]
pub struct Opened {
    /// The connection.
    pub stream: TcpStream,
    /// Bytes of the server that came behind the proxy's answer, and were read with it.
    pub rest: Vec<u8>,
    /// The check of the server's first bytes in TLS.
    pub first: FirstBytes,
}

/// A check of the first bytes behind STARTTLS: plaintext there is injected, and no fault of TLS.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstBytes {
    is_awaited: bool,
}

impl FirstBytes {
    /// The check for a connection that `opening` led to.
    #[must_use]
    pub fn behind(opening: Option<&Opening>) -> Self {
        FirstBytes { is_awaited: opening.is_some_and(|opening| opening.starttls.is_some()) }
    }

    /// Checks bytes as they are read; only the first ones count.
    ///
    /// # Errors
    /// [`starttls::Error::Injected`]: they begin no record of TLS.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match bytes.first() {
            None => Ok(()),
            // RFC 8446 §5.1: change_cipher_spec to application_data.
            Some(20..=23) => {
                self.is_awaited = false;
                Ok(())
            }
            Some(_) if !std::mem::take(&mut self.is_awaited) => Ok(()),
            Some(_) => Err(starttls::Error::injected(bytes).into()),
        }
    }
}

/// Connects to `address`, a server's or that of the proxy of `opening`, and says what is to be said before
/// TLS. Gives up after `patience`.
///
/// # Errors
/// The failures of a TCP connection; [`Failure::Proxy`] and [`Failure::Starttls`].
pub async fn open(
    address: SocketAddr,
    opening: Option<&Opening>,
    patience: Duration,
) -> Result<Opened, Failure> {
    let deadline = Instant::now() + patience;
    let connected = timeout_at(deadline, TcpStream::connect(address)).await;
    let connected =
        connected.map_err(|_| Failure::TimedOut { after: patience, timeline: Box::default() })?;
    let mut stream =
        connected.map_err(|error| Failure::from_io("connect", "connecting", &error))?;
    let _ = stream.set_nodelay(true);
    let rest = match opening {
        Some(opening) => opening.pass(&mut stream, patience, deadline).await?,
        None => Vec::new(),
    };
    Ok(Opened { stream, rest, first: FirstBytes::behind(opening) })
}

impl Opening {
    /// Says what is to be said before TLS. Returns bytes of the server that came behind the proxy's
    /// answer; there are none behind a go-ahead of STARTTLS. `patience` is what a failure names.
    pub(crate) async fn pass(
        &self,
        stream: &mut TcpStream,
        patience: Duration,
        deadline: Instant,
    ) -> Result<Vec<u8>, Failure> {
        let mut pipe = Pipe { stream, patience, deadline };
        let rest = match &self.proxy {
            Some(proxy) => pipe.tunnel(Tunnel::new(proxy, &self.host, self.port)?).await?,
            None => Vec::new(),
        };
        let Some(protocol) = self.starttls else { return Ok(rest) };
        let local = pipe.stream.local_addr();
        let local = local.map_err(|error| Failure::from_io("getsockname", PROXY, &error))?;
        pipe.start_tls(Dialog::new(protocol, &self.name, local.ip()), &rest).await?;
        Ok(Vec::new())
    }
}

const PROXY: &str = "asking the proxy";
const STARTTLS: &str = "asking for STARTTLS";

/// A stream that is read until a point in time.
struct Pipe<'a> {
    stream: &'a mut TcpStream,
    patience: Duration,
    deadline: Instant,
}

/// Outcome of a read.
enum Read {
    Bytes(Vec<u8>),
    End,
    Late,
}

impl Pipe<'_> {
    async fn tunnel(&mut self, mut tunnel: Tunnel) -> Result<Vec<u8>, Failure> {
        loop {
            self.write(&tunnel.take_output(), PROXY).await?;
            if tunnel.is_done() {
                return Ok(tunnel.take_rest());
            }
            match self.read(PROXY).await? {
                Read::Bytes(bytes) => tunnel.input(&bytes)?,
                Read::End => return Err(tunnel.closed().into()),
                Read::Late => return Err(tunnel.silent(self.patience).into()),
            }
        }
    }

    async fn start_tls(&mut self, mut dialog: Dialog, rest: &[u8]) -> Result<(), Failure> {
        dialog.input(rest)?;
        loop {
            self.write(&dialog.take_output(), STARTTLS).await?;
            if dialog.is_done() {
                break;
            }
            match self.read(STARTTLS).await? {
                Read::Bytes(bytes) => dialog.input(&bytes)?,
                Read::End => return Err(dialog.closed().into()),
                Read::Late => return Err(dialog.silent(self.patience).into()),
            }
        }
        // Whatever is here already came before this side's ClientHello: it is no TLS.
        let mut buffer = vec![0; READ_SIZE];
        let count = self.stream.try_read(&mut buffer).unwrap_or(0);
        dialog.input(buffer.get(..count).unwrap_or_default())?;
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8], during: &'static str) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        match timeout_at(self.deadline, self.stream.write_all(bytes)).await {
            Ok(written) => written.map_err(|error| Failure::from_io("send", during, &error)),
            Err(_) => Err(Failure::TimedOut { after: self.patience, timeline: Box::default() }),
        }
    }

    async fn read(&mut self, during: &'static str) -> Result<Read, Failure> {
        let mut buffer = vec![0; READ_SIZE];
        match timeout_at(self.deadline, self.stream.read(&mut buffer)).await {
            Ok(Ok(0)) => Ok(Read::End),
            Ok(Ok(count)) => {
                buffer.truncate(count);
                Ok(Read::Bytes(buffer))
            }
            Ok(Err(error)) => Err(Failure::from_io("recv", during, &error)),
            Err(_) => Ok(Read::Late),
        }
    }
}
