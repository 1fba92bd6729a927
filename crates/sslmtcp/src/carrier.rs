//! The state machine between TLS and TCP's byte stream. It knows no sockets and no clock.
//!
//! The call order on a client: [`Carrier::client`], [`Carrier::syn`] into the SYN, then
//! [`Carrier::syn_answered`] with what became of it. On a server: [`Carrier::server`]. After that
//! both sides: [`Carrier::read`] whatever comes, [`Carrier::read_end`] at the end of the stream,
//! and after every call write [`Carrier::outgoing`] to TCP as far as it takes it, with
//! [`Carrier::consume`].

use std::borrow::Cow;

use fault::{Explain, Fault};
use tls::{EarlyData, Facts, Ticket};
use units::Time;

use crate::envelope::{self, Decoder, EnvelopeError};
use crate::padding;
use crate::{Embedding, Engine};

/// Stream bytes that wait for TCP above which [`Carrier::send`] takes no more.
pub const SEND_LIMIT: usize = 64 << 10;

/// Why a carriage ends. Final.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// TLS failed; the inner error says whose fault it is. An alert may be in
    /// [`Carrier::outgoing`].
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// The peer's fault: its envelope is none.
    #[error("the peer sent {0}")]
    Envelope(#[from] EnvelopeError),
    /// The peer took an envelope for stream data (a Fast Open server that knows no SSLmTCP): connect
    /// again without.
    #[error("the server took the data in the SYN but does not support SSLmTCP")]
    PlainPeer,
    /// The stream ended without close_notify: data may be missing (RFC 8446 §6.1).
    #[error("the stream was cut off: it ended without close_notify (RFC 8446 §6.1)")]
    Truncated,
}

impl Explain for CarrierError {
    fn fault(&self) -> Fault {
        match self {
            CarrierError::Tls(error) => error.fault(),
            CarrierError::Envelope(error) => error.fault(),
            CarrierError::PlainPeer | CarrierError::Truncated => Fault::Peer,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            CarrierError::Tls(error) => error.remedy(),
            CarrierError::PlainPeer => Some("connect again without".into()),
            CarrierError::Envelope(_) | CarrierError::Truncated => None,
        }
    }
}

/// What a client begins with.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What rides in TCP's handshake.
    pub embedding: Embedding,
    /// The first request. It goes as early data with [`Embedding::ZeroRtt`] if the engine has room
    /// for all of it, else with the flight that completes the client's handshake.
    pub early_data: Vec<u8>,
    /// Data behind it, which is never early.
    pub request: Vec<u8>,
    /// The most payload that a SYN can carry, in bytes.
    pub syn_room: usize,
}

/// One connection's carriage.
#[derive(Debug)]
pub struct Carrier<E> {
    engine: E,
    is_client: bool,
    incoming: Incoming,
    /// Envelopes that are still to be sent.
    envelopes: u8,
    syn: Syn,
    syn_room: usize,
    early: Early,
    hold: bool,
    /// Stream bytes for TCP, of which the first `consumed` are with it.
    out: Vec<u8>,
    consumed: usize,
    /// Plaintext that must not overtake early data, which may have to be sent again.
    waiting: Vec<u8>,
    closing: bool,
    failed: bool,
    enveloped: bool,
}

/// How the peer's stream is framed.
#[derive(Debug)]
enum Incoming {
    /// Its first byte tells: an envelope, or TLS records.
    Undecided,
    Enveloped(Decoder),
    Plain,
}

/// A client's first flight until the SYN's fate is known.
#[derive(Debug)]
enum Syn {
    /// A server, or the fate is known.
    Settled,
    /// Nothing rides in the SYN.
    Bare,
    /// The flight as TLS wrote it, should the SYN's data be refused.
    Loaded { flight: Vec<u8>, enveloped: bool },
}

/// Early data that may have to be sent again.
#[derive(Debug)]
enum Early {
    None,
    Sent(Vec<u8>),
}

