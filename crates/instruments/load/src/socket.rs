//! Sockets of the kind that a load generator needs.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, bind, connect, ipproto,
    recv, send, shutdown, socket_with, sockopt,
};

/// Opens a socket and begins to connect it, without waiting.
pub(crate) fn begin(
    server: SocketAddr,
    source: Option<IpAddr>,
    reset_on_close: bool,
) -> Result<OwnedFd, Errno> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    if reset_on_close {
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    }
    if let Some(source) = source {
        bind_without_port(&socket)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    match connect(&socket, &server) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}

/// The port is chosen by connect(2), which needs it to be free for this server only: bind(2) would
/// need it to be free altogether.
fn bind_without_port(socket: &OwnedFd) -> Result<(), Errno> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value points to `size` bytes that outlive the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Turns Nagle's algorithm off.
pub(crate) fn send_at_once(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(socket, true)
}

/// Ends the sending direction. That it is ended already is as good.
pub(crate) fn end_of_sending(socket: &OwnedFd) {
    let _ = shutdown(socket, Shutdown::Write);
}

/// Sends what the kernel takes.
pub(crate) fn send_some(socket: &OwnedFd, data: &[u8]) -> Result<usize, Errno> {
    send(socket.as_fd(), data, SendFlags::NOSIGNAL)
}

/// Receives what is there; 0 at the end.
pub(crate) fn receive_some(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(socket.as_fd(), buffer, RecvFlags::empty()).map(|(len, _)| len)
}

/// The error that a socket has waiting, if any.
pub(crate) fn pending_error(socket: &OwnedFd) -> Option<Errno> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => None,
        Ok(Err(errno)) | Err(errno) => Some(errno),
    }
}

/// Lets this process open `wanted` files, as far as it may. Says how many it can.
pub fn raise_file_limit(wanted: u64) -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let now = limit.current.unwrap_or(u64::MAX);
    if now >= wanted {
        return now;
    }
    limit.current = Some(wanted.min(most));
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => wanted.min(most),
        Err(_) => now,
    }
}
