//! Connections: rustls between the caller's two functions.

use std::cell::RefCell;
use std::ffi::c_void;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::{ClientConnection, Connection, HandshakeKind, ProtocolVersion, ServerConnection};

use crate::context::{ClientSide, Context};
use crate::session::{self, Kept, Session};
use crate::{Fail, abi};

/// A flight of more than one record goes to the transport at once, if it is not longer.
const FLIGHT: usize = 16 * 1024;

thread_local! {
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How a call ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// With this many bytes, where there are bytes.
    Done(usize),
    /// The transport had no more bytes, or no more room: to be called again later.
    Again,
    /// The peer ended in order, by close_notify (RFC 8446 §6.1).
    Closed,
}

/// What came from the transport.
enum Filled {
    Some,
    Again,
    End,
}

/// `wt_conn`: one connection of rustls's, on the caller's transport.
pub struct Conn {
    tls: Connection,
    transport: Io,
    /// Of a client, whose sessions remember it; a server has none.
    side: Option<Arc<ClientSide>>,
    fresh: Option<Box<Kept>>,
    /// Bytes of the caller's that rustls has taken and the transport not yet.
    taken: usize,
}

impl Conn {
    /// A connection that has sent nothing yet.
    pub fn new(
        context: &Context,
        transport: abi::Transport,
        session: Option<&Session>,
    ) -> Result<Self, Fail> {
        let transport = Io::new(transport)?;
        let (tls, side) = match context {
            Context::Client(side) => {
                // rustls resumes with the very verifier that the session was made with.
                let config = match session {
                    Some(session) if Arc::ptr_eq(&session.origin, side) => &side.config,
                    Some(session) if session.origin.is_like(side) => &session.origin.config,
                    Some(_) => return Err(Fail::Text("the session is of another configuration")),
                    None => &side.config,
                };
                let (config, name) = (Arc::clone(config), side.name.clone());
                let tls = session::offering(session, || ClientConnection::new(config, name))??;
                (Connection::Client(tls), Some(Arc::clone(side)))
            }
            Context::Server(config) => {
                (Connection::Server(ServerConnection::new(Arc::clone(config))?), None)
            }
        };
        Ok(Self { tls, transport, side, fresh: None, taken: 0 })
    }

    /// Goes on with the handshake; done when this side has sent its last of it, a ticket included.
    pub fn handshake(&mut self) -> Result<Step, Fail> {
        loop {
            if !self.flush()? {
                return Ok(Step::Again);
            }
            if !self.tls.is_handshaking() {
                return Ok(Step::Done(0));
            }
            match self.fill()? {
                Filled::Some => {}
                Filled::Again => return Ok(Step::Again),
                Filled::End => return Err(Fail::Text("the peer ended amid the handshake")),
            }
        }
    }

    /// Reads what the peer has sent into `bytes`: done with their number, 1 or more.
    pub fn read(&mut self, bytes: &mut [u8]) -> Result<Step, Fail> {
        loop {
            match self.tls.reader().read(bytes) {
                Ok(0) => return Ok(Step::Closed),
                Ok(len) => return Ok(Step::Done(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(Fail::Text("the peer ended without close_notify"));
                }
                Err(error) => return Err(error.into()),
            }
            let filled = self.fill()?;
            // What rustls answers by itself, such as a key update (RFC 8446 §4.6.3).
            self.flush()?;
            if matches!(filled, Filled::Again) {
                return Ok(Step::Again);
            }
        }
    }

    /// Writes the caller's bytes: done when the transport has them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Step, Fail> {
        if !self.flush()? {
            return Ok(Step::Again);
        }
        if self.taken == 0 {
            self.taken = self.tls.writer().write(bytes)?;
            if self.taken == 0 {
                return Err(Fail::Text("nothing can be sent any more"));
            }
            if !self.flush()? {
                return Ok(Step::Again);
            }
        }
        Ok(Step::Done(std::mem::take(&mut self.taken)))
    }

    /// Sends close_notify; called again, what of it the transport had no room for.
    pub fn shutdown(&mut self) -> Result<Step, Fail> {
        self.tls.send_close_notify();
        Ok(if self.flush()? { Step::Done(0) } else { Step::Again })
    }

