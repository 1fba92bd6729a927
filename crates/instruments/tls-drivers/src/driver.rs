//! A driver in this process: a shared object, loaded with its symbols to itself.

mod ech;
mod transport;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;

use crate::abi::{self, RawConn, RawContext, RawSession};
use crate::job::{Described, Identity, Sessions};
use crate::suite::{Key, Suite};
use crate::{DriverError, Negotiated, built_in};

pub use self::ech::{EchAnswer, EchConfig};
pub use self::transport::{Io, Transport};
use self::transport::{recv, send};

/// A loaded driver. It is never unloaded: libraries leave exit handlers and thread-local destructors
/// behind.
#[derive(Clone)]
pub struct Library(Arc<Loaded>);

struct Loaded {
    path: PathBuf,
    calls: Calls,
    described: Described,
}

/// The driver's functions, none missing.
#[derive(Clone, Copy)]
struct Calls {
    error: unsafe extern "C" fn(*mut c_char, usize),
    context_new: unsafe extern "C" fn(*const abi::Config, *mut *mut RawContext) -> c_int,
    context_free: unsafe extern "C" fn(*mut RawContext),
    conn_new: unsafe extern "C" fn(
        *mut RawContext,
        *const abi::Transport,
        *const RawSession,
        *mut *mut RawConn,
    ) -> c_int,
    handshake: unsafe extern "C" fn(*mut RawConn) -> c_int,
    read: unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int,
    write: unsafe extern "C" fn(*mut RawConn, *const c_void, usize, *mut usize) -> c_int,
    shutdown: unsafe extern "C" fn(*mut RawConn) -> c_int,
    facts: unsafe extern "C" fn(*mut RawConn, *mut abi::Facts) -> c_int,
    take_session: unsafe extern "C" fn(*mut RawConn) -> *mut RawSession,
    session_free: unsafe extern "C" fn(*mut RawSession),
    conn_free: unsafe extern "C" fn(*mut RawConn),
    thread_end: Option<unsafe extern "C" fn()>,
    ech_retry: Option<unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int>,
    server_name:
        Option<unsafe extern "C" fn(*mut RawConn, *mut c_char, usize, *mut usize) -> c_int>,
}

impl Library {
    /// Loads a driver.
    ///
    /// # Errors
    /// If the file cannot be loaded, is no driver, or is one for another version of the interface.
    pub fn load(path: &Path) -> Result<Self, DriverError> {
        match built_in::table(path) {
            Some(table) => Self::of_table(path, table.cast()),
            None => {
                let wrong = |error: std::io::Error| DriverError::NotADriver {
                    path: path.to_path_buf(),
                    what: error.to_string(),
                };
                Self::of_table(path, Self::open(&built_in::file(path).map_err(wrong)?)?)
            }
        }
    }

    /// The table of a shared object.
    fn open(path: &Path) -> Result<*const abi::Driver, DriverError> {
        let wrong = |what: String| DriverError::NotADriver { path: path.to_path_buf(), what };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| wrong("its path has a zero byte".into()))?;
        // SAFETY: the name ends in a zero byte. A driver's constructors run here: whoever names the file
        // trusts it, and this process exists for it alone.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(wrong(last_dl_error()));
        }
        // SAFETY: the handle is of a loaded object and the name ends in a zero byte.
        let symbol = unsafe { libc::dlsym(handle, c"wiretax_driver".as_ptr()) };
        if symbol.is_null() {
            return Err(wrong("it does not export wiretax_driver".into()));
        }
        // SAFETY: that symbol has this type in every version of the interface.
        let entry: unsafe extern "C" fn() -> *const abi::Driver =
            unsafe { std::mem::transmute::<*mut c_void, _>(symbol) };
        // SAFETY: it takes nothing.
        Ok(unsafe { entry() })
    }

    /// The library behind a table, which is a constant of a driver's.
    fn of_table(path: &Path, table: *const abi::Driver) -> Result<Self, DriverError> {
        let wrong = |what: String| DriverError::NotADriver { path: path.to_path_buf(), what };
        if table.is_null() {
            return Err(wrong("it gives no table".into()));
        }
        // SAFETY: the first two members are there in every version, and are read alone.
        let (version, size) = unsafe { ((*table).abi, (*table).size as usize) };
        if version != abi::ABI || size < abi::LEAST_DRIVER {
            return Err(wrong(format!(
                "it is for version {version} of the interface, this program has {}",
                abi::ABI
            )));
        }
        let mut whole = MaybeUninit::<abi::Driver>::zeroed();
        // SAFETY: version and size say that so much of the table is there, and no more is written than there is room
        // for; it is a constant. What an older driver lacks stays zero: no function.
        let whole = unsafe {
            let len = size.min(size_of::<abi::Driver>());
            ptr::copy_nonoverlapping(table.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), len);
            whole.assume_init()
        };
        let table = &whole;
        let calls = Calls::of(table).ok_or_else(|| wrong("a function is missing".into()))?;
        let init = table.init.ok_or_else(|| wrong("a function is missing".into()))?;
        // SAFETY: called once, before anything else.
        if unsafe { init() } != abi::OK {
            return Err(wrong(format!("it cannot be initialised: {}", calls.last_error())));
        }
        let described = describe(table);
        Ok(Self(Arc::new(Loaded { path: path.to_path_buf(), calls, described })))
    }

    /// What it says of itself.
    #[must_use]
    pub fn described(&self) -> &Described {
        &self.0.described
    }

    /// The file that it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Before a thread ends that used this library.
    pub fn end_thread(&self) {
        if let Some(end) = self.0.calls.thread_end {
            // SAFETY: it takes nothing, and is for this moment.
            unsafe { end() }
        }
    }
}

