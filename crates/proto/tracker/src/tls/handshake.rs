//! TLS over TCP: records of both directions in, facts out.

mod held;

use wire::tls::{
    Alert, ContentType, HandshakeType, MessageHeader, RecordHeader, Version, ssl2_server_version,
};

use super::decrypt::{self, Decryption, Start};
use super::hello::{ServerSaid, read_ssl2_client_hello};
use super::messages::{MessageEvent, MessageReader};
use super::records::{RecordEvent, RecordReader};
use super::rule13::{Found, Protocols, Settled};
use super::ssl2::{Ssl2Event, Ssl2Reader};
use super::{Encrypted, HelloWork, Mark, Rule13, read_client_hello, read_server_hello};
use crate::content::begins_tls;
use crate::keylog::KeyLog;
use crate::record::{AlertFacts, EarlyData, KeyUse, Resumption, TlsFacts, Transport, Uncertain};
use crate::side::{Pair, Sender};

/// Alerts that a record keeps at most.
pub(super) const MAX_ALERTS: usize = 4;

/// One direction of the record layer.
#[derive(Debug, Default)]
struct Side {
    /// TLS has begun, at this place of the stream.
    begun: bool,
    base: u64,
    /// Gathers a hello of SSL 2.0.
    ssl2: Option<Ssl2Reader>,
    records: RecordReader,
    messages: MessageReader,
    /// Bytes of the stream taken so far.
    offset: u64,
    /// Where the current record began.
    begin: Mark,
    begin_offset: u64,
    /// When the current message began, and the record bytes since.
    message_begin: Mark,
    record_bytes: u32,
    /// ChangeCipherSpec went by in TLS 1.2 or below: handshake records are encrypted.
    encrypted: bool,
    alert: [u8; 2],
    alert_len: usize,
    /// The bytes are no TLS.
    broken: bool,
    /// The payload of the current record, where it is to be decrypted.
    ciphertext: Vec<u8>,
}

/// How far the handshake is, as the server tells it.
#[derive(Debug)]
pub(super) enum Stage {
    /// Before the ServerHello; with what early data there was.
    Hellos(Box<Found>),
    /// TLS 1.2 or below.
    Legacy { certificate: bool },
    /// TLS 1.3 under a suite whose sizes are known.
    Rule(Box<Rule13>),
    /// TLS 1.3 under a suite of unknown sizes, or SSL 2.0.
    Unknown,
}

/// The handshake of one connection.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) facts: TlsFacts,
    pub(crate) uncertain: Vec<Uncertain>,
    pub(crate) client_data: Option<Mark>,
    pub(crate) server_data: Option<Mark>,
    work: HelloWork,
    pub(super) stage: Stage,
    sides: Pair<Side>,
    /// The client greeted in SSL 2.0's format.
    ssl2_greeting: bool,
    /// Records of early data before the ServerHello.
    early_records: u32,
    /// The hellos are read: keys may be looked for.
    keys_wanted: bool,
    pub(super) decryption: Option<Box<Decryption>>,
}

impl Handshake {
    /// A handshake that begins in streams of which so many bytes have passed.
    pub(crate) fn new(passed: Pair<u64>) -> Self {
        let side = |offset| Side { offset, ..Side::default() };
        Handshake {
            facts: TlsFacts::default(),
            uncertain: Vec::new(),
            client_data: None,
            server_data: None,
            work: HelloWork::default(),
            stage: Stage::Hellos(Box::default()),
            sides: Pair { client: side(passed.client), server: side(passed.server) },
            ssl2_greeting: false,
            early_records: 0,
            keys_wanted: false,
            decryption: None,
        }
    }

    /// Whether a hello of either side was read: before that it may not be TLS at all.
    pub(crate) const fn is_tls(&self) -> bool {
        self.work.client_hello_seen || self.work.server_hello_seen
    }