impl<E: Engine> Carrier<E> {
    /// A client. What is to ride in the SYN is in [`Carrier::syn`].
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn client(now: Time, engine: E, plan: Plan) -> Result<Self, CarrierError> {
        let mut carrier = Self::new(engine, true, Incoming::Plain);
        let Plan { embedding, early_data, request, syn_room } = plan;
        carrier.send_first(embedding, early_data, &request)?;
        carrier.syn = Syn::Bare;
        carrier.syn_room = syn_room;
        if embedding == Embedding::None {
            return Ok(carrier);
        }
        let mut flight = Vec::new();
        carrier.engine.write_tls(now, &mut flight)?;
        let enveloped = embedding == Embedding::Paper;
        if enveloped {
            let rest = envelope::encode(&flight, &mut carrier.out);
            carrier.out.extend_from_slice(rest);
        } else {
            carrier.out = padding::pad(&flight, padding::TARGET, syn_room);
        }
        carrier.syn = Syn::Loaded { flight, enveloped };
        Ok(carrier)
    }

    /// A server. `syn_segment_len` is the TCP segment length of the client's SYN, header included,
    /// if its data were taken; 0 if not. Without a long enough one there are no envelopes
    /// (document §4.2).
    pub fn server(engine: E, syn_segment_len: usize) -> Self {
        let incoming = match syn_segment_len {
            envelope::MIN_SEGMENT.. => Incoming::Undecided,
            _ => Incoming::Plain,
        };
        Self::new(engine, false, incoming)
    }

    fn new(engine: E, is_client: bool, incoming: Incoming) -> Self {
        Self {
            engine,
            is_client,
            incoming,
            envelopes: 0,
            syn: Syn::Settled,
            syn_room: 0,
            early: Early::None,
            hold: is_client,
            out: Vec::new(),
            consumed: 0,
            waiting: Vec::new(),
            closing: false,
            failed: false,
            enveloped: false,
        }
    }

    fn send_first(
        &mut self,
        embedding: Embedding,
        early: Vec<u8>,
        request: &[u8],
    ) -> Result<(), CarrierError> {
        // In sequence they go behind the ClientHello, once TCP is connected.
        let fits = matches!(embedding, Embedding::ZeroRtt | Embedding::None)
            && !early.is_empty()
            && early.len() <= self.engine.early_data_room();
        if fits {
            self.engine.send_early(&early)?;
            self.waiting.extend_from_slice(request);
            self.early = Early::Sent(early);
            self.hold = false;
            return Ok(());
        }
        for data in [&early[..], request] {
            if !data.is_empty() {
                self.engine.send(data)?;
                self.hold = false;
            }
        }
        Ok(())
    }

    /// What a client's SYN is to carry, as much as it has room for; empty for an ordinary SYN. It
    /// counts as given to TCP.
    #[must_use]
    pub fn syn(&mut self) -> Vec<u8> {
        let room = self.syn_room.min(self.out.len());
        let rest = self.out.split_off(room);
        core::mem::replace(&mut self.out, rest)
    }

    /// A client's SYN is answered. If its data were not `accepted` nothing of the stream was, and
    /// it begins afresh: with the same ClientHello, as TLS wrote it.
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn syn_answered(&mut self, now: Time, accepted: bool) -> Result<(), CarrierError> {
        match core::mem::replace(&mut self.syn, Syn::Settled) {
            Syn::Loaded { enveloped, .. } if accepted => {
                if enveloped {
                    self.incoming = Incoming::Undecided;
                    self.envelopes = 1;
                }
            }
            Syn::Loaded { flight, .. } => self.out = flight,
            Syn::Bare => self.collect(now)?,
            Syn::Settled => {}
        }
        Ok(())
    }

    /// Whether a client awaits the first byte of a server that has taken its envelope: whether that
    /// knows SSLmTCP is not known yet.
    #[must_use]
    pub fn awaits_envelope(&self) -> bool {
        self.is_client && matches!(self.incoming, Incoming::Undecided)
    }

