//! The driver interface as Rust sees it: `drivers/include/wiretax_driver.h`, member by member.

use std::ffi::{c_char, c_int, c_void};

/// `WT_ABI`.
pub(crate) const ABI: u32 = 1;

pub(crate) const OK: c_int = 0;
pub(crate) const AGAIN: c_int = 1;
pub(crate) const CLOSED: c_int = 2;
pub(crate) const UNSUPPORTED: c_int = -2;

pub(crate) const IO_END: isize = 0;
pub(crate) const IO_AGAIN: isize = -1;
pub(crate) const IO_BROKEN: isize = -2;

#[repr(C)]
pub(crate) struct Transport {
    pub(crate) user: *mut c_void,
    pub(crate) recv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize,
    pub(crate) send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize,
}

#[repr(C)]
pub(crate) struct Pem {
    pub(crate) text: *const c_char,
    pub(crate) len: usize,
}

#[repr(C)]
pub(crate) struct Config {
    pub(crate) size: u32,
    pub(crate) server: u32,
    pub(crate) version: u32,
    pub(crate) cipher: u32,
    pub(crate) group: u32,
    pub(crate) signature: u32,
    pub(crate) tickets: u32,
    pub(crate) certificate_group: u32,
    pub(crate) chain: Pem,
    pub(crate) key: Pem,
    pub(crate) roots: Pem,
    pub(crate) server_name: *const c_char,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) cipher: u32,
    pub(crate) group: u32,
    pub(crate) resumed: u32,
}

/// Opaque to us.
#[repr(C)]
pub(crate) struct RawContext([u8; 0]);
/// Opaque to us.
#[repr(C)]
pub(crate) struct RawConn([u8; 0]);
/// Opaque to us.
#[repr(C)]
pub(crate) struct RawSession([u8; 0]);

type Text = unsafe extern "C" fn() -> *const c_char;

#[repr(C)]
pub(crate) struct Driver {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) library: *const c_char,
    pub(crate) version: Option<Text>,
    pub(crate) build_flags: Option<Text>,
    pub(crate) cpu_features: Option<Text>,
    pub(crate) functions: Option<unsafe extern "C" fn() -> u64>,
    pub(crate) init: Option<unsafe extern "C" fn() -> c_int>,
    pub(crate) error: Option<unsafe extern "C" fn(*mut c_char, usize)>,
    pub(crate) context_new:
        Option<unsafe extern "C" fn(*const Config, *mut *mut RawContext) -> c_int>,
    pub(crate) context_free: Option<unsafe extern "C" fn(*mut RawContext)>,
    pub(crate) conn_new: Option<
        unsafe extern "C" fn(
            *mut RawContext,
            *const Transport,
            *const RawSession,
            *mut *mut RawConn,
        ) -> c_int,
    >,
    pub(crate) handshake: Option<unsafe extern "C" fn(*mut RawConn) -> c_int>,
    pub(crate) read:
        Option<unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int>,
    pub(crate) write:
        Option<unsafe extern "C" fn(*mut RawConn, *const c_void, usize, *mut usize) -> c_int>,
    pub(crate) shutdown: Option<unsafe extern "C" fn(*mut RawConn) -> c_int>,
    pub(crate) facts: Option<unsafe extern "C" fn(*mut RawConn, *mut Facts) -> c_int>,
    pub(crate) take_session: Option<unsafe extern "C" fn(*mut RawConn) -> *mut RawSession>,
    pub(crate) session_free: Option<unsafe extern "C" fn(*mut RawSession)>,
    pub(crate) conn_free: Option<unsafe extern "C" fn(*mut RawConn)>,
    pub(crate) thread_end: Option<unsafe extern "C" fn()>,
}
