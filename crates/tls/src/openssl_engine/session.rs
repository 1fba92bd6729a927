//! One connection of OpenSSL, of either side.

use std::sync::Arc;

use openssl::error::ErrorStack;
use openssl::ssl::{ErrorCode, ShutdownState, Ssl, SslStream, SslVersion};

use super::client::Newest;
use super::fault::{library, of_session};
use super::ffi;
use super::pipe::Pipe;
use crate::hello::Watch;
use crate::offer::{ServerChoice, Witness, named_group};
use crate::session::{Plaintext, check_room};
use crate::ticket::{Origin, Ticket};
use crate::{CallerError, CipherSuite, EarlyData, Error, Facts, Library, Session, Version};

/// What only a client has.
pub(super) struct ClientSide {
    pub(super) newest: Newest,
    pub(super) origin: Arc<Origin>,
    pub(super) early_room: usize,
    pub(super) server_name: Option<String>,
    pub(super) witness: Option<Witness>,
}

/// What only a server has.
pub(super) struct ServerSide {
    pub(super) reads_early_data: bool,
}

/// Which side a session is.
pub(super) enum Side {
    Client(ClientSide),
    Server(ServerSide),
}

/// Which of OpenSSL's calls comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A client that has not begun; what it is asked first decides whether it offers early data.
    Idle,
    /// A client that writes early data: `SSL_write_early_data`.
    WritingEarly,
    /// A server that reads early data, if any is offered: `SSL_read_early_data`.
    ReadingEarly,
    /// The handshake goes on: `SSL_do_handshake`.
    Handshaking,
    /// `SSL_read` and `SSL_write`.
    Open,
}

/// One connection of OpenSSL.
pub(super) struct OpenSslSession {
    stream: SslStream<Pipe>,
    side: Side,
    phase: Phase,
    watch: Watch,
    plaintext: Plaintext,
    /// Application data that waits for the end of the handshake.
    pending: Vec<u8>,
    early_data: EarlyData,
    closed: bool,
    peer_closed: bool,
    failure: Option<Error>,
}

impl OpenSslSession {
    pub(super) fn new(ssl: Ssl, side: Side) -> Result<Self, Error> {
        let phase = match &side {
            Side::Client(_) => Phase::Idle,
            Side::Server(ServerSide { reads_early_data: true }) => Phase::ReadingEarly,
            Side::Server(_) => Phase::Handshaking,
        };
        Ok(Self {
            stream: SslStream::new(ssl, Pipe::default()).map_err(library)?,
            side,
            phase,
            watch: Watch::default(),
            plaintext: Plaintext::new(),
            pending: Vec::new(),
            early_data: EarlyData::NotOffered,
            closed: false,
            peer_closed: false,
            failure: None,
        })
    }

