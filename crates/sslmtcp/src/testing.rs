//! An engine that takes TLS's place in exact simulation: flights of chosen sizes, answers that take
//! a chosen time, no randomness. No security either: it is for tests and benchmarks.
//!
//! It writes real TLS records, so that captures can be read, and checks every byte that it reads:
//! each message says which connection it is of, and application data carry a checksum.

use std::collections::VecDeque;
use std::time::Duration;

use tls::{
    CallerError, EarlyData, Error, Facts, Library, MAX_BUFFERED, PeerError, Ticket, Version,
};
use units::Time;

use crate::Engine;

/// What the engines of both sides do. Sizes are of whole flights in bytes, record headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// Names the connection. The server reads it in the hello.
    pub salt: u64,
    /// Bytes of the ClientHello.
    pub client_hello: usize,
    /// The server's answer.
    pub server_flight: usize,
    /// The client's answer to it.
    pub client_flight: usize,
    /// The server's Finished, as in TLS 1.2; 0 for none, as in TLS 1.3.
    pub server_finished: usize,
    /// Sent by the server after the handshake; 0 for none.
    pub ticket: usize,
    /// How long the server computes its answer to the hello.
    pub answer_takes: Duration,
    /// How long the server computes its Finished.
    pub finish_takes: Duration,
    /// The early data that the client may send in bytes; 0 for none.
    pub early_room: usize,
    /// Whether the server takes early data.
    pub takes_early: bool,
}

impl Script {
    /// TLS 1.3 with a chain of one ECDSA certificate.
    #[must_use]
    pub const fn tls13(salt: u64) -> Self {
        Self {
            salt,
            client_hello: 250,
            server_flight: 900,
            client_flight: 80,
            server_finished: 0,
            ticket: 200,
            answer_takes: Duration::ZERO,
            finish_takes: Duration::ZERO,
            early_room: 0,
            takes_early: false,
        }
    }

    /// TLS 1.2 with RSA key exchange under a 4096-bit key.
    #[must_use]
    pub const fn tls12_rsa(salt: u64) -> Self {
        Self {
            client_hello: 180,
            server_flight: 1500,
            client_flight: 600,
            server_finished: 51,
            ticket: 0,
            ..Self::tls13(salt)
        }
    }

    /// TLS 1.3 resumed with early data, which the server takes.
    #[must_use]
    pub const fn resumed(salt: u64) -> Self {
        Self {
            client_hello: 500,
            server_flight: 250,
            early_room: 16 << 10,
            takes_early: true,
            ..Self::tls13(salt)
        }
    }
}

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;
const CLOSE_NOTIFY: [u8; 7] = [ALERT, 3, 3, 0, 2, 1, 0];
const RECORD_HEADER: usize = 5;
const MAX_RECORD: usize = 1 << 14;
/// The checksum behind application data.
const TAG: usize = 8;
/// Header, salt and flags of a handshake message.
const MESSAGE_HEADER: usize = 4 + 8 + 1;

const CLIENT_HELLO: u8 = 1;
const SERVER_FLIGHT: u8 = 2;
const TICKET: u8 = 4;
const CLIENT_FLIGHT: u8 = 16;
const SERVER_FINISHED: u8 = 20;

/// How far a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A client before its hello; a server that awaits it.
    Start,
    /// Awaits the peer's next flight.
    Waiting,
    Done,
}

/// The engine of one side.
#[derive(Clone, Debug)]
pub struct ScriptedEngine {
    script: Script,
    is_client: bool,
    step: Step,
    /// Bytes of a record that is not whole.
    partial: Vec<u8>,
    /// Handshake bytes of a message that is not whole.
    handshake: Vec<u8>,
    /// Answers that are being computed, and when each is ready.
    pending: VecDeque<(Time, Vec<u8>)>,
    out: Vec<u8>,
    /// Application data that wait for the handshake.
    queued: Vec<u8>,
    plaintext: Vec<u8>,
    early: EarlyData,
    closed: bool,
    peer_closed: bool,
    hellos: u32,
}

impl ScriptedEngine {
    /// The engine of a client that follows the script.
    #[must_use]
    pub fn client(script: Script) -> Self {
        Self::new(script, true)
    }

    /// A server. It takes the salt of the client that it answers.
    #[must_use]
    pub fn server(script: Script) -> Self {
        Self::new(script, false)
    }

    fn new(script: Script, is_client: bool) -> Self {
        Self {
            script,
            is_client,
            step: Step::Start,
            partial: Vec::new(),
            handshake: Vec::new(),
            pending: VecDeque::new(),
            out: Vec::new(),
            queued: Vec::new(),
            plaintext: Vec::new(),
            early: EarlyData::NotOffered,
            closed: false,
            peer_closed: false,
            hellos: 0,
        }
    }

    /// The salt: on a server the client's, once the hello is read.
    #[must_use]
    pub fn salt(&self) -> u64 {
        self.script.salt
    }

    /// How many hellos a server has answered: 1 at most.
    #[must_use]
    pub fn hellos(&self) -> u32 {
        self.hellos
    }