    /// Whether the client's bytes end within its hello: it is TLS, and nothing more of it can be told.
    pub(crate) fn is_cut_hello(&self) -> bool {
        let client = &self.sides.client;
        let unfinished = client.messages.unfinished();
        !client.broken && unfinished.is_some_and(|of| of.kind == HandshakeType::CLIENT_HELLO)
    }

    /// Whether the client's bytes are no TLS.
    pub(crate) const fn is_not_tls(&self) -> bool {
        self.sides.client.broken && !self.is_tls()
    }

    /// Whether nothing more is to be found.
    pub(crate) fn is_done(&self) -> bool {
        match &self.stage {
            Stage::Hellos(_) => false,
            Stage::Legacy { .. } => {
                self.client_data.is_some()
                    && self.server_data.is_some()
                    && self.facts.server_finished.is_some()
            }
            Stage::Rule(rule) => {
                rule.is_done() && self.decryption.as_ref().is_none_or(|keys| keys.is_done())
            }
            Stage::Unknown => true,
        }
    }

    /// Takes bytes in order from one side; `keys` are looked in once the hellos are read.
    pub(crate) fn deliver(&mut self, side: Sender, bytes: &[u8], mark: Mark, keys: &KeyLog) {
        if !self.sides[side].begun && !self.begins(side, bytes) {
            let s = &mut self.sides[side];
            s.offset = s.offset.saturating_add(bytes.len() as u64);
            return;
        }
        let mut input = bytes;
        if self.sides[side].ssl2.is_some() {
            self.ssl2(side, &mut input, mark);
        }
        loop {
            let s = &mut self.sides[side];
            let before = input.len();
            let offset = s.offset;
            let Some(event) = s.records.next(&mut input) else {
                s.offset += (before - input.len()) as u64;
                return;
            };
            s.offset += (before - input.len()) as u64;
            match event {
                RecordEvent::Begin(header) => {
                    // The header's first byte may have come a little earlier: it counts with
                    // the frame that completed it.
                    s.begin = mark;
                    s.begin_offset = (offset + (before - input.len()) as u64).saturating_sub(5);
                    s.alert_len = 0;
                    s.ciphertext.clear();
                    self.record_begins(side, header);
                }
                RecordEvent::Payload(header, payload) => {
                    self.payload(side, header, payload, mark);
                    if std::mem::take(&mut self.keys_wanted) {
                        self.find_keys(keys);
                    }
                }
                RecordEvent::End(header) => self.record_ends(side, header, mark),
                RecordEvent::NotTls => s.broken = true,
            }
        }
    }

    /// Whether a side's TLS begins with these bytes; what the server sent before is another
    /// protocol's.
    fn begins(&mut self, side: Sender, bytes: &[u8]) -> bool {
        let ssl2 = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let begins = match side {
            Sender::Client => ssl2 || bytes.first() == Some(&ContentType::Handshake.number()),
            Sender::Server => begins_tls(bytes) || (ssl2 && self.ssl2_greeting),
        };
        let s = &mut self.sides[side];
        if begins {
            s.begun = true;
            s.base = s.offset;
            s.ssl2 = ssl2.then(Ssl2Reader::default);
            s.message_begin = Mark::default();
            if side == Sender::Client {
                self.facts.preceded_by = u32::try_from(s.base).unwrap_or(u32::MAX);
            }
        }
        begins
    }