impl Calls {
    fn of(table: &abi::Driver) -> Option<Self> {
        Some(Self {
            error: table.error?,
            context_new: table.context_new?,
            context_free: table.context_free?,
            conn_new: table.conn_new?,
            handshake: table.handshake?,
            read: table.read?,
            write: table.write?,
            shutdown: table.shutdown?,
            facts: table.facts?,
            take_session: table.take_session?,
            session_free: table.session_free?,
            conn_free: table.conn_free?,
            thread_end: table.thread_end,
            ech_retry: table.ech_retry,
            server_name: table.server_name,
        })
    }

    fn last_error(&self) -> String {
        let mut text = [0u8; 512];
        // SAFETY: the buffer is as long as said.
        unsafe { (self.error)(text.as_mut_ptr().cast(), text.len()) };
        let text = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy);
        text.map_or_else(|_| "it wrote past its buffer's end".to_owned(), |text| clean(&text))
    }

    fn check(&self, status: c_int, doing: &'static str) -> Result<(), DriverError> {
        match status {
            abi::OK => Ok(()),
            abi::UNSUPPORTED => Err(DriverError::Unsupported { what: self.last_error() }),
            abi::ERROR => Err(DriverError::Failed { doing, what: self.last_error() }),
            _ => Err(DriverError::OutOfTurn { doing, status }),
        }
    }
}

/// A text of a library, fit for a line.
fn clean(text: &str) -> String {
    fault::excerpt(text, 400)
}

fn last_dl_error() -> String {
    // SAFETY: gives null or a text that ends in a zero byte, valid until the next call on this thread.
    let error = unsafe { libc::dlerror() };
    if error.is_null() {
        return "unknown".into();
    }
    // SAFETY: as above.
    clean(&unsafe { CStr::from_ptr(error) }.to_string_lossy())
}

fn describe(table: &abi::Driver) -> Described {
    let text = |pointer: *const c_char| {
        if pointer.is_null() {
            return String::new();
        }
        // SAFETY: the interface has it end in a zero byte and stay valid.
        clean(&unsafe { CStr::from_ptr(pointer) }.to_string_lossy())
    };
    let call = |function: Option<unsafe extern "C" fn() -> *const c_char>| {
        // SAFETY: these take nothing; the library is initialised.
        function.map_or_else(String::new, |function| text(unsafe { function() }))
    };
    Described {
        library: text(table.library),
        version: call(table.version),
        build_flags: call(table.build_flags),
        cpu_features: call(table.cpu_features),
        // SAFETY: as above.
        functions: table.functions.map_or(0, |functions| unsafe { functions() }),
    }
}

/// A context: a server's or a client's configuration, made once, used by many.
#[derive(Clone)]
pub struct Context(Arc<ContextInner>);

struct ContextInner {
    raw: NonNull<RawContext>,
    library: Library,
    server: bool,
}

