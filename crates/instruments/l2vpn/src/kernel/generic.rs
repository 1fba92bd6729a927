//! Generic netlink: commands to families of the kernel that have names.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use zeroize::Zeroizing;

/// How long the kernel may take to answer.
const LIMIT: Duration = Duration::from_secs(10);

// linux/netlink.h
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Marks an attribute that consists of others.
pub const NESTED: u16 = 1 << 15;
/// Bytes of `struct nlmsghdr` and `struct genlmsghdr`.
const HEADER_LEN: usize = 16;
const GENERIC_LEN: usize = 4;
// linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A text with a zero at its end.
#[must_use]
pub fn with_null(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

/// An attribute: length, type, payload, padding to four bytes.
pub fn attribute(out: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    let len = u16::try_from(payload.len().saturating_add(4)).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(payload);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A connection to the kernel, in the namespace of the calling thread.
fn open() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(GENERIC))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LIMIT))?;
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// Asks a family for something, in the network namespace of the calling thread; its answer, which is the
/// acknowledgement where there is no other. Attributes may be keys: no copy of them stays.
///
/// # Errors
/// The kernel has no such family, or refuses.
pub fn ask(name: &str, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    // A connection each: what was answered to the first is not to be taken for the answer to the second.
    let family = family(&open()?, name)?;
    exchange(&open()?, family, command, attributes)
}

/// The number of a family.
fn family(socket: &OwnedFd, name: &str) -> io::Result<u16> {
    let mut attributes = Vec::new();
    attribute(&mut attributes, CTRL_ATTR_FAMILY_NAME, &with_null(name));
    let answer = exchange(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &attributes)?;
    let attributes = answer.get(HEADER_LEN + GENERIC_LEN..).unwrap_or_default();
    let id = find(attributes, CTRL_ATTR_FAMILY_ID).and_then(|id| id.first_chunk::<2>());
    id.map(|id| u16::from_ne_bytes(*id)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The payload of the first attribute of a kind.
#[must_use]
pub fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let [a, b, c, d] = *attributes.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let payload = attributes.get(4..len)?;
        if u16::from_ne_bytes([c, d]) == kind {
            return Some(payload);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

/// Asks the kernel; its answer, which is the acknowledgement where there is no other.
fn exchange(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let len = HEADER_LEN.saturating_add(GENERIC_LEN).saturating_add(attributes.len());
    let mut message = Zeroizing::new(Vec::with_capacity(len));
    message.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_ne_bytes());
    message.extend_from_slice(&family.to_ne_bytes());
    message.extend_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    // Sequence and port; one request at a time needs neither.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[command, 1, 0, 0]);
    message.extend_from_slice(attributes);
    send(socket, &message, SendFlags::empty())?;
    let mut buffer = vec![0; 1 << 14];
    let (len, _) = recv(socket, &mut *buffer, RecvFlags::empty())?;
    buffer.truncate(len);
    let kind = buffer.get(4..6).and_then(|kind| kind.first_chunk::<2>());
    if kind.map(|kind| u16::from_ne_bytes(*kind)) == Some(NLMSG_ERROR) {
        let code = buffer.get(HEADER_LEN..).and_then(|rest| rest.first_chunk::<4>());
        let code = code.map_or(-5, |code| i32::from_ne_bytes(*code));
        // Above zero it is a number that the command gives.
        if code < 0 {
            return Err(io::Error::from_raw_os_error(code.saturating_neg()));
        }
    }
    Ok(buffer)
}