    /// What the handshake has agreed on, in IANA's numbers; an error before its end.
    pub fn facts(&self) -> Result<abi::Facts, Fail> {
        let (Some(version), Some(suite)) =
            (self.tls.protocol_version(), self.tls.negotiated_cipher_suite())
        else {
            return Err(Fail::Text("the handshake is not finished"));
        };
        let version = match version {
            ProtocolVersion::TLSv1_2 => 0x0303,
            ProtocolVersion::TLSv1_3 => 0x0304,
            other => u32::from(u16::from(other)),
        };
        Ok(abi::Facts {
            size: u32::try_from(size_of::<abi::Facts>()).unwrap_or(0),
            version,
            cipher: u32::from(u16::from(suite.suite())),
            // None in a resumed TLS 1.2 handshake, which has no key exchange.
            group: self
                .tls
                .negotiated_key_exchange_group()
                .map_or(0, |group| u32::from(u16::from(group.name()))),
            resumed: u32::from(self.tls.handshake_kind() == Some(HandshakeKind::Resumed)),
        })
    }

    /// The newest session that came and was not taken yet; a server has none.
    pub fn take_session(&mut self) -> Option<Session> {
        Some(Session::new(self.fresh.take()?, Arc::clone(self.side.as_ref()?)))
    }

    /// Whether the transport has all that there is.
    fn flush(&mut self) -> Result<bool, Fail> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.transport) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    fn fill(&mut self) -> Result<Filled, Fail> {
        match self.tls.read_tls(&mut self.transport) {
            Ok(0) => return Ok(Filled::End),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Filled::Again),
            Err(error) => return Err(error.into()),
        }
        let result = self.tls.process_new_packets();
        if let Some(fresh) = session::fresh() {
            self.fresh = Some(fresh);
        }
        if let Err(error) = result {
            // The alert, if the transport takes it; the first failure is the one to tell of.
            let _ = self.flush();
            return Err(error.into());
        }
        Ok(Filled::Some)
    }
}

/// The caller's transport as what rustls reads from and writes to.
struct Io {
    user: *mut c_void,
    recv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize,
    send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize,
}

impl Io {
    fn new(transport: abi::Transport) -> Result<Self, Fail> {
        match (transport.recv, transport.send) {
            (Some(recv), Some(send)) => Ok(Self { user: transport.user, recv, send }),
            _ => Err(Fail::Text("the transport lacks a function")),
        }
    }
}

impl Read for Io {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        // SAFETY: the function and its user are valid until the connection is freed; the bytes are ours.
        let got = unsafe { (self.recv)(self.user, bytes.as_mut_ptr().cast(), bytes.len()) };
        moved(got, bytes.len(), Ok(0))
    }
}

impl Write for Io {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the function and its user are valid until the connection is freed; the bytes are ours.
        let sent = unsafe { (self.send)(self.user, bytes.as_ptr().cast(), bytes.len()) };
        moved(sent, bytes.len(), Err(io::ErrorKind::WriteZero.into()))
    }

    /// The transport takes one piece a call. A flight's records are gathered, as they would be by
    /// writev on a socket: a call each would be a packet each. One record alone is not copied.
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut whole = pieces.iter().filter(|piece| !piece.is_empty());
        let Some(first) = whole.next() else { return Ok(0) };
        if whole.next().is_none() || first.len() >= FLIGHT {
            return self.write(first);
        }
        GATHERED.with_borrow_mut(|gathered| {
            gathered.clear();
            for piece in pieces {
                let room = FLIGHT - gathered.len();
                gathered.extend_from_slice(piece.get(..room).unwrap_or(piece));
            }
            self.write(gathered)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a transport returned, in Rust's terms.
fn moved(returned: isize, asked: usize, end: io::Result<usize>) -> io::Result<usize> {
    match returned {
        abi::IO_END => end,
        abi::IO_AGAIN => Err(io::ErrorKind::WouldBlock.into()),
        abi::IO_BROKEN => {
            Err(io::Error::new(io::ErrorKind::BrokenPipe, "the connection broke off"))
        }
        len => match usize::try_from(len) {
            Ok(len) if len <= asked => Ok(len),
            _ => Err(io::Error::other("the transport returned a number that it must not")),
        },
    }
}
