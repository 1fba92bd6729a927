//! Sockets with the options that a measurement wants.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::FastOpen;
use crate::Failure;

/// Fast Open connections that may wait at a listener for their third handshake packet.
const FAST_OPEN_QUEUE: libc::c_int = 256;

impl FastOpen {
    /// Sets a client's socket up for it, before connect(): where the kernel has a cookie for the server, or
    /// needs none, connect() returns at once and the SYN leaves with the first bytes that are written. The
    /// network namespace has to allow it (`net.ipv4.tcp_fastopen`, bit 0x1).
    ///
    /// # Errors
    /// [`Failure::Environment`]: the kernel refuses the option.
    pub fn set_on_client(self, socket: BorrowedFd<'_>) -> Result<(), Failure> {
        if self != FastOpen::Off {
            set_tcp_option(socket, libc::TCP_FASTOPEN_CONNECT, 1)
                .map_err(|error| failed("setsockopt TCP_FASTOPEN_CONNECT", &error))?;
        }
        self.set_no_cookie(socket)
    }

    /// Has a listener take data in SYNs, before or after listen(). The network namespace has to allow it
    /// (`net.ipv4.tcp_fastopen`, bit 0x2).
    ///
    /// # Errors
    /// [`Failure::Environment`]: the kernel refuses the option.
    pub fn set_on_listener(self, socket: BorrowedFd<'_>) -> Result<(), Failure> {
        if self != FastOpen::Off {
            set_tcp_option(socket, libc::TCP_FASTOPEN, FAST_OPEN_QUEUE)
                .map_err(|error| failed("setsockopt TCP_FASTOPEN", &error))?;
        }
        self.set_no_cookie(socket)
    }

    fn set_no_cookie(self, socket: BorrowedFd<'_>) -> Result<(), Failure> {
        if self == FastOpen::Cookieless {
            set_tcp_option(socket, libc::TCP_FASTOPEN_NO_COOKIE, 1)
                .map_err(|error| failed("setsockopt TCP_FASTOPEN_NO_COOKIE", &error))?;
        }
        Ok(())
    }
}

/// A non-blocking TCP socket, TCP_NODELAY set, that may put data into its SYN as `fast_open` says.
pub(super) fn client(server: SocketAddr, fast_open: FastOpen) -> Result<Socket, Failure> {
    let socket = stream_socket(server)?;
    fast_open.set_on_client(socket.as_fd())?;
    Ok(socket)
}

/// A listener at `address` only (IPv6: no IPv4 through it).
pub(super) fn listener(
    address: SocketAddr,
    backlog: i32,
    fast_open: FastOpen,
) -> Result<std::net::TcpListener, Failure> {
    let socket = stream_socket(address)?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(|error| failed("setsockopt IPV6_V6ONLY", &error))?;
    }
    // A server that is started again must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true).map_err(|error| failed("setsockopt SO_REUSEADDR", &error))?;
    socket.bind(&address.into()).map_err(|error| failed("bind", &error))?;
    fast_open.set_on_listener(socket.as_fd())?;
    socket.listen(backlog).map_err(|error| failed("listen", &error))?;
    Ok(socket.into())
}

/// Sends without waiting, straight to the kernel.
pub(super) fn send(socket: &impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send_with_flags(bytes, libc::MSG_NOSIGNAL)
}

fn stream_socket(address: SocketAddr) -> Result<Socket, Failure> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| failed("socket", &error))?;
    socket.set_nonblocking(true).map_err(|error| failed("fcntl O_NONBLOCK", &error))?;
    socket.set_tcp_nodelay(true).map_err(|error| failed("setsockopt TCP_NODELAY", &error))?;
    Ok(socket)
}

fn set_tcp_option(socket: BorrowedFd<'_>, option: i32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads one int from `value`, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn failed(call: &'static str, error: &io::Error) -> Failure {
    Failure::from_io(call, "opening the socket", error)
}