    /// Whether the peer's stream began with an envelope.
    #[must_use]
    pub fn was_enveloped(&self) -> bool {
        self.enveloped
    }

    /// Takes bytes of the peer's stream, cut anywhere.
    ///
    /// # Errors
    /// The peer's fault, or the engine's. [`Carrier::outgoing`] may have an alert.
    pub fn read(&mut self, now: Time, bytes: &[u8]) -> Result<(), CarrierError> {
        let result = self.unwrap(now, bytes);
        self.failed |= result.is_err();
        let collected = self.settle(now);
        result.and(collected)
    }

    fn unwrap(&mut self, now: Time, mut bytes: &[u8]) -> Result<(), CarrierError> {
        if matches!(self.incoming, Incoming::Undecided) {
            self.decide(bytes)?;
        }
        match &mut self.incoming {
            Incoming::Undecided => Ok(()),
            Incoming::Plain => Ok(self.engine.read_tls(now, bytes)?),
            Incoming::Enveloped(decoder) => {
                while let Some(records) = decoder.next(&mut bytes)? {
                    self.engine.read_tls(now, records)?;
                }
                if decoder.is_done() {
                    self.incoming = Incoming::Plain;
                }
                Ok(())
            }
        }
    }

    /// Tells envelopes from records by the first byte.
    fn decide(&mut self, bytes: &[u8]) -> Result<(), CarrierError> {
        self.incoming = match (envelope::begins(bytes), self.is_client) {
            (None, _) => Incoming::Undecided,
            (Some(true), true) => Incoming::Enveloped(Decoder::new(1)),
            (Some(true), false) => {
                self.envelopes = 1;
                Incoming::Enveloped(Decoder::new(2))
            }
            (Some(false), true) => return Err(CarrierError::PlainPeer),
            (Some(false), false) => Incoming::Plain,
        };
        self.enveloped = matches!(self.incoming, Incoming::Enveloped(_));
        Ok(())
    }

    /// The peer's stream has ended.
    ///
    /// # Errors
    /// [`CarrierError::Truncated`] without a close_notify before; [`CarrierError::PlainPeer`].
    pub fn read_end(&self) -> Result<(), CarrierError> {
        match self.engine.peer_closed() {
            true => Ok(()),
            false if self.awaits_envelope() => Err(CarrierError::PlainPeer),
            false => Err(CarrierError::Truncated),
        }
    }

    /// An engine's pending answer is ready: call at [`Carrier::next_timeout`].
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn handle_timeout(&mut self, now: Time) -> Result<(), CarrierError> {
        self.settle(now)
    }

