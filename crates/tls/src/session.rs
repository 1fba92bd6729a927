//! One connection's TLS: bytes in, bytes out.

use serde::{Serialize, Serializer};

use crate::hello::Watch;
use crate::offer::ServerChoice;
use crate::{CallerError, CipherSuite, Error, Group, Library, PeerError, Ticket, Version};

/// Most bytes that a session holds for the caller in any direction: unsent records, unread plaintext.
/// [`Session::send`] refuses more, [`Session::read_tls`] calls a peer that sends more without being
/// read misbehaving.
pub const MAX_BUFFERED: usize = 1 << 20;

/// One connection's TLS, client or server, of either library.
///
/// The call order: on the client `send_early` (if there is room) and `write_tls`; then, whenever bytes
/// arrive, `read_tls`, `receive`, `send` as wanted, and `write_tls`. What `write_tls` gives is one flight:
/// write it to the transport in one call.
pub trait Session: Send {
    /// Feeds bytes that came from the transport, cut anywhere.
    ///
    /// # Errors
    /// Every error is final. An alert may be waiting: call `write_tls` and send it.
    fn read_tls(&mut self, records: &[u8]) -> Result<(), Error>;

    /// Appends all that is to go to the transport now and returns how many bytes that was; 0 is nothing.
    ///
    /// # Errors
    /// The library's own failures.
    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<usize, Error>;

    /// Whether application data may go out under the handshake's own keys: what the papers call "may
    /// send its first request byte". A client: when it has read the server's Finished, so that its own
    /// goes out with or before the data (no False Start, RFC 7918). A server: when it has read the
    /// client's Finished, or has accepted early data (RFC 8446 §4.4.4, data after the server's Finished).
    fn may_send(&self) -> bool;

    /// Whether the handshake is not over: Finished of either side is missing.
    fn is_handshaking(&self) -> bool;

    /// Bytes of early data that may still be sent; 0 when the ticket or the configuration allows none, or
    /// the server has answered.
    fn early_data_room(&self) -> usize;

    /// Queues early data, all of it. Before the first `write_tls` it comes out together with the
    /// ClientHello. Returns the bytes taken, which is all of them. When [`Facts::early_data`] says
    /// `Rejected` later, the server did not read them: send them again by `send`.
    ///
    /// # Errors
    /// [`crate::CallerError::EarlyData`] when it does not fit.
    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error>;

    /// Queues application data. Before `may_send` it waits and comes out with the flight that completes
    /// this side's handshake.
    ///
    /// # Errors
    /// [`crate::CallerError::Closed`] after `close`; [`crate::CallerError::BufferFull`] when more than
    /// [`MAX_BUFFERED`] bytes wait.
    fn send(&mut self, data: &[u8]) -> Result<(), Error>;

    /// Appends the application data received, on the server early data included, and returns how many
    /// bytes that was; 0 is none yet.
    ///
    /// # Errors
    /// The library's own failures.
    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error>;

    /// Whether the peer's close_notify was read (RFC 8446 §6.1): no more data will come.
    fn peer_closed(&self) -> bool;

    /// What is known of the connection so far.
    fn facts(&self) -> Facts;

    /// The server's choice, as soon as its hello is read; `None` on a server.
    fn server_choice(&self) -> Option<ServerChoice> {
        None
    }

    /// The newest ticket that arrived, once; client only.
    fn take_ticket(&mut self) -> Option<Ticket>;

    /// Queues close_notify; nothing can be sent after it.
    fn close(&mut self);
}

/// What became of early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyData {
    /// The ClientHello does not offer it.
    #[default]
    NotOffered,
    /// Offered; the server has not answered yet. Client only.
    Pending,
    /// The server took it.
    Accepted,
    /// The server refused it, and read none of it.
    Rejected,
}

fn suite_name<S: Serializer>(
    suite: &Option<CipherSuite>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    suite.map(|suite| suite.to_string()).serialize(serializer)
}

/// What is known of a connection. What is not negotiated yet is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The library of this side.
    pub library: Library,
    /// The negotiated version.
    pub version: Option<Version>,
    /// The negotiated cipher suite; serialised by its name.
    #[serde(serialize_with = "suite_name")]
    pub cipher_suite: Option<CipherSuite>,
    /// The group of the key exchange; none with RSA key exchange and in a resumed TLS 1.2 handshake.
    pub group: Option<Group>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// What became of early data.
    pub early_data: EarlyData,
    /// Whether the server asked for another key share (RFC 8446 §4.1.4).
    pub hello_retry_request: bool,
    /// The negotiated application protocol.
    pub alpn: Option<Vec<u8>>,
    /// The server name that the client sent, as the server read it or the client was told.
    pub server_name: Option<String>,
    /// The groups that the first ClientHello had a key share for.
    pub key_shares: Vec<Group>,
    /// Bytes of the first ClientHello on the wire, record headers included; 0 before it is written
    /// (client) or read wholly (server).
    pub client_hello_len: usize,
    /// Certificates that the server sent (client side); 0 when resumed.
    pub certificates: usize,
    /// Whether the server promised a ticket of TLS 1.2 (RFC 5077 §3.2; client side).
    #[serde(skip)]
    pub ticket_promised: bool,
}

impl Facts {
    /// Adds what was read off the wire.
    pub(crate) fn watched(self, watch: &Watch) -> Self {
        Self {
            hello_retry_request: watch.hello_retry_request(),
            key_shares: watch.offer().known_key_shares(),
            client_hello_len: watch.client_hello_len(),
            ticket_promised: watch.choice().is_some_and(|choice| choice.session_ticket),
            ..self
        }
    }
}

/// Decrypted data that waits for the caller.
#[derive(Default)]
pub(crate) struct Plaintext(Vec<u8>);

impl Plaintext {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        if data.len() > MAX_BUFFERED.saturating_sub(self.0.len()) {
            return Err(PeerError::Misbehaved(format!(
                "sent more than {MAX_BUFFERED} bytes at once"
            ))
            .into());
        }
        self.0.extend_from_slice(data);
        Ok(())
    }

    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> usize {
        let len = self.0.len();
        out.append(&mut self.0);
        len
    }
}

/// Whether `more` bytes may join `unsent` ones.
pub(crate) fn check_room(unsent: usize, more: usize) -> Result<(), Error> {
    if more > MAX_BUFFERED.saturating_sub(unsent) {
        return Err(CallerError::BufferFull(unsent).into());
    }
    Ok(())
}
