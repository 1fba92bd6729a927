//! A connection's bytes, as callbacks of the drivers' interface.

use std::ffi::c_void;

use crate::abi;

/// Where a connection's bytes come from and go to.
pub trait Transport {
    /// Reads some bytes, at least one.
    fn recv(&self, bytes: &mut [u8]) -> Io;
    /// Takes some bytes, at least one.
    fn send(&self, bytes: &[u8]) -> Io;
}

/// What a transport did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Io {
    /// It moved so many bytes.
    Moved(usize),
    /// There are no bytes now, or no room: call again later.
    Again,
    /// No more bytes will come.
    End,
    /// It broke off.
    Broken,
}

impl Io {
    fn raw(self) -> isize {
        match self {
            Self::Moved(len) => isize::try_from(len).unwrap_or(abi::IO_BROKEN),
            Self::Again => abi::IO_AGAIN,
            Self::End => abi::IO_END,
            Self::Broken => abi::IO_BROKEN,
        }
    }
}

pub(super) unsafe extern "C" fn recv<T: Transport>(
    user: *mut c_void,
    bytes: *mut c_void,
    len: usize,
) -> isize {
    if len == 0 || bytes.is_null() {
        return abi::IO_BROKEN;
    }
    // SAFETY: `user` is the transport that the connection owns; the library gave room for `len` bytes.
    let (transport, bytes) =
        unsafe { (&*user.cast::<T>(), std::slice::from_raw_parts_mut(bytes.cast::<u8>(), len)) };
    transport.recv(bytes).raw()
}

pub(super) unsafe extern "C" fn send<T: Transport>(
    user: *mut c_void,
    bytes: *const c_void,
    len: usize,
) -> isize {
    if len == 0 || bytes.is_null() {
        return abi::IO_BROKEN;
    }
    // SAFETY: as in `recv`.
    let (transport, bytes) =
        unsafe { (&*user.cast::<T>(), std::slice::from_raw_parts(bytes.cast::<u8>(), len)) };
    transport.send(bytes).raw()
}
