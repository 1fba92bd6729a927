//! The driver interface (`wiretax_driver.h`, version 1) over rustls. A driver package picks the
//! provider of cryptography, and exports [`driver`]'s table.
//!
//! A panic does not leave this crate: it becomes an error with the panic's words.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;

pub mod abi;
mod conn;
mod context;
mod session;
mod store;

use abi::{Config, Driver, Facts, RawConn, RawContext, RawSession, Transport};
use conn::{Conn, Step};
use context::Context;
use session::Session;

/// What differs between the drivers.
pub trait Library: 'static {
    /// Its functions, beside those that rustls has with any provider.
    const FUNCTIONS: u64;
    /// Everything that the provider can do.
    fn provider() -> CryptoProvider;
    /// The provider's own way of making stateless tickets, with fresh keys.
    ///
    /// # Errors
    /// No randomness.
    fn ticketer() -> Result<Arc<dyn ProducesTickets>, rustls::Error>;
    /// Versions of rustls and of the provider.
    fn version() -> &'static CStr;
    /// The compiler, and the flags that decide how fast they are.
    fn build_flags() -> &'static CStr;
    /// CPU features that the provider asks for and this processor has; "" where it does not tell.
    fn cpu_features() -> &'static CStr;
}

/// The table for a library.
#[must_use]
pub fn driver<L: Library>() -> *const c_void {
    std::ptr::from_ref(Table::<L>::DRIVER).cast()
}

/// Why a call failed: its text is what `wt_driver.error` gives.
#[derive(Debug)]
pub enum Fail {
    /// What the caller did wrong, or what was not there.
    Text(&'static str),
    /// The same, with what another library says in it.
    Owned(String),
    /// The library cannot do what the configuration asks: `WT_UNSUPPORTED` in place of `WT_ERROR`.
    Unsupported(&'static str),
    /// An error of TLS, as rustls names it.
    Tls(rustls::Error),
    /// The transport broke off, or rustls could not go on reading or writing.
    Io(std::io::Error),
}

impl From<rustls::Error> for Fail {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error)
    }
}

impl From<std::io::Error> for Fail {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Unsupported(text) => f.write_str(text),
            Self::Owned(text) => f.write_str(text),
            Self::Tls(error) => write!(f, "rustls: {error}"),
            Self::Io(error) => write!(f, "transport: {error}"),
        }
    }
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does a call's work, keeps why it failed, and lets no panic out.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fail>) -> Result<T, c_int> {
    let (text, status) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(fail @ Fail::Unsupported(_))) => (fail.to_string(), abi::UNSUPPORTED),
        Ok(Err(fail)) => (fail.to_string(), abi::ERROR),
        Err(panic) => {
            let words = panic.downcast_ref::<&str>().copied();
            let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            (format!("panicked: {}", words.unwrap_or("without a word")), abi::ERROR)
        }
    };
    LAST.with_borrow_mut(|last| *last = text);
    Err(status)
}

/// A step's status; its bytes go to `done`.
///
/// # Safety
/// `done` is null or writable.
unsafe fn status(result: Result<Step, c_int>, done: *mut usize) -> c_int {
    match result {
        Ok(Step::Done(len)) => {
            if !done.is_null() {
                // SAFETY: the caller's contract.
                unsafe { done.write(len) };
            }
            abi::OK
        }
        Ok(Step::Again) => abi::AGAIN,
        Ok(Step::Closed) => abi::CLOSED,
        Err(status) => status,
    }
}

const NULL: Fail = Fail::Text("a null pointer where there must be none");

struct Table<L>(std::marker::PhantomData<L>);

impl<L: Library> Table<L> {
    const DRIVER: &'static Driver = &Driver {
        abi: abi::ABI,
        size: size_of::<Driver>() as u32,
        library: c"rustls".as_ptr(),
        version: version::<L>,
        build_flags: build_flags::<L>,
        cpu_features: cpu_features::<L>,
        functions: functions::<L>,
        init,
        error,
        context_new: context_new::<L>,
        context_free,
        conn_new,
        handshake,
        read,
        write,
        shutdown,
        facts,
        take_session,
        session_free,
        conn_free,
        thread_end: None,
    };
}