// SAFETY: the interface has contexts used by many threads at once.
unsafe impl Send for ContextInner {}
// SAFETY: as above.
unsafe impl Sync for ContextInner {}

impl Drop for ContextInner {
    fn drop(&mut self) {
        // SAFETY: it was made by this library, and every connection holds the context.
        unsafe { (self.library.0.calls.context_free)(self.raw.as_ptr()) }
    }
}

impl Context {
    /// A server's context, which issues this many tickets in a handshake of TLS 1.3, or resumes sessions
    /// otherwise.
    ///
    /// # Errors
    /// What the library cannot do, or not with this identity.
    pub fn server(
        library: &Library,
        suite: Suite,
        identity: &Identity,
        tickets: u32,
        sessions: Sessions,
    ) -> Result<Self, DriverError> {
        Self::new(library, true, suite, identity, (tickets, sessions), None)
    }

    /// A client's context, which keeps sessions unless there are to be no tickets.
    ///
    /// # Errors
    /// As for a server.
    pub fn client(
        library: &Library,
        suite: Suite,
        identity: &Identity,
        tickets: u32,
        sessions: Sessions,
    ) -> Result<Self, DriverError> {
        Self::new(library, false, suite, identity, (tickets, sessions), None)
    }

    fn new(
        library: &Library,
        server: bool,
        suite: Suite,
        identity: &Identity,
        (tickets, sessions): (u32, Sessions),
        ech: Option<&abi::Ech>,
    ) -> Result<Self, DriverError> {
        let name = CString::new(identity.name.as_str()).map_err(|_| DriverError::Failed {
            doing: "naming the server",
            what: "a zero byte".into(),
        })?;
        let pem = |text: &str, wanted: bool| abi::Pem {
            text: if wanted { text.as_ptr().cast() } else { ptr::null() },
            len: if wanted { text.len() } else { 0 },
        };
        let config = abi::Config {
            size: size_of::<abi::Config>() as u32,
            server: server.into(),
            version: suite.version.id().into(),
            cipher: suite.cipher_suite().into(),
            group: suite.group.id().into(),
            signature: suite.signature().into(),
            tickets,
            certificate_group: if suite.key == Key::EcdsaP256 { 23 } else { 0 },
            chain: pem(&identity.chain, server),
            key: pem(&identity.key, server),
            roots: pem(&identity.roots, !server),
            server_name: name.as_ptr(),
            sessions: sessions.number(),
            ech: ech.map_or(ptr::null(), ptr::from_ref),
        };
        let calls = &library.0.calls;
        let mut raw = ptr::null_mut();
        // SAFETY: every pointer of the configuration is valid during the call.
        let status = unsafe { (calls.context_new)(&raw const config, &raw mut raw) };
        calls.check(status, "making a context")?;
        let raw = NonNull::new(raw).ok_or(DriverError::Null { doing: "making a context" })?;
        Ok(Self(Arc::new(ContextInner { raw, library: library.clone(), server })))
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<T> {
    /// It is done.
    Done(T),
    /// Once more when the transport has more.
    Again,
    /// The peer has ended in order.
    Closed,
}

/// A connection. One thread's.
pub struct Conn<T: Transport> {
    raw: NonNull<RawConn>,
    context: Context,
    transport: Box<T>,
    _not_send: PhantomData<Rc<()>>,
}

impl<T: Transport> Drop for Conn<T> {
    fn drop(&mut self) {
        // SAFETY: it was made by this library; the transport is still there.
        unsafe { (self.calls().conn_free)(self.raw.as_ptr()) }
    }
}

impl<T: Transport> Conn<T> {
    /// A connection of a context; a client's may resume a session.
    ///
    /// # Errors
    /// What the library says.
    pub fn new(
        context: &Context,
        transport: T,
        session: Option<&Session>,
    ) -> Result<Self, DriverError> {
        let transport = Box::new(transport);
        let calls = &context.0.library.0.calls;
        let ways = abi::Transport {
            user: ptr::from_ref(&*transport).cast_mut().cast(),
            recv: recv::<T>,
            send: send::<T>,
        };
        // A server resumes what the client brings.
        let session = session.filter(|_| !context.0.server);
        let session = session.map_or(ptr::null(), |session| session.raw.as_ptr().cast_const());
        let mut raw = ptr::null_mut();
        // SAFETY: the transport lives in a box until after conn_free; the session is the caller's, of this
        // library.
        let status = unsafe {
            (calls.conn_new)(context.0.raw.as_ptr(), &raw const ways, session, &raw mut raw)
        };
        calls.check(status, "making a connection")?;
        let raw = NonNull::new(raw).ok_or(DriverError::Null { doing: "making a connection" })?;
        Ok(Self { raw, context: context.clone(), transport, _not_send: PhantomData })
    }

    fn calls(&self) -> &Calls {
        &self.context.0.library.0.calls
    }

    /// Where its bytes go.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    fn step(&self, status: c_int, doing: &'static str) -> Result<Step<()>, DriverError> {
        match status {
            abi::OK => Ok(Step::Done(())),
            abi::AGAIN => Ok(Step::Again),
            abi::CLOSED => Ok(Step::Closed),
            other => self.calls().check(other, doing).map(|()| Step::Done(())),
        }
    }

    /// Goes on with the handshake.
    ///
    /// # Errors
    /// Why it failed.
    pub fn handshake(&mut self) -> Result<Step<()>, DriverError> {
        // SAFETY: the connection is valid and this thread's.
        let status = unsafe { (self.calls().handshake)(self.raw.as_ptr()) };
        self.step(status, "the handshake")
    }

    /// Reads what the peer has sent into `bytes`; how much.
    ///
    /// # Errors
    /// Why it failed; an end without close_notify is a failure.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<Step<usize>, DriverError> {
        let mut done = 0;
        // SAFETY: as above, with room for as many bytes as said.
        let status = unsafe {
            (self.calls().read)(
                self.raw.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                &raw mut done,
            )
        };
        self.moved(status, done, bytes.len(), "reading")
    }