    fn message(&self, kind: u8, flags: u8, size: usize) -> Vec<u8> {
        flight(kind, self.script.salt, flags, size)
    }

    fn read_records(&mut self, now: Time) -> Result<(), Error> {
        let partial = core::mem::take(&mut self.partial);
        let mut rest = &partial[..];
        while let [kind, 3, 1..=4, high, low, body @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let Some((payload, tail)) = body.split_at_checked(length) else { break };
            self.read_record(now, *kind, payload)?;
            rest = tail;
        }
        let begins = |at: usize, ok: fn(u8) -> bool| rest.get(at).is_none_or(|&byte| ok(byte));
        if !begins(0, |kind| (20..=23).contains(&kind)) || !begins(1, |major| major == 3) {
            return Err(misbehaved("not a record"));
        }
        self.partial = rest.to_vec();
        Ok(())
    }

    fn read_record(&mut self, now: Time, kind: u8, payload: &[u8]) -> Result<(), Error> {
        match kind {
            HANDSHAKE => {
                self.handshake.extend_from_slice(payload);
                self.read_messages(now)
            }
            DATA => self.read_data(payload),
            ALERT if payload == [1, 0] => {
                self.peer_closed = true;
                Ok(())
            }
            _ => Err(misbehaved("an unexpected record")),
        }
    }

    fn read_messages(&mut self, now: Time) -> Result<(), Error> {
        while let [kind, a, b, c, ..] = self.handshake[..] {
            let length = 4 + u32::from_be_bytes([0, a, b, c]) as usize;
            if self.handshake.len() < length {
                break;
            }
            let rest = self.handshake.split_off(length);
            let message = core::mem::replace(&mut self.handshake, rest);
            self.read_message(now, kind, &message)?;
        }
        Ok(())
    }

    fn read_message(&mut self, now: Time, kind: u8, message: &[u8]) -> Result<(), Error> {
        let (salt, flags) = header(message).ok_or_else(|| misbehaved("a short message"))?;
        if kind == CLIENT_HELLO && !self.is_client && self.step == Step::Start {
            self.script.salt = salt;
        }
        if salt != self.script.salt || !filler_holds(message) {
            return Err(misbehaved("a message of another connection, or a corrupted one"));
        }
        match (self.is_client, self.step, kind) {
            (false, Step::Start, CLIENT_HELLO) => self.answer(now, flags),
            (true, Step::Waiting, SERVER_FLIGHT) => self.read_server_flight(flags),
            (false, Step::Waiting, CLIENT_FLIGHT) => self.finish(now),
            (true, Step::Waiting, SERVER_FINISHED) => self.complete(),
            (true, Step::Done, TICKET) => {}
            _ => return Err(misbehaved("a message out of order")),
        }
        Ok(())
    }

    fn answer(&mut self, now: Time, flags: u8) {
        self.hellos += 1;
        self.step = Step::Waiting;
        let takes = flags & 1 != 0 && self.script.takes_early;
        if flags & 1 != 0 {
            self.early = if takes { EarlyData::Accepted } else { EarlyData::Rejected };
        }
        let flight = self.message(SERVER_FLIGHT, u8::from(takes), self.script.server_flight);
        self.pending.push_back((now + self.script.answer_takes, flight));
    }

    fn read_server_flight(&mut self, flags: u8) {
        if self.early == EarlyData::Pending {
            let taken = flags & 1 != 0;
            self.early = if taken { EarlyData::Accepted } else { EarlyData::Rejected };
        }
        let flight = self.message(CLIENT_FLIGHT, 0, self.script.client_flight);
        self.out.extend_from_slice(&flight);
        if self.script.server_finished == 0 {
            self.complete();
        }
    }

    fn finish(&mut self, now: Time) {
        let Script { server_finished, ticket, finish_takes, .. } = self.script;
        let mut flight = Vec::new();
        if server_finished > 0 {
            flight.extend(self.message(SERVER_FINISHED, 0, server_finished));
        }
        if ticket > 0 {
            flight.extend(self.message(TICKET, 0, ticket));
        }
        self.pending.push_back((now + finish_takes, flight));
        self.complete();
    }

    fn complete(&mut self) {
        self.step = Step::Done;
        let queued = core::mem::take(&mut self.queued);
        self.write_data(&queued);
    }

    fn read_data(&mut self, payload: &[u8]) -> Result<(), Error> {
        if !self.is_client && self.step == Step::Waiting && self.early != EarlyData::Accepted {
            // RFC 8446 §4.2.10: a server that rejects early data skips it.
            return match self.early {
                EarlyData::Rejected => Ok(()),
                _ => Err(misbehaved("data before the handshake's end")),
            };
        }
        let Some((data, tag)) = payload.split_last_chunk::<TAG>() else {
            return Err(misbehaved("data without a checksum"));
        };
        if checksum(self.script.salt, data) != u64::from_be_bytes(*tag) {
            return Err(misbehaved("corrupted data"));
        }
        if self.plaintext.len().saturating_add(data.len()) > MAX_BUFFERED {
            return Err(misbehaved("more data than are read"));
        }
        self.plaintext.extend_from_slice(data);
        Ok(())
    }