    /// When an answer that is being computed will be ready.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Time> {
        self.engine.pending_until()
    }

    /// Decides on early data and the end, then takes what TLS has written.
    fn settle(&mut self, now: Time) -> Result<(), CarrierError> {
        self.settle_early_data()?;
        if self.closing && !self.engine.is_handshaking() {
            self.closing = false;
            self.engine.close();
        }
        if self.hold && self.engine.may_send() && !self.failed {
            return Ok(());
        }
        self.collect(now)
    }

    /// Rejected early data go again, before what was queued behind them.
    fn settle_early_data(&mut self) -> Result<(), CarrierError> {
        let Early::Sent(early) = &mut self.early else { return Ok(()) };
        match self.engine.early_data() {
            EarlyData::Pending => return Ok(()),
            EarlyData::Accepted => {}
            EarlyData::Rejected | EarlyData::NotOffered => {
                let early = core::mem::take(early);
                self.engine.send(&early)?;
            }
        }
        self.early = Early::None;
        let waiting = core::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.engine.send(&waiting)?;
        }
        Ok(())
    }

    /// Takes what TLS has written into the stream; the whole flight into an envelope if one is due.
    fn collect(&mut self, now: Time) -> Result<(), CarrierError> {
        if self.envelopes == 0 {
            self.engine.write_tls(now, &mut self.out)?;
            return Ok(());
        }
        let mut flight = Vec::new();
        if self.engine.write_tls(now, &mut flight)? > 0 {
            self.envelopes -= 1;
            let rest = envelope::encode(&flight, &mut self.out);
            self.out.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Stream bytes that wait for TCP.
    #[must_use]
    pub fn outgoing(&self) -> &[u8] {
        self.out.get(self.consumed..).unwrap_or_default()
    }

    /// TCP has taken the first `len` bytes of [`Carrier::outgoing`].
    pub fn consume(&mut self, len: usize) {
        self.consumed = self.consumed.saturating_add(len).min(self.out.len());
        // Each byte moves once at most, though `out` may never be empty.
        if 2 * self.consumed >= self.out.len() {
            self.out.drain(..self.consumed);
            self.consumed = 0;
        }
    }

    /// Gives memory back that nothing is in. For a connection that idles, or waits for TCP.
    pub fn shrink(&mut self) {
        if self.out.capacity() > 2 * self.outgoing().len() {
            self.out = self.outgoing().to_vec();
            self.consumed = 0;
        }
    }

    /// Memory held for [`Carrier::outgoing`], in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.out.capacity()
    }

    /// How many bytes [`Carrier::send`] would take.
    #[must_use]
    pub fn send_room(&self) -> usize {
        SEND_LIMIT.saturating_sub(self.outgoing().len().saturating_add(self.waiting.len()))
    }

    /// Queues application data and returns how many bytes were taken: 0 when too much waits for
    /// TCP or, with early data under way, for the server's answer.
    ///
    /// # Errors
    /// The engine's: closed, or its own failures.
    pub fn send(&mut self, now: Time, data: &[u8]) -> Result<usize, CarrierError> {
        let room = self.send_room();
        let data = data.get(..room.min(data.len())).unwrap_or_default();
        if matches!(self.early, Early::Sent(_)) {
            self.waiting.extend_from_slice(data);
            return Ok(data.len());
        }
        if !data.is_empty() {
            self.engine.send(data)?;
            self.hold = false;
            self.collect(now)?;
        }
        Ok(data.len())
    }

    /// Whether a client's last flight waits for the first request, to leave with it.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.hold && self.engine.may_send()
    }

    /// No request comes at once: the last flight of the client's handshake goes without.
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn release(&mut self, now: Time) -> Result<(), CarrierError> {
        self.hold = false;
        self.settle(now)
    }

    /// Appends the application data received and returns how many bytes that was.
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, CarrierError> {
        Ok(self.engine.receive(out)?)
    }

    /// Whether application data may go out: on a client also when early data is under way.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.engine.may_send() || matches!(self.early, Early::Sent(_))
    }

    /// Whether Finished of either side is missing.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.engine.is_handshaking()
    }

    /// Whether early data is under way whose fate is not known.
    #[must_use]
    pub fn early_data_pending(&self) -> bool {
        matches!(self.early, Early::Sent(_))
    }

    /// Whether data wait for the fate of early data.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the peer's close_notify was read: no more data will come.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.engine.peer_closed()
    }

    /// Ends this side's stream by close_notify, once the handshake is over. Nothing can be sent
    /// after it.
    ///
    /// # Errors
    /// The engine's own failures.
    pub fn close(&mut self, now: Time) -> Result<(), CarrierError> {
        self.closing = true;
        self.hold = false;
        self.settle(now)
    }

    /// Whether [`Carrier::close`] waits for the end of the handshake.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// What TLS knows of the connection.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.engine.facts()
    }

    /// The newest ticket that arrived, once.
    pub fn take_ticket(&mut self) -> Option<Ticket> {
        self.engine.take_ticket()
    }

    /// The TLS of this connection.
    #[must_use]
    pub fn engine(&self) -> &E {
        &self.engine
    }
}
