//! TLS over TCP: records of both directions in, facts out.

use wire::tls::{Alert, ContentType, HandshakeType, MessageHeader, RecordHeader, Version};

use super::hello::ServerSaid;
use super::messages::{MessageEvent, MessageReader};
use super::records::{RecordEvent, RecordReader};
use super::rule13::{Found, Settled};
use super::{Encrypted, HelloWork, Mark, Rule13, read_client_hello, read_server_hello};
use crate::record::{AlertFacts, EarlyData, Resumption, TlsFacts, Uncertain};
use crate::side::{Pair, Sender};

/// Alerts that a record keeps at most.
const MAX_ALERTS: usize = 4;

/// One direction of the record layer.
#[derive(Debug, Default)]
struct Side {
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
}

/// How far the handshake is, as the server tells it.
#[derive(Debug)]
enum Stage {
    /// Before the ServerHello; with what early data there was.
    Hellos(Box<Found>),
    /// TLS 1.2 or below.
    Legacy { certificate: bool },
    /// TLS 1.3.
    Rule(Box<Rule13>),
    /// TLS 1.3 under a suite of unknown sizes.
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
    stage: Stage,
    sides: Pair<Side>,
}

impl Handshake {
    pub(crate) fn new() -> Self {
        Handshake {
            facts: TlsFacts::default(),
            uncertain: Vec::new(),
            client_data: None,
            server_data: None,
            work: HelloWork::default(),
            stage: Stage::Hellos(Box::default()),
            sides: Pair::default(),
        }
    }

    /// Whether the client sent a ClientHello: before that it may not be TLS at all.
    pub(crate) const fn is_tls(&self) -> bool {
        self.work.client_hello_seen
    }

    /// Whether the client's bytes are no TLS.
    pub(crate) const fn is_not_tls(&self) -> bool {
        self.sides.client.broken && !self.work.client_hello_seen
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
            Stage::Rule(rule) => rule.is_done(),
            Stage::Unknown => true,
        }
    }

    /// Takes bytes in order from one side.
    pub(crate) fn deliver(&mut self, side: Sender, bytes: &[u8], mark: Mark) {
        let mut input = bytes;
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
                    self.record_begins(side, header);
                }
                RecordEvent::Payload(header, payload) => {
                    self.payload(side, header, payload, mark);
                }
                RecordEvent::End(header) => self.record_ends(side, header, mark),
                RecordEvent::NotTls => s.broken = true,
            }
        }
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
                if !read_client_hello(&mut self.facts, &mut self.work, body) {
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
            (Sender::Server, HandshakeType::CERTIFICATE, _) => {
                if let Stage::Legacy { certificate } = &mut self.stage {
                    *certificate = true;
                }
            }
            (Sender::Server, HandshakeType::SERVER_HELLO_DONE, _) => {
                self.facts.server_flight_end.get_or_insert(mark.at);
            }
            (Sender::Server, HandshakeType::NEW_SESSION_TICKET, _) => {
                self.facts.tickets = self.facts.tickets.saturating_add(1);
            }
            _ => {}
        }
    }

    fn server_hello(&mut self, kind: HandshakeType, record: RecordHeader, body: &[u8], mark: Mark) {
        if !matches!(self.stage, Stage::Hellos(_)) {
            return;
        }
        match read_server_hello(&mut self.facts, &mut self.work, kind, body) {
            ServerSaid::Nothing => {}
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
        let settled = Settled {
            suite,
            server_hello_end,
            psk_accepted: self.facts.psk_accepted,
            early_offered: self.work.early_data,
            tickets_useful: self.work.tickets_useful,
        };
        self.stage = Stage::Rule(Box::new(Rule13::new(settled, std::mem::take(&mut **found))));
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
                self.facts.server_flight_len = self.sides[Sender::Server].offset;
            }
        } else {
            self.facts.server_finished.get_or_insert(mark.at);
            if self.facts.resumption != Resumption::None {
                self.facts.server_flight_end.get_or_insert(mark.at);
            }
        }
    }

    fn encrypted(&mut self, side: Sender, header: RecordHeader, mark: Mark) {
        let s = &self.sides[side];
        let record = Encrypted {
            begin: s.begin,
            end: mark.at,
            begin_offset: s.begin_offset,
            end_offset: s.offset,
            len: header.length.into(),
        };
        let server_bytes = self.sides[Sender::Server].offset;
        match &mut self.stage {
            Stage::Hellos(found)
                if side == Sender::Client && self.facts.early_data != EarlyData::NotOffered =>
            {
                found.early(record);
            }
            Stage::Rule(rule) if side == Sender::Client => {
                let before = rule.found.client_finished.is_some();
                rule.client(record);
                if !before && rule.found.client_finished.is_some() {
                    self.facts.server_flight_len = server_bytes;
                }
            }
            Stage::Rule(rule) => rule.server(record),
            _ => {}
        }
    }

    /// Lets go of what is held for joining.
    pub(crate) fn release(&mut self) {
        self.sides.client.messages.release();
        self.sides.server.messages.release();
    }

    /// Decides what is still open; the facts are then complete.
    pub(crate) fn close(&mut self) {
        let found = match &mut self.stage {
            Stage::Rule(rule) => {
                rule.close();
                std::mem::take(&mut rule.found)
            }
            Stage::Hellos(found) => std::mem::take(&mut **found),
            _ => return,
        };
        let facts = &mut self.facts;
        facts.early_data_sent = found.early_first;
        facts.early_data_records = found.early_records;
        facts.early_data_bytes = found.early_bytes;
        if let Some(outcome) = found.early_data {
            facts.early_data = outcome;
        }
        facts.client_finished = facts.client_finished.or(found.client_finished.map(|r| r.end));
        facts.server_flight_end = facts.server_flight_end.or(found.server_flight_end);
        facts.server_finished = facts.server_finished.or(found.server_flight_end);
        facts.tickets = facts.tickets.saturating_add(found.tickets);
        let accepted = facts.early_data == EarlyData::Accepted;
        let early = found.early_first.filter(|_| accepted);
        let early = early.map(|at| Mark { at, acked: 0, traffic: Pair::default() });
        self.client_data = early.or(found.client_data.map(|record| record.begin));
        self.server_data = found.server_data;
        self.uncertain.extend(found.uncertain);
    }
}
