//! A driver as the harness sees it: through its one symbol.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::sync::OnceLock;

use rustls_shim::abi::{
    self, Config, Driver, Facts, Pem, RawConn, RawContext, RawSession, Transport,
};

/// A loaded driver, never unloaded.
#[derive(Clone)]
pub struct Loaded {
    pub name: String,
    pub table: &'static Driver,
}

/// All drivers that are tested, built if need be. `DRIVERS_BESIDE` adds others by their paths.
pub fn drivers() -> &'static [Loaded] {
    static ALL: OnceLock<Vec<Loaded>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<_> = ["rustls-aws-lc-rs", "rustls-ring"]
            .iter()
            .map(|name| load(name, &built(name)))
            .collect();
        for path in std::env::var("DRIVERS_BESIDE")
            .unwrap_or_default()
            .split(':')
            .filter(|path| !path.is_empty())
        {
            all.push(load(path, Path::new(path)));
        }
        all
    })
}

pub fn by_name(name: &str) -> &'static Loaded {
    drivers().iter().find(|driver| driver.name == name).expect("one of ours")
}

/// The shared object that `DRIVER_RUSTLS_RING` and the like name, or a build of now.
fn built(name: &str) -> PathBuf {
    let variable = format!("DRIVER_{}", name.to_uppercase().replace('-', "_"));
    if let Some(path) = std::env::var_os(&variable) {
        return path.into();
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(name);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked"])
        .current_dir(package)
        .env("CARGO_TARGET_DIR", &target)
        .status()
        .expect("cargo runs");
    assert!(status.success(), "{name} was not built");
    target.join("release/libdriver.so")
}

fn load(name: &str, path: &Path) -> Loaded {
    // SAFETY: a driver's initialisers do nothing but a library's.
    let object =
        unsafe { libloading::Library::new(path) }.unwrap_or_else(|error| panic!("{name}: {error}"));
    let object: &'static libloading::Library = Box::leak(Box::new(object));
    // SAFETY: the header gives the symbol this type.
    let symbol =
        unsafe { object.get::<unsafe extern "C" fn() -> *const Driver>(b"wiretax_driver\0") };
    // SAFETY: as the header says, the table is valid as long as the object is loaded.
    let table = unsafe { &*(symbol.expect("the one symbol"))() };
    assert_eq!((table.abi, table.size as usize), (abi::ABI, size_of::<Driver>()), "{name}");
    // SAFETY: once, before anything else.
    assert_eq!(unsafe { (table.init)() }, abi::OK);
    Loaded { name: name.to_owned(), table }
}

impl Loaded {
    pub fn error(&self) -> String {
        let mut text = [0 as c_char; 256];
        // SAFETY: as long as said, and ended by a zero byte.
        unsafe {
            (self.table.error)(text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }

    pub fn text(&self, function: unsafe extern "C" fn() -> *const c_char) -> String {
        // SAFETY: a text of the driver's that lasts.
        unsafe { CStr::from_ptr(function()) }.to_str().expect("text").to_owned()
    }
}

/// What is pinned, by IANA's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pins {
    pub version: u32,
    pub cipher: u32,
    pub group: u32,
    pub signature: u32,
}

pub struct Identity {
    pub chain: String,
    pub key: String,
    pub roots: String,
    pub signature: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Rsa2048,
    Rsa4096,
    EcdsaP256,
}

pub const NAME: &str = "server.test";

/// An identity of this kind: a leaf, signed by a root on P-256.
pub fn identity(key: Key) -> &'static Identity {
    static ALL: [OnceLock<Identity>; 3] = [const { OnceLock::new() }; 3];
    ALL[key as usize].get_or_init(|| new_identity(key))
}

pub fn new_identity(key: Key) -> Identity {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, RsaKeySize};
    let root_key = KeyPair::generate().unwrap();
    let mut root = CertificateParams::default();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, "root of a test");
    let roots = root.self_signed(&root_key).unwrap().pem();
    let issuer = Issuer::new(root, root_key);
    let leaf_key = match key {
        Key::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        Key::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
        Key::EcdsaP256 => KeyPair::generate(),
    }
    .unwrap();
    let mut leaf = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    leaf.distinguished_name.push(DnType::CommonName, NAME);
    let chain = leaf.signed_by(&leaf_key, &issuer).unwrap().pem();
    let signature = if key == Key::EcdsaP256 { 0x0403 } else { 0x0804 };
    Identity { chain, key: leaf_key.serialize_pem(), roots, signature }
}

/// A context, freed when dropped.
pub struct Context {
    pub driver: &'static Loaded,
    pub raw: *mut RawContext,
}

// SAFETY: the header lets many threads use a context.
unsafe impl Send for Context {}
// SAFETY: the same.
unsafe impl Sync for Context {}

