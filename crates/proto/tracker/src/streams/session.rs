//! What is on a connection's streams: TLS, whose records are opened, or bytes in clear.

use units::Time;
use wire::tls::{
    CipherSuite, ClientHello, ContentType, HandshakeType, RecordHeader, ServerHello, Version,
};

use super::flow::{Fact, unreadable};
use super::{StreamFact, Unreadable, is_client};
use crate::content::begins_tls;
use crate::keylog::KeyLog;
use crate::side::{Pair, Sender};
use crate::tls::{
    MessageEvent, MessageReader, Opened, Opener12, Opener13, RecordEvent, RecordReader, Start,
    protocol,
};

/// Bytes of early data that wait for the server's word; what libraries take is far below.
const EARLY_ROOM: usize = 128 << 10;

/// A connection's two streams of bytes.
#[derive(Debug, Default)]
pub(super) struct Session {
    kind: Kind,
    /// Directions that are not read any more.
    stopped: Pair<bool>,
}

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Unknown,
    Clear,
    Tls(Box<Tls>),
}

impl Session {
    /// Whether a direction is not read any more.
    pub(super) fn is_unreadable(&self, side: Sender) -> bool {
        self.stopped[side]
    }

    /// Takes a direction's next bytes.
    pub(super) fn deliver(
        &mut self,
        side: Sender,
        bytes: &[u8],
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) {
        if self.stopped[side] || bytes.is_empty() {
            return;
        }
        if let Kind::Unknown = self.kind {
            self.kind = if begins_tls(bytes) { Kind::Tls(Box::default()) } else { Kind::Clear };
        }
        let result = match &mut self.kind {
            Kind::Tls(tls) => tls.deliver(side, bytes, at, keys, facts),
            _ => {
                facts.push(data(side, at, bytes));
                Ok(())
            }
        };
        match result {
            Ok(()) => {}
            // Without its keys nothing of either direction can be read.
            Err(why @ (Unreadable::NoKeys | Unreadable::Suite(_))) => {
                for side in [Sender::Client, Sender::Server] {
                    self.stop(side, at, why, facts);
                }
            }
            Err(why) => self.stop(side, at, why, facts),
        }
    }

    /// Reads no more of a direction, and says why; once.
    pub(super) fn stop(&mut self, side: Sender, at: Time, why: Unreadable, facts: &mut Vec<Fact>) {
        if std::mem::replace(&mut self.stopped[side], true) {
            return;
        }
        facts.push(unreadable(side, at, why));
        if self.stopped.client && self.stopped.server {
            self.release();
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        match &self.kind {
            Kind::Tls(tls) => tls.held_bytes(),
            _ => 0,
        }
    }

    /// Lets go of all that is held: nothing more is read.
    pub(super) fn release(&mut self) {
        self.kind = Kind::Clear;
    }
}

fn data(side: Sender, at: Time, bytes: &[u8]) -> Fact {
    (at, StreamFact::Data { from_client: is_client(side), bytes: bytes.to_vec() })
}

/// One direction of the record layer.
#[derive(Debug, Default)]
struct Side {
    records: RecordReader,
    messages: MessageReader,
    /// The payload of the record that is read.
    payload: Vec<u8>,
    /// TLS 1.2: its records are encrypted.
    encrypted: bool,
}

/// What opens records.
#[derive(Debug, Default)]
enum Opener {
    /// The hellos are not through.
    #[default]
    None,
    Tls13(Box<Opener13>),
    Tls12(Box<Opener12>),
}

/// TLS from its first byte on.
#[derive(Debug, Default)]
struct Tls {
    client_random: Option<[u8; 32]>,
    server_name: Option<String>,
    early_offered: bool,
    sides: Pair<Side>,
    opener: Opener,
    /// Records of the client's early data that wait: for keys, or for the server's word.
    early: Vec<(Time, RecordHeader, Vec<u8>)>,
    early_bytes: usize,
}

impl Tls {
    fn held_bytes(&self) -> usize {
        let side = |side: &Side| side.payload.capacity() + side.messages.held_bytes();
        let opener = match &self.opener {
            Opener::Tls13(opener) => opener.held_bytes(),
            _ => 0,
        };
        side(&self.sides.client) + side(&self.sides.server) + opener + self.early_bytes
    }

