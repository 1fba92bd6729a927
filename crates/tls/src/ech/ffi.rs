//! `ech.c` of the crate `awslc-ssl`, and what owns its pointers.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::NonNull;
use std::ffi::CString;

// So that it is linked.
use awslc_ssl as _;

use crate::Error;
use crate::error::config;

/// What AWS-LC takes and gives by pointer alone.
mod raw {
    #[repr(C)]
    pub struct Keys([u8; 0]);
    #[repr(C)]
    pub struct Context([u8; 0]);
    #[repr(C)]
    pub struct Connection([u8; 0]);
}

unsafe extern "C" {
    fn wiretax_ech_error(text: *mut c_char, len: usize);
    fn wiretax_ech_free(bytes: *mut u8);
    fn wiretax_ech_keys_new(
        number: u8,
        public_name: *const c_char,
        longest_name: usize,
        list: *mut *mut u8,
        list_len: *mut usize,
    ) -> *mut raw::Keys;
    fn wiretax_ech_keys_free(keys: *mut raw::Keys);
    fn wiretax_ech_server(
        groups: *const c_char,
        leaf: *const u8,
        leaf_len: usize,
        key: *const u8,
        key_len: usize,
        keys: *mut raw::Keys,
    ) -> *mut raw::Context;
    fn wiretax_ech_client(groups: *const c_char) -> *mut raw::Context;
    fn wiretax_ech_add(
        to: *mut raw::Context,
        is_server: c_int,
        certificate: *const u8,
        len: usize,
    ) -> c_int;
    fn wiretax_ech_context_free(context: *mut raw::Context);
    fn wiretax_ech_accept(of: *mut raw::Context) -> *mut raw::Connection;
    fn wiretax_ech_connect(
        of: *mut raw::Context,
        name: *const c_char,
        list: *const u8,
        list_len: usize,
        placeholder: c_int,
    ) -> *mut raw::Connection;
    fn wiretax_ech_connection_free(connection: *mut raw::Connection);
    fn wiretax_ech_feed(connection: *mut raw::Connection, bytes: *const u8, len: usize) -> c_int;
    fn wiretax_ech_take(connection: *mut raw::Connection, bytes: *mut u8, len: usize) -> usize;
    fn wiretax_ech_step(connection: *mut raw::Connection) -> c_int;
    fn wiretax_ech_accepted(connection: *const raw::Connection) -> c_int;
    fn wiretax_ech_name(connection: *const raw::Connection) -> *const c_char;
    fn wiretax_ech_retry(connection: *const raw::Connection, len: *mut usize) -> *const u8;
}

/// What a step of a handshake came to: `enum` in `ech.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Failed,
    More,
    Done,
    Rejected,
}

/// What AWS-LC says of the last call that failed on this thread.
pub(super) fn failed() -> Error {
    let mut text = [0_u8; 256];
    // SAFETY: the text is as long as is said, and the call writes no more, with a zero byte at the end.
    unsafe { wiretax_ech_error(text.as_mut_ptr().cast(), text.len()) };
    let detail = CStr::from_bytes_until_nul(&text)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned());
    Error::AwsLc { detail }
}

fn text(of: &str) -> Result<CString, Error> {
    CString::new(of).map_err(|_| config("a name has a zero byte"))
}

/// Owns `SSL_ECH_KEYS`.
#[derive(Debug)]
pub(super) struct Keys(NonNull<raw::Keys>);

// SAFETY: AWS-LC counts references to keys atomically, and after `new` nothing changes them.
unsafe impl Send for Keys {}
// SAFETY: as above.
unsafe impl Sync for Keys {}

impl Keys {
    /// New keys, and their ECHConfigList.
    pub(super) fn new(
        number: u8,
        public_name: &str,
        longest_name: u8,
    ) -> Result<(Self, Vec<u8>), Error> {
        let name = text(public_name)?;
        let (mut list, mut len) = (core::ptr::null_mut(), 0);
        // SAFETY: the name ends by a zero byte, and the call writes to the two places alone.
        let keys = unsafe {
            wiretax_ech_keys_new(
                number,
                name.as_ptr(),
                longest_name.into(),
                &raw mut list,
                &raw mut len,
            )
        };
        let keys = Keys(NonNull::new(keys).ok_or_else(failed)?);
        // SAFETY: the call has made keys, and so a list of `len` bytes that is the caller's; it is copied, then freed.
        let bytes = unsafe {
            let bytes = core::slice::from_raw_parts(list, len).to_vec();
            wiretax_ech_free(list);
            bytes
        };
        Ok((keys, bytes))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned, and not used again.
        unsafe { wiretax_ech_keys_free(self.0.as_ptr()) }
    }
}

/// Owns `SSL_CTX`.
#[derive(Debug)]
pub(super) struct Context(NonNull<raw::Context>);

