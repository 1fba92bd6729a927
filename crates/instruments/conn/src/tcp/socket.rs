//! Sockets with the options that a measurement wants.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::FastOpen;
use crate::Failure;

/// A non-blocking TCP socket, TCP_NODELAY set, that may put data into its SYN as `fast_open` says.
pub(super) fn client(server: SocketAddr, fast_open: FastOpen) -> Result<Socket, Failure> {
    let socket = stream_socket(server)?;
    if fast_open != FastOpen::Off {
        set_tcp_option(socket.as_fd(), libc::TCP_FASTOPEN_CONNECT, 1)
            .map_err(|error| failed("setsockopt TCP_FASTOPEN_CONNECT", &error))?;
    }
    if fast_open == FastOpen::Cookieless {
        set_no_cookie(&socket)?;
    }
    Ok(socket)
}

/// A listener at `address` only (IPv6: no IPv4 through it). `queue` is how many Fast Open connections
/// may wait for the end of their handshake; 0 is none.
pub(super) fn listener(
    address: SocketAddr,
    backlog: i32,
    fast_open: FastOpen,
    queue: u16,
) -> Result<std::net::TcpListener, Failure> {
    let socket = stream_socket(address)?;
    if address.is_ipv6() {
        socket.set_only_v6(true).map_err(|error| failed("setsockopt IPV6_V6ONLY", &error))?;
    }
    // A server that is started again must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true).map_err(|error| failed("setsockopt SO_REUSEADDR", &error))?;
    socket.bind(&address.into()).map_err(|error| failed("bind", &error))?;
    if fast_open != FastOpen::Off {
        set_tcp_option(socket.as_fd(), libc::TCP_FASTOPEN, queue.into())
            .map_err(|error| failed("setsockopt TCP_FASTOPEN", &error))?;
    }
    if fast_open == FastOpen::Cookieless {
        set_no_cookie(&socket)?;
    }
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

fn set_no_cookie(socket: &Socket) -> Result<(), Failure> {
    set_tcp_option(socket.as_fd(), libc::TCP_FASTOPEN_NO_COOKIE, 1)
        .map_err(|error| failed("setsockopt TCP_FASTOPEN_NO_COOKIE", &error))
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