impl Context {
    pub fn new(
        driver: &'static Loaded,
        server: bool,
        pins: Pins,
        identity: &Identity,
        name: &str,
        tickets: bool,
    ) -> Result<Self, (c_int, String)> {
        let pem = |text: &String| Pem { text: text.as_ptr().cast(), len: text.len() };
        let server_name = CString::new(name).unwrap();
        let config = Config {
            size: size_of::<Config>() as u32,
            server: u32::from(server),
            version: pins.version,
            cipher: pins.cipher,
            group: pins.group,
            signature: pins.signature,
            tickets: u32::from(tickets),
            certificate_group: if pins.signature == 0x0403 { 23 } else { 0 },
            chain: pem(&identity.chain),
            key: pem(&identity.key),
            roots: pem(&identity.roots),
            server_name: server_name.as_ptr(),
            sessions: abi::SESSIONS_TICKETS,
        };
        let mut raw = null_mut();
        // SAFETY: everything is valid during the call.
        match unsafe { (driver.table.context_new)(&raw const config, &raw mut raw) } {
            abi::OK => Ok(Self { driver, raw }),
            status => Err((status, driver.error())),
        }
    }

    pub fn server(driver: &'static Loaded, pins: Pins, identity: &Identity) -> Self {
        Self::new(driver, true, pins, identity, "", true)
            .unwrap_or_else(|error| panic!("{} {pins:x?} {error:?}", driver.name))
    }

    pub fn client(driver: &'static Loaded, pins: Pins, identity: &Identity) -> Self {
        Self::new(driver, false, pins, identity, NAME, true)
            .unwrap_or_else(|error| panic!("{} {pins:x?} {error:?}", driver.name))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again.
        unsafe { (self.driver.table.context_free)(self.raw) }
    }
}

/// A session, freed when dropped.
pub struct Session {
    driver: &'static Loaded,
    pub raw: *mut RawSession,
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again.
        unsafe { (self.driver.table.session_free)(self.raw) }
    }
}

/// Bytes from one side to the other, in order.
pub struct Pipe {
    pub bytes: VecDeque<u8>,
    /// All that ever went in.
    pub seen: Vec<u8>,
    /// How many may wait in it.
    pub room: usize,
    /// How many one recv gives.
    pub piece: usize,
    pub ended: bool,
}

struct End {
    from: Rc<RefCell<Pipe>>,
    to: Rc<RefCell<Pipe>>,
}

unsafe extern "C" fn recv(user: *mut c_void, bytes: *mut c_void, len: usize) -> isize {
    // SAFETY: a connection's user is its end.
    let mut pipe = unsafe { &*user.cast::<End>() }.from.borrow_mut();
    // SAFETY: the driver's buffer.
    let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), len) };
    let taken = len.min(pipe.piece).min(pipe.bytes.len());
    for (to, from) in bytes.iter_mut().zip(pipe.bytes.drain(..taken)) {
        *to = from;
    }
    match taken {
        0 if pipe.ended => abi::IO_END,
        0 => abi::IO_AGAIN,
        taken => taken as isize,
    }
}

unsafe extern "C" fn send(user: *mut c_void, bytes: *const c_void, len: usize) -> isize {
    // SAFETY: a connection's user is its end.
    let mut pipe = unsafe { &*user.cast::<End>() }.to.borrow_mut();
    if pipe.ended {
        return abi::IO_BROKEN;
    }
    // SAFETY: the driver's bytes.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) };
    let taken = len.min(pipe.room - pipe.bytes.len());
    pipe.bytes.extend(&bytes[..taken]);
    pipe.seen.extend(&bytes[..taken]);
    if taken == 0 { abi::IO_AGAIN } else { taken as isize }
}

/// A connection, freed when dropped.
pub struct Conn {
    pub driver: &'static Loaded,
    pub raw: *mut RawConn,
    /// Bytes that the other side has sent to it.
    pub from: Rc<RefCell<Pipe>>,
    end: *mut End,
}

impl Conn {
    fn new(
        context: &Context,
        session: Option<&Session>,
        from: &Rc<RefCell<Pipe>>,
        to: &Rc<RefCell<Pipe>>,
    ) -> Result<Self, String> {
        let end = Box::into_raw(Box::new(End { from: Rc::clone(from), to: Rc::clone(to) }));
        let transport = Transport { user: end.cast(), recv: Some(recv), send: Some(send) };
        let session = session.map_or(null(), |session| session.raw.cast_const());
        let mut raw = null_mut();
        let table = context.driver.table;
        // SAFETY: everything is valid during the call, the end until conn_free.
        let status =
            unsafe { (table.conn_new)(context.raw, &raw const transport, session, &raw mut raw) };
        let made = Self { driver: context.driver, raw, from: Rc::clone(from), end };
        if status == abi::OK { Ok(made) } else { Err(context.driver.error()) }
    }

    fn named(&self, status: c_int) -> Result<c_int, String> {
        if status < 0 {
            Err(format!("{}: {}", self.driver.name, self.driver.error()))
        } else {
            Ok(status)
        }
    }

