//! `wiretax_driver.h` in Rust, version 1: names, order and types as there, without what stands at the ends of structures for
//! Encrypted Client Hello, which these drivers are not asked for: the structures' sizes say so.

use std::ffi::{c_char, c_int, c_void};

/// `WT_ABI`: the version of the interface, which a driver and its host must share.
pub const ABI: u32 = 1;

/// `WT_OK`: the call did what it was asked to.
pub const OK: c_int = 0;
/// `WT_AGAIN`: the transport has no more bytes, or no more room; to be called again later.
pub const AGAIN: c_int = 1;
/// `WT_CLOSED`: the peer ended in order, by close_notify (RFC 8446 §6.1).
pub const CLOSED: c_int = 2;
/// `WT_ERROR`: it failed, and [`Driver::error`] says why on the same thread.
pub const ERROR: c_int = -1;
/// `WT_UNSUPPORTED`: the library cannot do what the configuration asks for.
pub const UNSUPPORTED: c_int = -2;

/// `WT_IO_END`: what a transport's recv returns when no more bytes will come.
pub const IO_END: isize = 0;
/// `WT_IO_AGAIN`: no bytes, or no room, for now.
pub const IO_AGAIN: isize = -1;
/// `WT_IO_BROKEN`: the connection broke off.
pub const IO_BROKEN: isize = -2;

/// `WT_SESSIONS_TICKETS`: sessions are resumed by tickets, and the server keeps none.
pub const SESSIONS_TICKETS: u32 = 0;
/// `WT_SESSIONS_CACHE`: by their IDs, from the library's own cache (TLS 1.2).
pub const SESSIONS_CACHE: u32 = 1;
/// `WT_SESSIONS_EXTERNAL`: by their IDs, from a store outside the library (TLS 1.2).
pub const SESSIONS_EXTERNAL: u32 = 2;
/// `WT_SESSIONS_HELD`: sessions that a server's cache or store has room for.
pub const SESSIONS_HELD: usize = 20_480;

/// `WT_TLS_1_2`: it can be pinned to TLS 1.2 (RFC 5246).
pub const TLS_1_2: u64 = 1 << 2;
/// `WT_TLS_1_3`: it can be pinned to TLS 1.3 (RFC 8446).
pub const TLS_1_3: u64 = 1 << 3;
/// `WT_EARLY_DATA`: it has an interface for 0-RTT data (RFC 8446 §2.3).
pub const EARLY_DATA: u64 = 1 << 4;
/// `WT_QUIC_TLS`: it has an interface for QUIC stacks of others (RFC 9001).
pub const QUIC_TLS: u64 = 1 << 5;
/// `WT_POST_QUANTUM`: it has the group X25519MLKEM768.
pub const POST_QUANTUM: u64 = 1 << 7;
/// `WT_FIPS`: this build has its FIPS module.
pub const FIPS: u64 = 1 << 8;
/// `WT_ECH`: it has Encrypted Client Hello.
pub const ECH: u64 = 1 << 10;
/// `WT_SESSION_CACHE`: it can do [`SESSIONS_CACHE`], and as a client session IDs.
pub const SESSION_CACHE: u64 = 1 << 11;
/// `WT_SESSION_STORE`: it can do [`SESSIONS_EXTERNAL`], and as a client session IDs.
pub const SESSION_STORE: u64 = 1 << 12;

/// `struct wt_transport`: where a connection's bytes come from and go to, until it is freed.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Transport {
    /// The caller's, given back to both functions as it is.
    pub user: *mut c_void,
    /// Reads up to so many bytes: their number (1 or more), or one of `IO_*`.
    pub recv: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize>,
    /// Takes up to so many bytes: their number (1 or more), or [`IO_AGAIN`] or [`IO_BROKEN`].
    pub send: Option<unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize>,
}

/// `struct wt_pem`: certificates or a key in PEM (RFC 7468).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Pem {
    /// Where it begins; no zero byte ends it. Null where the side has none.
    pub text: *const c_char,
    /// Bytes that the text has.
    pub len: usize,
}

/// `struct wt_config`: what a context is to do. Its pointers are valid while the context is made.
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
    pub sessions: u32,
}

/// `struct wt_facts`: what a finished handshake has agreed on, in IANA's numbers.
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

/// `wt_context`: a driver's own, only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawContext([u8; 0]);
/// `wt_conn`: a driver's own, only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawConn([u8; 0]);
/// `wt_session`: a driver's own, only ever behind a pointer.
#[derive(Debug)]
#[repr(C)]
pub struct RawSession([u8; 0]);

/// `struct wt_driver`: the table that a driver exports, none of whose functions may be missing but the last.
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