    /// Takes the bytes of SSL 2.0 at the front of a stream.
    fn ssl2(&mut self, side: Sender, input: &mut &[u8], mark: Mark) {
        let before = input.len();
        let Some(mut reader) = self.sides[side].ssl2.take() else { return };
        let s = &mut self.sides[side];
        if s.offset == s.base {
            s.begin = mark;
        }
        match reader.next(side, input) {
            Ssl2Event::More => s.ssl2 = Some(reader),
            Ssl2Event::NotSsl2 => {
                s.broken = true;
                *input = &[];
            }
            Ssl2Event::Record(record) if side == Sender::Client => {
                if read_ssl2_client_hello(&mut self.facts, &mut self.work, record) {
                    self.ssl2_greeting = true;
                    let len = record.len() as u32;
                    self.facts.client_hello = Some(s.begin.at);
                    self.facts.client_hello_end = Some(mark.at);
                    self.facts.client_hello_len = len;
                    self.facts.client_hello_records_len = len.saturating_add(2);
                } else {
                    s.broken = true;
                }
            }
            Ssl2Event::Record(record) => {
                if let Ok(version) = ssl2_server_version(record) {
                    // All that follows is SSL 2.0's own, and soon encrypted.
                    self.facts.version = Some(version);
                    self.facts.server_hello = Some(s.begin.at);
                    self.facts.server_hello_end = Some(mark.at);
                    self.uncertain.push(Uncertain::UnknownSuite);
                    self.stage = Stage::Unknown;
                }
                *input = &[];
            }
        }
        let s = &mut self.sides[side];
        s.offset = s.offset.saturating_add((before - input.len()) as u64);
    }

    fn record_begins(&mut self, side: Sender, header: RecordHeader) {
        let legacy = matches!(self.stage, Stage::Legacy { .. });
        if legacy && header.content_type == ContentType::ApplicationData {
            // TLS 1.2 tells its application data plainly.
            let begin = self.sides[side].begin;
            let data =
                if side == Sender::Client { &mut self.client_data } else { &mut self.server_data };
            data.get_or_insert(begin);
        }
        if header.content_type == ContentType::Handshake {
            let s = &mut self.sides[side];
            s.record_bytes = s.record_bytes.saturating_add(header.total_len() as u32);
        }
    }

    fn payload(&mut self, side: Sender, header: RecordHeader, payload: &[u8], mark: Mark) {
        let s = &mut self.sides[side];
        match header.content_type {
            ContentType::Handshake if !s.encrypted => {
                let mut messages = std::mem::take(&mut s.messages);
                let mut input = payload;
                loop {
                    // A message may begin with the last byte of a record: it counts with this.
                    if messages.is_between() && !input.is_empty() {
                        let s = &mut self.sides[side];
                        s.message_begin = s.begin;
                    }
                    match messages.next(&mut input) {
                        Some(MessageEvent::Begin(_)) => {}
                        Some(MessageEvent::End(message, body)) => {
                            self.message(side, header, message, body, mark);
                        }
                        None => break,
                    }
                }
                self.sides[side].messages = messages;
            }
            ContentType::Alert => {
                for byte in payload {
                    if let Some(to) = s.alert.get_mut(s.alert_len) {
                        *to = *byte;
                    }
                    s.alert_len = s.alert_len.saturating_add(1);
                }
            }
            ContentType::ApplicationData
                if self.decryption.as_ref().is_some_and(|keys| keys.wants(side)) =>
            {
                s.ciphertext.extend_from_slice(payload);
            }
            _ => {}
        }
    }

