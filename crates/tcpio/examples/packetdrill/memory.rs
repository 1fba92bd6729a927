//! What C's arguments point to, and results as C has them.

use std::ffi::{c_int, c_void};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{iovec, size_t, sockaddr, socklen_t, ssize_t};

use super::host::{Errno, Host};

/// # Safety
/// `user` is a table's, and its `free` has not been called.
pub unsafe fn host<'a>(user: *mut c_void) -> &'a Host {
    // SAFETY: `packetdrill_interface_init` made it of a box that `free` alone takes back.
    unsafe { &*user.cast::<Host>() }
}

/// A result as C has it: -1 and errno.
pub fn give<T>(result: Result<T, Errno>, ok: impl FnOnce(T) -> ssize_t) -> ssize_t {
    match result {
        Ok(value) => ok(value),
        Err(error) => {
            // SAFETY: errno is the calling thread's own.
            unsafe { *libc::__errno_location() = error };
            -1
        }
    }
}

pub fn done(result: Result<(), Errno>) -> c_int {
    give(result, |()| 0) as c_int
}

/// # Safety
/// `address` is null or points to `len` bytes of a socket address.
pub unsafe fn address(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if address.is_null() || (len as usize) < size_of::<libc::sockaddr_in>() {
        return Err(libc::EINVAL);
    }
    // SAFETY: there are at least the bytes of a `sockaddr_in`; no alignment is assumed.
    let v4 = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    match c_int::from(v4.sin_family) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 if (len as usize) >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: there are the bytes of a `sockaddr_in6`; no alignment is assumed.
            let v6 = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr).to_canonical();
            Ok(SocketAddr::new(ip, u16::from_be(v6.sin6_port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// # Safety
/// `into` is null, or has room for as many bytes as `len` says.
pub unsafe fn put_address(peer: SocketAddr, into: *mut sockaddr, len: *mut socklen_t) {
    if into.is_null() || len.is_null() {
        return;
    }
    let (bytes, size) = match peer {
        SocketAddr::V4(v4) => {
            let family = (libc::AF_INET as u16).to_ne_bytes();
            let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
            bytes[..2].copy_from_slice(&family);
            bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
            bytes[4..8].copy_from_slice(&v4.ip().octets());
            (bytes, size_of::<libc::sockaddr_in>())
        }
        SocketAddr::V6(v6) => {
            let family = (libc::AF_INET6 as u16).to_ne_bytes();
            let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
            bytes[..2].copy_from_slice(&family);
            bytes[2..4].copy_from_slice(&v6.port().to_be_bytes());
            bytes[8..24].copy_from_slice(&v6.ip().octets());
            (bytes, size_of::<libc::sockaddr_in6>())
        }
    };
    // SAFETY: the caller has room for `*len` bytes, and no more are written.
    unsafe {
        let room = (*len as usize).min(size);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.cast::<u8>(), room);
        *len = size as socklen_t;
    }
}

/// # Safety
/// `data` points to `len` bytes, or `len` is 0.
pub unsafe fn bytes<'a>(data: *const c_void, len: size_t) -> &'a [u8] {
    if data.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller has that many bytes there.
    unsafe { std::slice::from_raw_parts(data.cast(), len) }
}

/// # Safety
/// `into` points to `len` bytes that may be written, or `len` is 0.
pub unsafe fn room<'a>(into: *mut c_void, len: size_t) -> &'a mut [u8] {
    if into.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: the caller has room for that many bytes there.
    unsafe { std::slice::from_raw_parts_mut(into.cast(), len) }
}

/// # Safety
/// `parts` points to `count` vectors.
pub unsafe fn vectors<'a>(parts: *const iovec, count: usize) -> &'a [iovec] {
    if parts.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller has that many vectors there.
    unsafe { std::slice::from_raw_parts(parts, count) }
}
