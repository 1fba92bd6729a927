//! ESP in UDP (RFC 3948), which the kernel takes off where a socket says so.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;

use crate::sys;

// linux/udp.h
const UDP_ENCAP: libc::c_int = 100;
const UDP_ENCAP_ESPINUDP: libc::c_int = 2;

/// Has the kernel take ESP out of the datagrams that come to this socket, as long as it is open.
///
/// # Errors
/// The kernel has no IPsec.
pub fn decapsulate_esp(socket: &UdpSocket) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP)
}