unsafe extern "C" fn version<L: Library>() -> *const c_char {
    L::version().as_ptr()
}

unsafe extern "C" fn build_flags<L: Library>() -> *const c_char {
    L::build_flags().as_ptr()
}

unsafe extern "C" fn cpu_features<L: Library>() -> *const c_char {
    L::cpu_features().as_ptr()
}

unsafe extern "C" fn functions<L: Library>() -> u64 {
    abi::TLS_1_2
        | abi::TLS_1_3
        | abi::EARLY_DATA
        | abi::QUIC_TLS
        | abi::SESSION_CACHE
        | abi::SESSION_STORE
        | L::FUNCTIONS
}

unsafe extern "C" fn init() -> c_int {
    abi::OK
}

unsafe extern "C" fn error(text: *mut c_char, len: usize) {
    let Some(room) = len.checked_sub(1) else { return };
    if text.is_null() {
        return;
    }
    LAST.with_borrow(|last| {
        let taken = last.floor_char_boundary_at(room);
        // SAFETY: the caller gave len bytes; at most room = len - 1 and the zero are written.
        unsafe {
            std::ptr::copy_nonoverlapping(last.as_ptr().cast(), text, taken);
            text.add(taken).write(0);
        }
    });
}

/// Where a text can be cut.
trait Cut {
    fn floor_char_boundary_at(&self, most: usize) -> usize;
}