    fn message(
        &mut self,
        side: Sender,
        record: RecordHeader,
        message: MessageHeader,
        body: Option<&[u8]>,
        mark: Mark,
    ) {
        let len = message.length.saturating_add(MessageHeader::LEN as u32);
        match (side, message.kind, body) {
            (Sender::Client, HandshakeType::CLIENT_HELLO, Some(body)) => {
                let second = self.work.client_hello_seen;
                if !read_client_hello(&mut self.facts, &mut self.work, Transport::Tcp, body) {
                    self.sides[Sender::Client].broken = true;
                } else if second {
                    self.facts.second_client_hello_end.get_or_insert(mark.at);
                    self.facts.second_client_hello_len.get_or_insert(len);
                } else {
                    let s = &mut self.sides[Sender::Client];
                    self.facts.client_hello = Some(s.message_begin.at);
                    self.facts.client_hello_end = Some(mark.at);
                    self.facts.client_hello_len = len;
                    self.facts.client_hello_records_len = std::mem::take(&mut s.record_bytes);
                }
            }
            (
                Sender::Server,
                kind @ (HandshakeType::SERVER_HELLO | HandshakeType::HELLO_RETRY_REQUEST_DRAFT),
                Some(body),
            ) => self.server_hello(kind, record, body, mark),
            // Too long to be one, or given up.
            (Sender::Server, HandshakeType::SERVER_HELLO, None) => self.doubt_server_hello(),
            (Sender::Server, HandshakeType::CERTIFICATE, _) => {
                if let Stage::Legacy { certificate } = &mut self.stage {
                    *certificate = true;
                }
            }
            (Sender::Server, HandshakeType::CERTIFICATE_REQUEST, _) => {
                if matches!(self.stage, Stage::Legacy { .. }) {
                    self.facts.certificate_requested = Some(true);
                }
            }
            (Sender::Server, HandshakeType::SERVER_HELLO_DONE, _) => {
                self.facts.certificate_requested.get_or_insert(false);
                self.facts.server_flight_end.get_or_insert(mark.at);
            }
            (Sender::Server, HandshakeType::NEW_SESSION_TICKET, _) => {
                self.facts.tickets = self.facts.tickets.saturating_add(1);
            }
            _ => {}
        }
    }

    /// A ServerHello cannot be read.
    fn doubt_server_hello(&mut self) {
        let before = matches!(self.stage, Stage::Hellos(_));
        if before && !self.uncertain.contains(&Uncertain::ServerHello) {
            self.uncertain.push(Uncertain::ServerHello);
        }
    }

    fn server_hello(&mut self, kind: HandshakeType, record: RecordHeader, body: &[u8], mark: Mark) {
        if !matches!(self.stage, Stage::Hellos(_)) {
            return;
        }
        match read_server_hello(&mut self.facts, &mut self.work, kind, body) {
            ServerSaid::Nothing => self.doubt_server_hello(),
            ServerSaid::HelloRetryRequest => {
                self.facts.hello_retry_request.get_or_insert(mark.at);
            }
            ServerSaid::ServerHello => {
                let s = &self.sides[Sender::Server];
                self.facts.server_hello = Some(s.message_begin.at);
                self.facts.server_hello_end = Some(mark.at);
                let end = s.begin_offset.saturating_add(record.total_len() as u64);
                self.settle(end);
            }
        }
    }

    /// The version is known: what rules apply from here on.
    fn settle(&mut self, server_hello_end: u64) {
        let version = self.facts.version.unwrap_or(Version::TLS12);
        if !version.is_tls13() {
            self.stage = Stage::Legacy { certificate: false };
            return;
        }
        let Some(suite) = self.facts.cipher_suite.and_then(|suite| suite.tls13()) else {
            self.uncertain.push(Uncertain::UnknownSuite);
            self.stage = Stage::Unknown;
            return;
        };
        let Stage::Hellos(found) = &mut self.stage else { return };
        self.early_records = found.early_records;
        let settled = Settled {
            version,
            suite,
            server_hello_end,
            psk_accepted: self.facts.psk_accepted,
            early_offered: self.work.early_data,
            tickets_useful: self.work.tickets_useful,
            alps_offered: self.work.alps,
            protocols: match &self.facts.alpn_offered[..] {
                [] => Protocols::None,
                offered if offered.iter().any(|name| name == "h2") => Protocols::Http2,
                _ => Protocols::Others,
            },
        };
        self.stage = Stage::Rule(Box::new(Rule13::new(settled, std::mem::take(&mut **found))));
        self.keys_wanted = true;
    }