    /// Writes some of these bytes.
    ///
    /// # Errors
    /// Why it failed.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Step<usize>, DriverError> {
        let mut done = 0;
        // SAFETY: as above, with as many bytes as said.
        let status = unsafe {
            (self.calls().write)(
                self.raw.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                &raw mut done,
            )
        };
        self.moved(status, done, bytes.len(), "writing")
    }

    fn moved(
        &self,
        status: c_int,
        done: usize,
        most: usize,
        doing: &'static str,
    ) -> Result<Step<usize>, DriverError> {
        match self.step(status, doing)? {
            Step::Done(()) if done == 0 || done > most => {
                Err(DriverError::Nonsense { doing, done, most })
            }
            Step::Done(()) => Ok(Step::Done(done)),
            Step::Again => Ok(Step::Again),
            Step::Closed => Ok(Step::Closed),
        }
    }

    /// Says that no more will be sent.
    ///
    /// # Errors
    /// Why it failed.
    pub fn shutdown(&mut self) -> Result<Step<()>, DriverError> {
        // SAFETY: as above.
        let status = unsafe { (self.calls().shutdown)(self.raw.as_ptr()) };
        self.step(status, "closing")
    }

    /// What the library says that was agreed on.
    ///
    /// # Errors
    /// If it does not say.
    pub fn negotiated(&mut self) -> Result<Negotiated, DriverError> {
        let facts = self.facts()?;
        Ok(Negotiated {
            version: facts.version,
            cipher_suite: facts.cipher,
            group: facts.group,
            resumed: facts.resumed != 0,
        })
    }

    fn facts(&mut self) -> Result<abi::Facts, DriverError> {
        let mut facts =
            abi::Facts { size: size_of::<abi::Facts>() as u32, ..abi::Facts::default() };
        // SAFETY: as above.
        let status = unsafe { (self.calls().facts)(self.raw.as_ptr(), &raw mut facts) };
        self.calls().check(status, "telling what was agreed on")?;
        Ok(facts)
    }

    /// The newest session that came, once.
    pub fn take_session(&mut self) -> Option<Session> {
        // SAFETY: as above.
        let raw = unsafe { (self.calls().take_session)(self.raw.as_ptr()) };
        NonNull::new(raw).map(|raw| Session { raw, library: self.context.0.library.clone() })
    }
}

/// A session of a client, to be resumed.
pub struct Session {
    raw: NonNull<RawSession>,
    library: Library,
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: it was taken from a connection of this library and is freed once.
        unsafe { (self.library.0.calls.session_free)(self.raw.as_ptr()) }
    }
}