impl Cut for String {
    fn floor_char_boundary_at(&self, most: usize) -> usize {
        let mut at = most.min(self.len());
        while !self.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

unsafe extern "C" fn context_new<L: Library>(
    config: *const Config,
    context: *mut *mut RawContext,
) -> c_int {
    let made = guarded(|| {
        if config.is_null() || context.is_null() {
            return Err(NULL);
        }
        // SAFETY: not null, and the caller's by the header; its first member is its size.
        if (unsafe { (*config).size } as usize) < size_of::<Config>() {
            return Err(Fail::Text("the configuration is of an older interface"));
        }
        // SAFETY: not null, and as long as ours.
        let config = unsafe { &*config };
        // SAFETY: its pointers are as the header says.
        unsafe { Context::new::<L>(config) }
    });
    match made {
        Ok(made) => {
            // SAFETY: not null, or there would be no context.
            unsafe { context.write(Box::into_raw(Box::new(made)).cast()) };
            abi::OK
        }
        Err(status) => status,
    }
}

/// Frees what one of the functions above and below made.
///
/// # Safety
/// `pointer` is null or from `Box::into_raw` of this type, and is not used again.
unsafe fn free<T>(pointer: *mut T) {
    let _ = guarded(|| {
        if !pointer.is_null() {
            // SAFETY: the caller's contract.
            drop(unsafe { Box::from_raw(pointer) });
        }
        Ok(())
    });
}

unsafe extern "C" fn context_free(context: *mut RawContext) {
    // SAFETY: made by context_new.
    unsafe { free(context.cast::<Context>()) }
}

unsafe extern "C" fn conn_new(
    context: *mut RawContext,
    transport: *const Transport,
    session: *const RawSession,
    conn: *mut *mut RawConn,
) -> c_int {
    let made = guarded(|| {
        if context.is_null() || transport.is_null() || conn.is_null() {
            return Err(NULL);
        }
        // SAFETY: made by context_new; shared by threads, and nothing in it changes.
        let context = unsafe { &*context.cast::<Context>() };
        // SAFETY: not null, and the caller's by the header.
        let transport = unsafe { *transport };
        // SAFETY: null, or made by take_session.
        let session = unsafe { session.cast::<Session>().as_ref() };
        Conn::new(context, transport, session)
    });
    match made {
        Ok(made) => {
            // SAFETY: not null, or there would be no connection.
            unsafe { conn.write(Box::into_raw(Box::new(made)).cast()) };
            abi::OK
        }
        Err(status) => status,
    }
}

/// Calls a connection.
///
/// # Safety
/// `conn` is null, or made by `conn_new` and used by this thread only meanwhile.
unsafe fn with<T>(
    conn: *mut RawConn,
    work: impl FnOnce(&mut Conn) -> Result<T, Fail>,
) -> Result<T, c_int> {
    guarded(|| {
        // SAFETY: the caller's contract.
        let conn = unsafe { conn.cast::<Conn>().as_mut() };
        work(conn.ok_or(NULL)?)
    })
}

unsafe extern "C" fn handshake(conn: *mut RawConn) -> c_int {
    // SAFETY: as the header says.
    unsafe { status(with(conn, Conn::handshake), std::ptr::null_mut()) }
}

unsafe extern "C" fn read(
    conn: *mut RawConn,
    bytes: *mut c_void,
    len: usize,
    done: *mut usize,
) -> c_int {
    let work = |conn: &mut Conn| {
        if bytes.is_null() || len == 0 || done.is_null() {
            return Err(NULL);
        }
        // SAFETY: not null; the caller's len bytes. rustls's reader only writes to them.
        conn.read(unsafe { std::slice::from_raw_parts_mut(bytes.cast(), len) })
    };
    // SAFETY: as the header says.
    unsafe { status(with(conn, work), done) }
}

unsafe extern "C" fn write(
    conn: *mut RawConn,
    bytes: *const c_void,
    len: usize,
    done: *mut usize,
) -> c_int {
    let work = |conn: &mut Conn| {
        if bytes.is_null() || len == 0 || done.is_null() {
            return Err(NULL);
        }
        // SAFETY: not null; the caller's len bytes.
        conn.write(unsafe { std::slice::from_raw_parts(bytes.cast(), len) })
    };
    // SAFETY: as the header says.
    unsafe { status(with(conn, work), done) }
}

unsafe extern "C" fn shutdown(conn: *mut RawConn) -> c_int {
    // SAFETY: as the header says.
    unsafe { status(with(conn, Conn::shutdown), std::ptr::null_mut()) }
}

unsafe extern "C" fn facts(conn: *mut RawConn, facts: *mut Facts) -> c_int {
    // SAFETY: as the header says.
    let reported =
        unsafe { with(conn, |conn| if facts.is_null() { Err(NULL) } else { conn.facts() }) };
    match reported {
        Ok(reported) => {
            // SAFETY: not null, or nothing would have been told; `size` is its first member.
            if (unsafe { (*facts).size } as usize) < size_of::<Facts>() {
                LAST.with_borrow_mut(|last| "the facts are of an older interface".clone_into(last));
                return abi::ERROR;
            }
            // SAFETY: as long as ours.
            unsafe { facts.write(reported) };
            abi::OK
        }
        Err(status) => status,
    }
}

unsafe extern "C" fn take_session(conn: *mut RawConn) -> *mut RawSession {
    // SAFETY: as the header says.
    match unsafe { with(conn, |conn| Ok(conn.take_session())) } {
        Ok(Some(session)) => Box::into_raw(Box::new(session)).cast(),
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn session_free(session: *mut RawSession) {
    // SAFETY: made by take_session.
    unsafe { free(session.cast::<Session>()) }
}

unsafe extern "C" fn conn_free(conn: *mut RawConn) {
    // SAFETY: made by conn_new.
    unsafe { free(conn.cast::<Conn>()) }
}

/// Those of the named features that this processor has, as a `CString`. The list is what the
/// provider's code asks for; which of them an operation uses is the provider's choice.
#[macro_export]
macro_rules! cpu_features {
    (x86_64: $($x86:tt)*) => { $crate::cpu_features!(@split [] $($x86)*) };
    (@split [$($x86:tt)*] ; aarch64: $($arm:tt)*) => {{
        let mut found: Vec<&str> = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            $(if std::arch::is_x86_feature_detected!($x86) { found.push($x86); })*
        }
        #[cfg(target_arch = "aarch64")]
        {
            $(if std::arch::is_aarch64_feature_detected!($arm) { found.push($arm); })*
        }
        std::ffi::CString::new(found.join(" ")).unwrap_or_default()
    }};
    (@split [$($x86:tt)*] $next:tt $($rest:tt)*) => { $crate::cpu_features!(@split [$($x86)* $next] $($rest)*) };
}