    /// Looks for the keys of a TLS 1.3 connection whose hellos are read.
    fn find_keys(&mut self, keys: &KeyLog) {
        let secrets = keys.find(&self.work.random);
        let (Some(secrets), Some(suite)) = (secrets, self.facts.cipher_suite) else { return };
        let version = self.facts.version.unwrap_or(Version::TLS12);
        let (early_offered, early_records) = (self.work.early_data, self.early_records);
        match Decryption::begin(secrets, Start { suite, version, early_offered, early_records }) {
            decrypt::Found::Keys(keys) => self.decryption = Some(keys),
            decrypt::Found::NotSupported => self.facts.keys = KeyUse::NotSupported,
            decrypt::Found::None => {}
        }
    }

    fn record_ends(&mut self, side: Sender, header: RecordHeader, mark: Mark) {
        match header.content_type {
            ContentType::Alert => self.alert(side, header, mark),
            ContentType::ChangeCipherSpec => self.change_cipher_spec(side),
            ContentType::Handshake if self.sides[side].encrypted => self.finished(side, mark),
            ContentType::ApplicationData => self.encrypted(side, header, mark),
            _ => {}
        }
    }

    fn alert(&mut self, side: Sender, header: RecordHeader, mark: Mark) {
        if self.facts.alerts.len() >= MAX_ALERTS {
            return;
        }
        let s = &self.sides[side];
        let plain = (header.length == 2 && !s.encrypted).then(|| Alert::parse(&s.alert).ok());
        let plain = plain.flatten();
        self.facts.alerts.push(AlertFacts {
            at: mark.at,
            from_client: side == Sender::Client,
            level: plain.map(|alert| alert.level),
            description: plain.map(|alert| alert.description),
            name: plain.and_then(Alert::name),
        });
    }

    fn change_cipher_spec(&mut self, side: Sender) {
        let Stage::Legacy { certificate } = self.stage else { return };
        self.sides[side].encrypted = true;
        // RFC 5246 §7.3, RFC 5077 §3.1: only a resumed session changes cipher without a
        // certificate, or before the client did.
        let resumed = !certificate && self.facts.server_flight_end.is_none();
        if side == Sender::Server && resumed && self.facts.client_finished.is_none() {
            self.facts.resumption = match self.facts.ticket_offered {
                Some(1..) => Resumption::Ticket,
                _ => Resumption::SessionId,
            };
        }
    }

    /// The first encrypted handshake record after ChangeCipherSpec (RFC 5246 §7.4.9).
    fn finished(&mut self, side: Sender, mark: Mark) {
        if side == Sender::Client {
            if self.facts.client_finished.is_none() {
                self.facts.client_finished = Some(mark.at);
                self.facts.server_flight_len = self.server_bytes();
            }
        } else {
            self.facts.server_finished.get_or_insert(mark.at);
            self.facts.certificate_requested.get_or_insert(false);
            if self.facts.resumption != Resumption::None {
                self.facts.server_flight_end.get_or_insert(mark.at);
            }
        }
    }

    /// Bytes of TLS that the server has sent.
    const fn server_bytes(&self) -> u64 {
        self.sides.server.offset.saturating_sub(self.sides.server.base)
    }

    fn encrypted(&mut self, side: Sender, header: RecordHeader, mark: Mark) {
        let s = &self.sides[side];
        let record = Encrypted {
            begin: s.begin,
            end: mark.at,
            begin_offset: s.begin_offset,
            end_offset: s.offset,
            len: header.length.into(),
            server_bytes: self.server_bytes(),
        };
        if let Some(keys) = &mut self.decryption
            && keys.wants(side)
        {
            keys.record(side, header, record, &mut self.sides[side].ciphertext);
        }
        match &mut self.stage {
            Stage::Hellos(found)
                if side == Sender::Client && self.facts.early_data != EarlyData::NotOffered =>
            {
                found.early(record);
            }
            Stage::Rule(rule) if side == Sender::Client => rule.client(record),
            Stage::Rule(rule) => rule.server(record),
            _ => {}
        }
    }
}
