//! A connection's bytes over TCP on loopback.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Type};

use crate::driver::{Io, Transport};

/// The server's first bytes that are kept for proof: a hello and a chain.
const KEPT: usize = 8 << 10;

/// A socket that never blocks.
pub(crate) struct Socket {
    stream: TcpStream,
    kept: Option<RefCell<Vec<u8>>>,
}

impl Socket {
    /// An accepted connection.
    pub(crate) fn accepted(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        Self { stream, kept: None }
    }

    /// A connection to a server, whose first bytes are kept.
    pub(crate) fn connecting(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, kept: Some(RefCell::new(Vec::with_capacity(2 << 10))) })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Looks at the server's first bytes.
    pub(crate) fn first_bytes<R>(&self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.kept.as_ref().map(|kept| look(&kept.borrow()))
    }
}

impl Transport for Socket {
    fn recv(&self, bytes: &mut [u8]) -> Io {
        match (&self.stream).read(bytes) {
            Ok(0) => Io::End,
            Ok(len) => {
                if let Some(kept) = &self.kept {
                    let mut kept = kept.borrow_mut();
                    let room = KEPT.saturating_sub(kept.len()).min(len);
                    kept.extend_from_slice(bytes.get(..room).unwrap_or_default());
                }
                Io::Moved(len)
            }
            Err(error) => again(&error),
        }
    }

    fn send(&self, bytes: &[u8]) -> Io {
        match (&self.stream).write(bytes) {
            Ok(len) => Io::Moved(len),
            Err(error) => again(&error),
        }
    }
}

fn again(error: &io::Error) -> Io {
    match error.kind() {
        // A connection that is not there yet says so too.
        ErrorKind::WouldBlock | ErrorKind::NotConnected | ErrorKind::Interrupted => Io::Again,
        _ => Io::Broken,
    }
}

/// A listener on loopback; `port` 0 for any. Several of them share a port when asked to.
pub(crate) fn listen(port: u16, shared: bool) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(1024)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Has the connection reset when it is closed, so that no port waits for late segments
/// (RFC 9293 §3.6.1): the other side has ended already.
pub(crate) fn reset_on_close(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}