    pub fn handshake(&mut self) -> Result<c_int, String> {
        // SAFETY: a connection of ours.
        let status = unsafe { (self.driver.table.handshake)(self.raw) };
        self.named(status)
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> Result<(c_int, usize), String> {
        let mut done = 0;
        // SAFETY: a connection and bytes of ours.
        let status = unsafe {
            (self.driver.table.read)(
                self.raw,
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                &raw mut done,
            )
        };
        self.named(status).map(|status| (status, done))
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(c_int, usize), String> {
        let mut done = 0;
        // SAFETY: a connection and bytes of ours.
        let status = unsafe {
            (self.driver.table.write)(self.raw, bytes.as_ptr().cast(), bytes.len(), &raw mut done)
        };
        self.named(status).map(|status| (status, done))
    }

    pub fn shutdown(&mut self) -> Result<c_int, String> {
        // SAFETY: a connection of ours.
        let status = unsafe { (self.driver.table.shutdown)(self.raw) };
        self.named(status)
    }

    pub fn facts(&mut self) -> Facts {
        let mut facts = Facts { size: size_of::<Facts>() as u32, ..Facts::default() };
        // SAFETY: a connection and facts of ours.
        let status = unsafe { (self.driver.table.facts)(self.raw, &raw mut facts) };
        self.named(status).expect("facts");
        facts
    }

    pub fn take_session(&mut self) -> Option<Session> {
        // SAFETY: a connection of ours.
        let raw = unsafe { (self.driver.table.take_session)(self.raw) };
        (!raw.is_null()).then_some(Session { driver: self.driver, raw })
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // SAFETY: ours, and not used again; then nobody has the end.
        unsafe {
            if !self.raw.is_null() {
                (self.driver.table.conn_free)(self.raw);
            }
            drop(Box::from_raw(self.end));
        }
    }
}

/// Two connections and what is between them.
pub struct Pair {
    pub client: Conn,
    pub server: Conn,
}

impl Pair {
    pub fn new(
        client: &Context,
        server: &Context,
        session: Option<&Session>,
    ) -> Result<Self, String> {
        let pipe = || {
            let (bytes, seen) = (VecDeque::new(), Vec::new());
            Rc::new(RefCell::new(Pipe { bytes, seen, room: 1 << 20, piece: 1 << 20, ended: false }))
        };
        let (up, down) = (pipe(), pipe());
        Ok(Self {
            client: Conn::new(client, session, &down, &up)?,
            server: Conn::new(server, None, &up, &down)?,
        })
    }

    pub fn handshake(&mut self) -> Result<(), String> {
        for _ in 0..100_000 {
            let client = self.client.handshake()?;
            let server = self.server.handshake()?;
            if (client, server) == (abi::OK, abi::OK) {
                return Ok(());
            }
        }
        Err("the handshake does not end".to_owned())
    }

    /// A request and an answer, then close_notify from both.
    pub fn exchange(&mut self) -> Result<(), String> {
        let mut bytes = [0; 64];
        assert_eq!(self.client.write(b"a request")?, (abi::OK, 9));
        assert_eq!(self.server.read(&mut bytes)?, (abi::OK, 9));
        assert_eq!(&bytes[..9], b"a request");
        assert_eq!(self.server.write(b"an answer!")?, (abi::OK, 10));
        assert_eq!(self.client.read(&mut bytes)?, (abi::OK, 10));
        assert_eq!(&bytes[..10], b"an answer!");
        assert_eq!(self.server.read(&mut bytes)?, (abi::AGAIN, 0));
        assert_eq!(self.client.shutdown()?, abi::OK);
        assert_eq!(self.server.read(&mut bytes)?.0, abi::CLOSED);
        assert_eq!(self.server.shutdown()?, abi::OK);
        assert_eq!(self.client.read(&mut bytes)?.0, abi::CLOSED);
        Ok(())
    }

    /// Whether the server's bytes show a resumption: pre_shared_key in its hello (RFC 8446 §4.2.11), or
    /// in TLS 1.2 no certificate before its ChangeCipherSpec (RFC 5077 §3.1).
    pub fn resumed_on_the_wire(&self) -> bool {
        let pipe = self.client.from.borrow();
        let mut clear = Vec::new();
        let mut records = &pipe.seen[..];
        while let [22, _, _, high, low, rest @ ..] = records {
            let (body, rest) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            clear.extend_from_slice(body);
            records = rest;
        }
        let mut messages = &clear[..];
        let mut certificate = false;
        let mut pre_shared = false;
        let mut tls13 = false;
        while let [kind, a, b, c, rest @ ..] = messages {
            let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some((body, rest)) = rest.split_at_checked(len) else { break };
            certificate |= *kind == 11;
            if *kind == 2 {
                // version, random, session id, cipher suite, compression
                let after = 2 + 32 + 1 + usize::from(body[34]) + 2 + 1 + 2;
                let mut extensions = body.get(after..).unwrap_or_default();
                while let [x, y, high, low, rest @ ..] = extensions {
                    pre_shared |= u16::from_be_bytes([*x, *y]) == 41;
                    tls13 |= u16::from_be_bytes([*x, *y]) == 43;
                    extensions = &rest[usize::from(u16::from_be_bytes([*high, *low]))..];
                }
            }
            messages = rest;
        }
        if tls13 { pre_shared } else { !certificate }
    }
}
