//! A node's TCP sockets, as the kernel lists them to `ss` (`NETLINK_SOCK_DIAG`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use crate::Error;
use crate::node::Node;

/// Time that the kernel has to answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Most sockets that are read of a node.
const MOST: usize = 4096;
/// Bytes of one answer: the kernel's own limit of a dump's part.
const PART: usize = 32 << 10;

// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER_LEN: usize = 16;
// linux/sock_diag.h, linux/inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Bytes of `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const REQUEST_LEN: usize = 56;
const MESSAGE_LEN: usize = 72;
/// Fields of `SK_MEMINFO`, four bytes each.
const RECEIVE_BUFFER: usize = 1;
const SEND_BUFFER: usize = 3;
/// All states but `TCP_TIME_WAIT` (6) and `TCP_LISTEN` (10).
const STATES: u32 = 0xfff & !(1 << 6) & !(1 << 10);
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;

/// A TCP socket of a node that does not listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// A number that no other socket has, as long as the kernel runs.
    pub cookie: u64,
    /// Its own address.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Bytes of its receive buffer now, the kernel's own structures included.
    pub receive_buffer: Option<u32>,
    /// The same of its send buffer.
    pub send_buffer: Option<u32>,
    /// `struct tcp_info`, as long as the kernel's is.
    pub info: Vec<u8>,
}

impl Node {
    /// The node's TCP sockets that do not listen, at most 4096, over IPv4 and IPv6.
    ///
    /// # Errors
    /// [`Error::Sockets`] if the kernel does not say; [`Error::NodeStopped`].
    pub fn tcp_sockets(&self) -> Result<Vec<TcpSocket>, Error> {
        let read = self.run(|| {
            let mut all = dump(AF_INET)?;
            // A kernel without IPv6 has none.
            all.extend(dump(AF_INET6).unwrap_or_default());
            Ok(all)
        })?;
        read.map_err(|source| Error::Sockets { node: self.name().to_owned(), source })
    }
}

/// The sockets of a family in the namespace of the calling thread.
fn dump(family: u8) -> io::Result<Vec<TcpSocket>> {
    let socket = open()?;
    send(&socket, &request(family), SendFlags::empty())?;
    let mut all = Vec::new();
    let mut buffer = vec![0; PART];
    loop {
        let (len, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if !read(buffer.get(..len).unwrap_or_default(), &mut all)? || all.len() >= MOST {
            return Ok(all);
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LIMIT))?;
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`.
fn request(family: u8) -> Vec<u8> {
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    let len = (HEADER_LEN + REQUEST_LEN) as u32;
    let mut message = Vec::with_capacity(HEADER_LEN + REQUEST_LEN);
    message.extend_from_slice(&len.to_ne_bytes());
    message.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[family, TCP, extensions, 0]);
    message.extend_from_slice(&STATES.to_ne_bytes());
    message.resize(HEADER_LEN + REQUEST_LEN, 0);
    message
}

/// Reads the messages of one answer. Whether more are to come.
fn read(mut bytes: &[u8], all: &mut Vec<TcpSocket>) -> io::Result<bool> {
    while let Some(header) = bytes.first_chunk::<HEADER_LEN>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(payload) = bytes.get(HEADER_LEN..len) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let code = payload.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            SOCK_DIAG_BY_FAMILY => all.extend(socket_of(payload)),
            _ => {}
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// The socket that a `struct inet_diag_msg` and its attributes describe.
fn socket_of(message: &[u8]) -> Option<TcpSocket> {
    let head = message.first_chunk::<MESSAGE_LEN>()?;
    let address = |at: usize| -> Option<IpAddr> {
        match head[0] {
            AF_INET => Some(IpAddr::from(*head.get(at..)?.first_chunk::<4>()?)),
            AF_INET6 => Some(IpAddr::from(*head.get(at..)?.first_chunk::<16>()?)),
            _ => None,
        }
    };
    let port = |at: usize| Some(u16::from_be_bytes(*head.get(at..)?.first_chunk::<2>()?));
    let cookie = u64::from_ne_bytes(*head.get(44..)?.first_chunk::<8>()?);
    let attributes = message.get(MESSAGE_LEN..)?;
    let memory = attribute(attributes, INET_DIAG_SKMEMINFO);
    let field = |number: usize| {
        let bytes = memory?.get(number * 4..)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    Some(TcpSocket {
        cookie,
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        receive_buffer: field(RECEIVE_BUFFER),
        send_buffer: field(SEND_BUFFER),
        info: attribute(attributes, INET_DIAG_INFO)?.to_vec(),
    })
}

/// The payload of the first attribute of a kind.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let head = bytes.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let payload = bytes.get(4..len)?;
        if u16::from_ne_bytes([head[2], head[3]]) == kind {
            return Some(payload);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut message = vec![0; MESSAGE_LEN];
        message[0] = AF_INET;
        message[4..8].copy_from_slice(&[0x1f, 0x90, 0xc0, 0x01]);
        message[8..12].copy_from_slice(&[10, 77, 1, 1]);
        message[24..28].copy_from_slice(&[10, 77, 1, 2]);
        message[44] = 9;
        let attribute = |kind: u16, payload: &[u8]| {
            let len = (payload.len() + 4) as u16;
            [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), payload].concat()
        };
        let memory: Vec<u8> = [5u32, 6000, 7, 8000].iter().flat_map(|n| n.to_ne_bytes()).collect();
        message.extend(attribute(INET_DIAG_SKMEMINFO, &memory));
        message.extend(attribute(INET_DIAG_INFO, &[1, 2, 3, 4, 5, 6, 7, 8]));
        message
    }

    fn framed(kind: u16, payload: &[u8]) -> Vec<u8> {
        let len = (payload.len() + HEADER_LEN) as u32;
        [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], payload].concat()
    }

    #[test]
    fn a_socket_is_read_from_its_message() {
        let mut all = Vec::new();
        assert!(read(&framed(SOCK_DIAG_BY_FAMILY, &message()), &mut all).unwrap());
        let [socket] = &all[..] else { panic!("one socket") };
        assert_eq!(socket.local, "10.77.1.1:8080".parse().unwrap());
        assert_eq!(socket.remote, "10.77.1.2:49153".parse().unwrap());
        assert_eq!((socket.receive_buffer, socket.send_buffer), (Some(6000), Some(8000)));
        assert_eq!((socket.cookie, socket.info.len()), (9, 8));
        assert!(!read(&framed(NLMSG_DONE, &[0; 4]), &mut all).unwrap());
        let refused = framed(NLMSG_ERROR, &(-2i32).to_ne_bytes());
        assert_eq!(read(&refused, &mut all).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_message_cut_anywhere_is_no_panic() {
        let whole = framed(SOCK_DIAG_BY_FAMILY, &message());
        for end in 0..whole.len() {
            let mut all = Vec::new();
            let _ = read(&whole[..end], &mut all);
            assert!(all.is_empty(), "{end}");
        }
        for end in 0..message().len() - 8 {
            assert!(socket_of(&message()[..end]).is_none(), "{end}");
        }
    }
}