    /// Application data behind what is pending.
    fn write_data(&mut self, data: &[u8]) {
        let mut records = Vec::new();
        for part in data.chunks(MAX_RECORD - TAG) {
            let mut payload = part.to_vec();
            payload.extend_from_slice(&checksum(self.script.salt, part).to_be_bytes());
            record(DATA, &payload, &mut records);
        }
        self.append(&records);
    }

    fn append(&mut self, records: &[u8]) {
        match self.pending.back_mut() {
            Some((_, flight)) => flight.extend_from_slice(records),
            None => self.out.extend_from_slice(records),
        }
    }

    fn can_write(&self) -> bool {
        self.step == Step::Done || (!self.is_client && self.early == EarlyData::Accepted)
    }
}

impl Engine for ScriptedEngine {
    fn read_tls(&mut self, now: Time, records: &[u8]) -> Result<(), Error> {
        self.partial.extend_from_slice(records);
        self.read_records(now)
    }

    fn write_tls(&mut self, now: Time, out: &mut Vec<u8>) -> Result<usize, Error> {
        let before = out.len();
        if self.is_client && self.step == Step::Start {
            self.step = Step::Waiting;
            let early = u8::from(self.early == EarlyData::Pending);
            out.extend_from_slice(&self.message(CLIENT_HELLO, early, self.script.client_hello));
        }
        out.append(&mut self.out);
        while self.pending.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, mut flight)) = self.pending.pop_front() {
                out.append(&mut flight);
            }
        }
        Ok(out.len() - before)
    }

    fn pending_until(&self) -> Option<Time> {
        self.pending.front().map(|(at, _)| *at)
    }

    fn may_send(&self) -> bool {
        self.can_write()
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn early_data_room(&self) -> usize {
        if self.is_client && self.step == Step::Start { self.script.early_room } else { 0 }
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        let (wanted, room) = (data.len(), self.early_data_room());
        if wanted > room {
            return Err(CallerError::EarlyData { wanted, room }.into());
        }
        self.early = EarlyData::Pending;
        self.write_data(data);
        Ok(wanted)
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        if self.closed {
            return Err(CallerError::Closed.into());
        }
        if self.queued.len().saturating_add(data.len()) > MAX_BUFFERED {
            return Err(CallerError::BufferFull(self.queued.len()).into());
        }
        if self.can_write() {
            self.write_data(data);
        } else {
            self.queued.extend_from_slice(data);
        }
        Ok(())
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        let len = self.plaintext.len();
        out.append(&mut self.plaintext);
        Ok(len)
    }

    fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    fn early_data(&self) -> EarlyData {
        self.early
    }

    fn facts(&self) -> Facts {
        let tls12 = self.script.server_finished > 0;
        Facts {
            library: Library::Rustls,
            version: Some(if tls12 { Version::Tls12 } else { Version::Tls13 }),
            cipher_suite: None,
            group: None,
            resumed: self.script.early_room > 0,
            early_data: self.early,
            hello_retry_request: false,
            alpn: None,
            server_name: None,
            key_shares: Vec::new(),
            client_hello_len: self.script.client_hello,
            certificates: 0,
            ticket_promised: false,
        }
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        None
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            self.append(&CLOSE_NOTIFY);
        }
    }
}

fn misbehaved(what: &str) -> Error {
    PeerError::Misbehaved(what.to_owned()).into()
}

fn record(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind, 3, 3]);
    // At most MAX_RECORD.
    out.extend_from_slice(&u16::try_from(payload.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(payload);
}

/// A handshake message in records of `size` bytes in all, or as few more as it needs.
fn flight(kind: u8, salt: u64, flags: u8, size: usize) -> Vec<u8> {
    let records = size.div_ceil(RECORD_HEADER + MAX_RECORD).max(1);
    let length = size.saturating_sub(records * RECORD_HEADER).max(MESSAGE_HEADER);
    let mut message = vec![kind];
    let body = u32::try_from(length - 4).unwrap_or(0).to_be_bytes();
    message.extend_from_slice(body.get(1..).unwrap_or_default());
    message.extend_from_slice(&salt.to_be_bytes());
    message.push(flags);
    while message.len() < length {
        message.push(filler(salt, message.len()));
    }
    let mut out = Vec::with_capacity(size);
    for part in message.chunks(MAX_RECORD) {
        record(HANDSHAKE, part, &mut out);
    }
    out
}

fn header(message: &[u8]) -> Option<(u64, u8)> {
    let (salt, rest) = message.get(4..)?.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*salt), *rest.first()?))
}

fn filler(salt: u64, at: usize) -> u8 {
    (salt as u8).wrapping_add(at as u8).wrapping_mul(31)
}

fn filler_holds(message: &[u8]) -> bool {
    let Some((salt, _)) = header(message) else { return false };
    let mut rest = message.iter().enumerate().skip(MESSAGE_HEADER);
    rest.all(|(at, &byte)| byte == filler(salt, at))
}

/// FNV-1a from the salt.
fn checksum(salt: u64, data: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325 ^ salt;
    data.iter().fold(begin, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