    fn deliver(
        &mut self,
        side: Sender,
        mut bytes: &[u8],
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Unreadable> {
        loop {
            let s = &mut self.sides[side];
            let Some(event) = s.records.next(&mut bytes) else { return Ok(()) };
            match event {
                RecordEvent::Begin(_) => s.payload.clear(),
                RecordEvent::Payload(_, payload) => s.payload.extend_from_slice(payload),
                RecordEvent::NotTls => return Err(Unreadable::NotTls),
                RecordEvent::End(header) => {
                    let mut payload = std::mem::take(&mut s.payload);
                    self.record(side, header, &mut payload, at, keys, facts)?;
                    self.sides[side].payload = payload;
                }
            }
        }
    }

    /// Takes a whole record.
    fn record(
        &mut self,
        side: Sender,
        header: RecordHeader,
        payload: &mut Vec<u8>,
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Unreadable> {
        let encrypted = self.sides[side].encrypted;
        match (header.content_type, &mut self.opener) {
            (ContentType::Handshake, _) if !encrypted => {
                self.handshake(side, payload, at, keys, facts)
            }
            (ContentType::ChangeCipherSpec, Opener::Tls12(opener)) => {
                opener.change_cipher_spec(side);
                self.sides[side].encrypted = true;
                Ok(())
            }
            (_, Opener::Tls12(opener)) => {
                if let Opened::Data(bytes) = opener.record(side, header, payload)? {
                    facts.push(data(side, at, bytes));
                }
                Ok(())
            }
            (ContentType::ApplicationData, Opener::Tls13(opener)) if !opener.holds(side) => {
                match opener.record(side, header, payload)? {
                    Opened::Data(bytes) => facts.push(data(side, at, bytes)),
                    Opened::Extensions { alpn, .. } => {
                        facts.push((at, StreamFact::Alpn(alpn)));
                        self.settle_early(facts)?;
                    }
                    Opened::Nothing => {}
                }
                Ok(())
            }
            (ContentType::ApplicationData, _) if side == Sender::Client && self.early_offered => {
                self.early_bytes = self.early_bytes.saturating_add(payload.len());
                if self.early_bytes > EARLY_ROOM {
                    return Err(Unreadable::NoRoom);
                }
                self.early.push((at, header, std::mem::take(payload)));
                Ok(())
            }
            (ContentType::ApplicationData, Opener::None) => Err(Unreadable::Record),
            _ => Ok(()),
        }
    }

    /// The server has said what becomes of early data: opens what waited.
    fn settle_early(&mut self, facts: &mut Vec<Fact>) -> Result<(), Unreadable> {
        let Opener::Tls13(opener) = &mut self.opener else { return Ok(()) };
        self.early_bytes = 0;
        for (at, header, mut payload) in std::mem::take(&mut self.early) {
            if let Opened::Data(bytes) = opener.record(Sender::Client, header, &mut payload)? {
                facts.push(data(Sender::Client, at, bytes));
            }
        }
        Ok(())
    }

    /// Takes handshake messages that are not encrypted.
    fn handshake(
        &mut self,
        side: Sender,
        payload: &[u8],
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Unreadable> {
        let mut messages = std::mem::take(&mut self.sides[side].messages);
        let mut input = payload;
        let mut result = Ok(());
        while let Some(event) = messages.next(&mut input) {
            let MessageEvent::End(message, Some(body)) = event else { continue };
            match (side, message.kind) {
                (Sender::Client, HandshakeType::CLIENT_HELLO) => self.client_hello(body),
                (Sender::Server, HandshakeType::SERVER_HELLO) => {
                    result = self.server_hello(body, at, keys, facts);
                }
                _ => {}
            }
        }
        self.sides[side].messages = messages;
        result
    }

    fn client_hello(&mut self, body: &[u8]) {
        let Ok(hello) = ClientHello::new_checked(body) else { return };
        // A second one has the same random, and no early data (RFC 8446 §4.1.2).
        self.client_random = Some(*hello.random());
        self.early_offered |= hello.early_data();
        self.server_name = hello.server_name().map(|name| name.chars().take(255).collect());
    }

    fn server_hello(
        &mut self,
        body: &[u8],
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Unreadable> {
        let Ok(hello) = ServerHello::new_checked(body) else { return Err(Unreadable::NotTls) };
        if hello.is_hello_retry_request() || !matches!(self.opener, Opener::None) {
            return Ok(());
        }
        let (version, suite) = (hello.version(), hello.cipher_suite());
        let server_name = self.server_name.take();
        facts.push((at, StreamFact::Tls { version, suite, server_name }));
        let client_random = self.client_random.ok_or(Unreadable::Missing)?;
        let secrets = keys.find(&client_random).ok_or(Unreadable::NoKeys)?;
        self.opener = if version.is_tls13() {
            let start = Start {
                suite,
                version,
                early_offered: self.early_offered,
                // Those that came before wait, and are opened from the first on.
                early_records: 0,
            };
            Opener::Tls13(Box::new(Opener13::new(secrets, start)?))
        } else {
            self.early_offered = false;
            (self.early, self.early_bytes) = (Vec::new(), 0);
            let alpn = hello.alpn().map(protocol);
            facts.push((at, StreamFact::Alpn(alpn)));
            let opener = tls12(secrets, version, suite, [&client_random, hello.random()])?;
            Opener::Tls12(Box::new(opener))
        };
        Ok(())
    }
}

fn tls12(
    secrets: &crate::keylog::Secrets,
    version: Version,
    suite: CipherSuite,
    randoms: [&[u8; 32]; 2],
) -> Result<Opener12, Unreadable> {
    // TLS 1.1 and below have no suites with AEAD.
    if version != Version::TLS12 {
        return Err(Unreadable::Suite(suite));
    }
    Opener12::new(secrets, suite, randoms)
}