// SAFETY: an SSL_CTX may be used by many threads once it is configured, and `add` needs it alone.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn server(
        groups: &str,
        leaf: &[u8],
        key: &[u8],
        keys: Option<&Keys>,
    ) -> Result<Self, Error> {
        let groups = text(groups)?;
        let keys = keys.map_or(core::ptr::null_mut(), |keys| keys.0.as_ptr());
        // SAFETY: the text ends by a zero byte, both slices are as long as is said, and the keys live; the call copies
        // what it keeps, or takes a reference of its own.
        let made = unsafe {
            wiretax_ech_server(
                groups.as_ptr(),
                leaf.as_ptr(),
                leaf.len(),
                key.as_ptr(),
                key.len(),
                keys,
            )
        };
        NonNull::new(made).map(Context).ok_or_else(failed)
    }

    pub(super) fn client(groups: &str) -> Result<Self, Error> {
        let groups = text(groups)?;
        // SAFETY: the text ends by a zero byte.
        let made = unsafe { wiretax_ech_client(groups.as_ptr()) };
        NonNull::new(made).map(Context).ok_or_else(failed)
    }

    /// A certificate of a server's chain, or one that a client trusts.
    pub(super) fn add(&mut self, is_server: bool, certificate: &[u8]) -> Result<(), Error> {
        let (bytes, len) = (certificate.as_ptr(), certificate.len());
        // SAFETY: the context lives and nobody else uses it; the slice is as long as is said, and is copied.
        let done = unsafe { wiretax_ech_add(self.0.as_ptr(), is_server.into(), bytes, len) };
        if done == 1 { Ok(()) } else { Err(failed()) }
    }

    pub(super) fn accept(&self) -> Result<Connection, Error> {
        // SAFETY: the context lives; the connection takes a reference of its own.
        let made = unsafe { wiretax_ech_accept(self.0.as_ptr()) };
        NonNull::new(made).map(Connection).ok_or_else(failed)
    }

    pub(super) fn connect(
        &self,
        name: &str,
        list: Option<&[u8]>,
        placeholder: bool,
    ) -> Result<Connection, Error> {
        let name = text(name)?;
        let (bytes, len) = list.map_or((core::ptr::null(), 0), |list| (list.as_ptr(), list.len()));
        // SAFETY: the context lives, the name ends by a zero byte, and the list is null or as long as is said; all is
        // copied.
        let made = unsafe {
            wiretax_ech_connect(self.0.as_ptr(), name.as_ptr(), bytes, len, placeholder.into())
        };
        NonNull::new(made).map(Connection).ok_or_else(failed)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned, and not used again; connections have references of their own.
        unsafe { wiretax_ech_context_free(self.0.as_ptr()) }
    }
}

/// Owns `SSL`.
pub(super) struct Connection(NonNull<raw::Connection>);

// SAFETY: an SSL may go from thread to thread; it is used by one at a time, since what changes it needs `&mut`.
unsafe impl Send for Connection {}

impl Connection {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // SAFETY: the connection lives, the slice is as long as is said, and is copied.
        let done = unsafe { wiretax_ech_feed(self.0.as_ptr(), bytes.as_ptr(), bytes.len()) };
        if done == 1 { Ok(()) } else { Err(failed()) }
    }

    /// Appends what waits for the peer.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        let mut chunk = [0; 4096];
        loop {
            // SAFETY: the connection lives, and the call writes at most as many bytes as the chunk has.
            let len = unsafe { wiretax_ech_take(self.0.as_ptr(), chunk.as_mut_ptr(), chunk.len()) };
            match chunk.get(..len) {
                Some(taken) if !taken.is_empty() => out.extend_from_slice(taken),
                _ => return,
            }
        }
    }

    pub(super) fn step(&mut self) -> Step {
        // SAFETY: the connection lives.
        match unsafe { wiretax_ech_step(self.0.as_ptr()) } {
            0 => Step::More,
            1 => Step::Done,
            2 => Step::Rejected,
            _ => Step::Failed,
        }
    }

    pub(super) fn accepted(&self) -> bool {
        // SAFETY: the connection lives, and the call only reads it.
        unsafe { wiretax_ech_accepted(self.0.as_ptr()) == 1 }
    }

    pub(super) fn name(&self) -> Option<String> {
        // SAFETY: the connection lives. The name is null or a string with an end that lives as long as the connection,
        // and it is copied before this borrow ends.
        unsafe {
            let name = wiretax_ech_name(self.0.as_ptr());
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// The list that a server gave. Only after [`Step::Rejected`].
    pub(super) fn retry(&self) -> Option<Vec<u8>> {
        let mut len = 0;
        // SAFETY: the connection lives. The list is of `len` bytes and lives as long as the connection; it is copied
        // before this borrow ends.
        unsafe {
            let list = wiretax_ech_retry(self.0.as_ptr(), &raw mut len);
            (!list.is_null() && len > 0).then(|| core::slice::from_raw_parts(list, len).to_vec())
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned, and not used again.
        unsafe { wiretax_ech_connection_free(self.0.as_ptr()) }
    }
}