    /// Goes as far as the bytes allow.
    fn advance(&mut self) -> Result<(), Error> {
        let mut chunk = [0; 16 * 1024];
        while !self.peer_closed {
            clear_error_queue();
            let step = match self.phase {
                Phase::ReadingEarly => self.stream.read_early_data(&mut chunk),
                Phase::Open => self.stream.ssl_read(&mut chunk),
                Phase::Idle | Phase::WritingEarly | Phase::Handshaking => {
                    self.phase = Phase::Handshaking;
                    self.stream.do_handshake().map(|()| 0)
                }
            };
            self.note_early_data();
            match step {
                Ok(0) if self.phase == Phase::ReadingEarly => self.phase = Phase::Handshaking,
                Ok(0) if self.phase == Phase::Handshaking => self.open()?,
                Ok(len) => self.plaintext.push(chunk.get(..len).unwrap_or_default())?,
                Err(cause) if cause.code() == ErrorCode::WANT_READ => return Ok(()),
                Err(cause) if cause.code() == ErrorCode::ZERO_RETURN => self.peer_closed = true,
                Err(cause) => return Err(self.failed(&cause)),
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Error> {
        self.phase = Phase::Open;
        let pending = core::mem::take(&mut self.pending);
        if !pending.is_empty() {
            self.write(&pending)?;
        }
        if self.closed {
            self.shut_down();
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Error> {
        clear_error_queue();
        let result = if self.phase == Phase::Open {
            self.stream.ssl_write(data)
        } else {
            self.stream.write_early_data(data)
        };
        // Without SSL_MODE_ENABLE_PARTIAL_WRITE it writes all or fails.
        result.map(drop).map_err(|cause| self.failed(&cause))
    }

    fn failed(&mut self, cause: &openssl::ssl::Error) -> Error {
        let error = of_session(cause, self.stream.ssl());
        self.failure = Some(error.clone());
        error
    }

    fn check_alive(&self) -> Result<(), Error> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// A server knows whether it takes early data when it has read the ClientHello, a client when the
    /// handshake is over.
    fn note_early_data(&mut self) {
        let known = match &self.side {
            Side::Server(_) => self.watch.offer().early_data,
            Side::Client(_) => {
                self.early_data == EarlyData::Pending && self.stream.ssl().is_init_finished()
            }
        };
        if known && self.early_data != EarlyData::Accepted {
            self.early_data = match ffi::early_data_accepted(self.stream.ssl()) {
                true => EarlyData::Accepted,
                false => EarlyData::Rejected,
            };
        }
    }

    /// Notes the server's certificates, which stay known when the handshake fails.
    fn note_chain(&self) {
        let Side::Client(ClientSide { witness: Some(witness), .. }) = &self.side else { return };
        let Some(chain) = self.stream.ssl().peer_cert_chain() else { return };
        witness.note_chain(chain.iter().filter_map(|one| one.to_der().ok()).collect());
    }

    fn is_server(&self) -> bool {
        matches!(self.side, Side::Server(_))
    }

    fn answers_early_data(&self) -> bool {
        self.is_server() && self.early_data == EarlyData::Accepted
    }

    fn shut_down(&mut self) {
        clear_error_queue();
        // The answer is awaited by nobody, and a failed connection has an alert in its place.
        let _ = self.stream.shutdown();
    }

    fn unsent(&self) -> usize {
        self.stream.get_ref().outgoing().len() + self.pending.len()
    }
}

impl Drop for OpenSslSession {
    /// OpenSSL forgets the session of a connection that ends without close_notify. TLS has not asked for
    /// that since 1.1 (RFC 5246 §7.2.1), and rustls does not do it.
    fn drop(&mut self) {
        if self.failure.is_none() && self.phase == Phase::Open {
            self.stream.set_shutdown(ShutdownState::SENT | ShutdownState::RECEIVED);
        }
    }
}

impl Session for OpenSslSession {
    fn read_tls(&mut self, records: &[u8]) -> Result<(), Error> {
        self.check_alive()?;
        if records.is_empty() || self.peer_closed {
            return Ok(());
        }
        match &mut self.side {
            Side::Client(client) => {
                client.early_room = 0;
                self.watch.server_bytes(records);
            }
            Side::Server(_) => self.watch.client_bytes(records),
        }
        self.stream.get_mut().feed(records);
        let advanced = self.advance();
        self.note_chain();
        advanced
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        if self.phase == Phase::Idle {
            self.advance()?;
        }
        let before = out.len();
        let len = self.stream.get_mut().take_outgoing(out);
        let written = out.get(before..).unwrap_or_default();
        match self.side {
            Side::Client(_) => self.watch.client_bytes(written),
            Side::Server(_) => self.watch.server_bytes(written),
        }
        Ok(len)
    }

    fn may_send(&self) -> bool {
        self.failure.is_none() && (self.phase == Phase::Open || self.answers_early_data())
    }

    fn is_handshaking(&self) -> bool {
        self.phase != Phase::Open
    }

    fn early_data_room(&self) -> usize {
        match &self.side {
            Side::Client(client)
                if self.phase == Phase::Idle || self.phase == Phase::WritingEarly =>
            {
                client.early_room
            }
            _ => 0,
        }
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.check_alive()?;
        let room = self.early_data_room();
        if data.len() > room || room == 0 {
            return Err(CallerError::EarlyData { wanted: data.len(), room }.into());
        }
        check_room(self.unsent(), data.len())?;
        if data.is_empty() {
            return Ok(0);
        }
        self.write(data)?;
        self.phase = Phase::WritingEarly;
        self.early_data = EarlyData::Pending;
        if let Side::Client(client) = &mut self.side {
            client.early_room -= data.len();
        }
        Ok(data.len())
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.check_alive()?;
        if self.closed {
            return Err(CallerError::Closed.into());
        }
        check_room(self.unsent(), data.len())?;
        if self.phase == Phase::Open || self.answers_early_data() {
            return if data.is_empty() { Ok(()) } else { self.write(data) };
        }
        self.pending.extend_from_slice(data);
        Ok(())
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        Ok(self.plaintext.take(out))
    }

    fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    fn facts(&self) -> Facts {
        let ssl = self.stream.ssl();
        let known = self.phase == Phase::Open || self.early_data == EarlyData::Accepted;
        let suite = ssl
            .current_cipher()
            .filter(|_| known)
            .map(|cipher| CipherSuite(u16::from_be_bytes(cipher.protocol_id())));
        let version = ssl.version2().filter(|_| known).and_then(version);
        let resumed = known && ssl.session_reused();
        // OpenSSL names the original handshake's group in a resumed TLS 1.2 one.
        let kx = known
            && !(resumed && version == Some(Version::Tls12))
            && suite != Some(CipherSuite::RSA_AES_128_GCM_SHA256);
        let sent = ssl.peer_cert_chain().map_or(0, |chain| chain.len());
        let facts = Facts {
            library: Library::OpenSsl,
            version,
            cipher_suite: suite,
            group: kx.then(|| ffi::group_name(ssl)).flatten().and_then(|name| name.parse().ok()),
            resumed,
            early_data: self.early_data,
            hello_retry_request: false,
            alpn: ssl.selected_alpn_protocol().map(<[u8]>::to_vec),
            server_name: match &self.side {
                Side::Client(client) => client.server_name.clone(),
                Side::Server(_) => self.watch.offer().server_name.clone(),
            },
            key_shares: Vec::new(),
            client_hello_len: 0,
            certificates: if resumed || self.is_server() { 0 } else { sent },
            ticket_promised: false,
        };
        facts.watched(&self.watch)
    }

    fn server_choice(&self) -> Option<ServerChoice> {
        let Side::Client(_) = &self.side else { return None };
        let choice = self.watch.choice()?;
        let known = ffi::group_name(self.stream.ssl()).and_then(|name| named_group(&name));
        Some(ServerChoice { group: choice.group.or(known), ..choice })
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        match &self.side {
            Side::Client(client) => client.newest.take(&client.origin),
            Side::Server(_) => None,
        }
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        if self.phase == Phase::Open && self.failure.is_none() {
            self.shut_down();
        }
    }
}

fn version(version: SslVersion) -> Option<Version> {
    match version {
        SslVersion::TLS1_2 => Some(Version::Tls12),
        SslVersion::TLS1_3 => Some(Version::Tls13),
        _ => None,
    }
}

/// OpenSSL takes an old error in the thread's queue for the result of the next call.
fn clear_error_queue() {
    drop(ErrorStack::get());
}
