//! `wiretax_driver.h` in Rust, version 1: names, order and types as there.

use std::ffi::{c_char, c_int, c_void};

/// `WT_ABI`.
pub const ABI: u32 = 1;

/// `WT_OK`.
pub const OK: c_int = 0;
/// `WT_AGAIN`.
pub const AGAIN: c_int = 1;
/// `WT_CLOSED`.
pub const CLOSED: c_int = 2;
/// `WT_ERROR`.
pub const ERROR: c_int = -1;
/// `WT_UNSUPPORTED`.
pub const UNSUPPORTED: c_int = -2;

/// `WT_IO_END`.
pub const IO_END: isize = 0;
/// `WT_IO_AGAIN`.
pub const IO_AGAIN: isize = -1;
/// `WT_IO_BROKEN`.
pub const IO_BROKEN: isize = -2;

/// `WT_TLS_1_2`.
pub const TLS_1_2: u64 = 1 << 2;
/// `WT_TLS_1_3`.
pub const TLS_1_3: u64 = 1 << 3;
/// `WT_EARLY_DATA`.
pub const EARLY_DATA: u64 = 1 << 4;
/// `WT_QUIC_TLS`.
pub const QUIC_TLS: u64 = 1 << 5;
/// `WT_POST_QUANTUM`.
pub const POST_QUANTUM: u64 = 1 << 7;
/// `WT_FIPS`.
pub const FIPS: u64 = 1 << 8;
/// `WT_ECH`.
pub const ECH: u64 = 1 << 10;

/// `struct wt_transport`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Transport {
    /// Given back to both functions.
    pub user: *mut c_void,
    /// Reads.
    pub recv: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize>,
    /// Writes.
    pub send: Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize>,
}

/// `struct wt_pem`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pem {
    /// Not ended by a zero byte.
    pub text: *const c_char,
    /// Its bytes.
    pub len: usize,
}

/// `struct wt_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the header says what they mean")]
pub struct Config {
    pub size: u32,
    pub server: u32,
    pub version: u32,
    pub cipher: u32,
    pub group: u32,
    pub signature: u32,
    pub tickets: u32,
    pub certificate_group: u32,
    pub chain: Pem,
    pub key: Pem,
    pub roots: Pem,
    pub server_name: *const c_char,
}

/// `struct wt_facts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "the header says what they mean")]
pub struct Facts {
    pub size: u32,
    pub version: u32,
    pub cipher: u32,
    pub group: u32,
    pub resumed: u32,
}

/// `wt_context`: only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawContext([u8; 0]);
/// `wt_conn`: only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawConn([u8; 0]);
/// `wt_session`: only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawSession([u8; 0]);

/// `struct wt_driver`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the header says what they mean")]
pub struct Driver {
    pub abi: u32,
    pub size: u32,
    pub library: *const c_char,
    pub version: unsafe extern "C" fn() -> *const c_char,
    pub build_flags: unsafe extern "C" fn() -> *const c_char,
    pub cpu_features: unsafe extern "C" fn() -> *const c_char,
    pub functions: unsafe extern "C" fn() -> u64,
    pub init: unsafe extern "C" fn() -> c_int,
    pub error: unsafe extern "C" fn(*mut c_char, usize),
    pub context_new: unsafe extern "C" fn(*const Config, *mut *mut RawContext) -> c_int,
    pub context_free: unsafe extern "C" fn(*mut RawContext),
    pub conn_new: unsafe extern "C" fn(
        *mut RawContext,
        *const Transport,
        *const RawSession,
        *mut *mut RawConn,
    ) -> c_int,
    pub handshake: unsafe extern "C" fn(*mut RawConn) -> c_int,
    pub read: unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int,
    pub write: unsafe extern "C" fn(*mut RawConn, *const c_void, usize, *mut usize) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut RawConn) -> c_int,
    pub facts: unsafe extern "C" fn(*mut RawConn, *mut Facts) -> c_int,
    pub take_session: unsafe extern "C" fn(*mut RawConn) -> *mut RawSession,
    pub session_free: unsafe extern "C" fn(*mut RawSession),
    pub conn_free: unsafe extern "C" fn(*mut RawConn),
    pub thread_end: Option<unsafe extern "C" fn()>,
}

// SAFETY: a table of functions and of pointers to constants, which nothing changes.
unsafe impl Sync for Driver {}
