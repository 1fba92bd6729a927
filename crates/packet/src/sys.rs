//! Thin, checked wrappers over socket options and interface ioctls.

use std::ffi::CString;
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::Error;

/// A plain C value: any bit pattern is valid, no padding is read.
///
/// # Safety
/// Implementors are `repr(C)` integers or structs of integers.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: an integer.
unsafe impl Plain for libc::c_int {}
// SAFETY: a repr(C) struct of four integers of one size.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: a repr(C) struct of two integers of one size.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: a repr(C) struct of integers and a byte array, without padding.
unsafe impl Plain for libc::packet_mreq {}

/// `setsockopt` of a plain value.
pub(crate) fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `getsockopt` of a plain value.
pub(crate) fn get_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `value`, which is that large.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, option, value.as_mut_ptr().cast(), &raw mut len)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed before, and `Plain` allows any bit pattern.
    Ok(unsafe { value.assume_init() })
}

/// A socket, close-on-exec and non-blocking.
pub(crate) fn socket(
    family: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `name` as the kernel wants it.
pub(crate) fn interface_name(name: &str) -> Result<[libc::c_char; libc::IFNAMSIZ], Error> {
    let valid = !name.is_empty()
        && name.len() < libc::IFNAMSIZ
        && name != "."
        && name != ".."
        && !name.bytes().any(|byte| byte == 0 || byte == b'/' || byte.is_ascii_whitespace());
    if !valid {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    let mut bytes = [0; libc::IFNAMSIZ];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(bytes)
}

/// An interface request for `name`, everything else zero.
pub(crate) fn interface_request(name: &str) -> Result<libc::ifreq, Error> {
    let name = interface_name(name)?;
    // SAFETY: `ifreq` is a C struct of integers, arrays and a pointer; all zeroes is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name = name;
    Ok(request)
}

/// The index of interface `name` in the calling thread's network namespace.
///
/// # Errors
/// [`Error::InvalidName`] and [`Error::NoInterface`].
pub fn interface_index(name: &str) -> Result<u32, Error> {
    interface_name(name)?;
    let text = CString::new(name).map_err(|_| Error::InvalidName { name: name.to_owned() })?;
    // SAFETY: `text` is a NUL-terminated string that lives through the call.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(Error::NoInterface { name: name.to_owned() }),
        index => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_would_refuse_are_refused_here() {
        for name in ["", "sixteen-bytes-xx", "a/b", "a b", "..", "nul\0"] {
            assert!(matches!(interface_name(name), Err(Error::InvalidName { .. })), "{name:?}");
        }
        assert!(interface_name("fifteen-bytes-x").is_ok());
    }

    #[test]
    fn a_missing_interface_is_named() {
        let error = interface_index("nowhere0").unwrap_err();
        assert!(error.to_string().contains("nowhere0"), "{error}");
    }

    #[test]
    fn loopback_has_an_index() {
        assert!(interface_index("lo").unwrap() > 0);
    }
}
