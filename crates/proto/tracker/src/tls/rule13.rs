//! Tells TLS 1.3's encrypted records apart: Finished, EndOfEarlyData, tickets, alerts and
//! application data all have the outer type 23 (RFC 8446 §5.2).
//!
//! The rule uses what the negotiated suite fixes, the order, and TCP's acknowledgments:
//! * A record is 1 + tag bytes longer than its content. A Finished is 4 + hash bytes (§4.4.4), so
//!   its record has 53 bytes after its header under SHA-256, 69 under SHA-384. The client's first
//!   record of that length after the ServerHello is its Finished.
//! * Where the client offered application settings (ALPS) and the server took them, the client's
//!   EncryptedExtensions come before its Finished, mostly in the same record, and are 10 bytes.
//! * Some libraries put the client's certificate, its proof and its Finished into one record. Where
//!   the server goes on after a single such record, this was it. Where it goes on after several, or
//!   not at all, the first is taken, and the connection counts as uncertain, unless all came at the
//!   same time.
//! * A client that offers early data and pads its records hides EndOfEarlyData and Finished. Where the
//!   server goes on after two such records behind its ServerHello, they are taken for these two, where
//!   after one, for the Finished; the connection counts as uncertain.
//! * EndOfEarlyData is 4 bytes, its record 21 (§4.5). A client sends it if and only if the server
//!   accepted early data, after the server's Finished and right before its own. So a record of 21
//!   bytes right before the Finished, in a segment that acknowledges the ServerHello, is the proof
//!   of acceptance; its absence the proof of rejection. Early data of 4 bytes has the same length,
//!   but goes out before the ServerHello is acknowledged.
//! * The server's flight ends with a record of a Finished's length, or, where the library puts
//!   EncryptedExtensions to Finished into one record, with that record, told by its being long
//!   enough for both; full-size records continue it.
//! * What the server sends after its flight are tickets and application data: `after.rs` states how
//!   these are told apart.
//! * An alert is 2 bytes, its record 19: application data only if another record follows. Before the
//!   client's Finished nothing else is so short: the handshake has failed. A server whose first record
//!   after the client's Finished is as short may have refused the client, and has where the client sent
//!   a certificate, be it an empty one.
//!
//! Up to draft 18 EndOfEarlyData was an alert, its record 19 bytes.
//!
//! The rule is wrong, and cannot know it, where
//! * a peer pads its records (§5.4): sizes then say nothing. A padded Finished leaves the client's
//!   flight without a record of its size, which counts as uncertain;
//! * a KeyUpdate (22 bytes, §4.6.3) comes before application data: it is taken for that;
//! * a certificate is asked for after the handshake (§4.6.2): the request is taken for a ticket or for
//!   data, the client's answer for data. Both come after the client's first data, as a rule;
//! * a server sends no tickets, and an answer in parts at different times that look like them: one
//!   or two equal parts before another that is too short for a ticket: the answer is then taken to
//!   begin with the last of these;
//! * a certificate's record happens to have a Finished's size;
//! * a client sends two bytes of data and no more, and the server nothing: they are taken for an
//!   alert. Where the server's only answer to a request has two bytes, it is taken for an alert, too,
//!   but counts as uncertain.

mod after;
mod alerts;

use units::Time;
use wire::tls::{SuiteFacts, Version};

use self::after::After;
use super::{Encrypted, Mark};
use crate::record::{EarlyData, Uncertain};
use crate::side::Sender;

/// The longest content of a record (RFC 8446 §5.1).
const RECORD_MAX: usize = 1 << 14;
/// The client's EncryptedExtensions with empty application settings, as browsers send it where the
/// server accepts them: message header, length of the list, type, length (draft-vvv-tls-alps §4).
const CLIENT_SETTINGS: usize = 4 + 2 + 2 + 2;
/// Bytes to which libraries pad records at least, by multiples.
const BLOCK: usize = 64;
/// Records of the server's flight that are kept until the client's Finished.
const FLIGHT: usize = 8;
/// Records of the client's flight in which its Finished is looked for: certificate, its proof and
/// what may be split.
const CLIENT_FLIGHT: usize = 4;

/// The records of one connection after its ServerHello.
#[derive(Debug)]
pub(crate) struct Rule13 {
    overhead: usize,
    finished_len: usize,
    end_of_early_data_len: usize,
    server_hello_end: u64,
    psk_accepted: bool,
    early_offered: bool,
    alps_offered: bool,
    /// The server's records until the client's Finished.
    flight: [Option<Encrypted>; FLIGHT],
    flight_overflow: bool,
    end_of_early_data: Option<Encrypted>,
    /// A record of an alert's size before the client's Finished.
    client_alert: Option<Encrypted>,
    /// The client's records that may be its certificate, proof and Finished.
    client_flight: [Option<Encrypted>; CLIENT_FLIGHT],
    /// The client's records in `client_flight` after which the server went on, where early data is offered.
    padded: usize,
    /// The client sent a certificate, or an empty one.
    certified: bool,
    client_short: Option<Encrypted>,
    /// What the server sends after its flight.
    after: After,
    /// What was found.
    pub(crate) found: Found,
}

/// What the rule has found so far.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) early_first: Option<Time>,
    pub(crate) early_records: u32,
    pub(crate) early_bytes: u64,
    pub(crate) early_data: Option<EarlyData>,
    pub(crate) client_finished: Option<Encrypted>,
    pub(crate) server_flight_end: Option<Time>,
    pub(crate) client_data: Option<Encrypted>,
    pub(crate) server_data: Option<Mark>,
    pub(crate) tickets: u32,
    /// The last record of the client and that of the server, where it has an alert's size.
    pub(crate) alerts: [Option<(Time, Sender)>; 2],
    /// The server answered the client's certificate by an alert.
    pub(crate) refused: bool,
    pub(crate) uncertain: Vec<Uncertain>,
}

/// Whether decryption settles a doubt.
pub(crate) const fn of_the_rule(reason: Uncertain) -> bool {
    matches!(
        reason,
        Uncertain::ClientFinished
            | Uncertain::ServerFinished
            | Uncertain::EndOfEarlyData
            | Uncertain::TicketOrData
            | Uncertain::ServerSpeaksFirst
            | Uncertain::ServerAlert
    )
}

impl Found {
    /// Counts a record of early data.
    pub(crate) fn early(&mut self, record: Encrypted) {
        self.early_first.get_or_insert(record.begin.at);
        self.early_records = self.early_records.saturating_add(1);
        self.early_bytes = self.early_bytes.saturating_add(record.len as u64);
    }

    fn doubt(&mut self, reason: Uncertain) {
        if !self.uncertain.contains(&reason) {
            self.uncertain.push(reason);
        }
    }
}

/// What the hellos settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub(crate) version: Version,
    pub(crate) suite: SuiteFacts,
    /// Where the ServerHello ends in the server's stream.
    pub(crate) server_hello_end: u64,
    pub(crate) psk_accepted: bool,
    pub(crate) early_offered: bool,
    pub(crate) tickets_useful: bool,
    pub(crate) alps_offered: bool,
    /// The application protocols that the client offered.
    pub(crate) protocols: Protocols,
}

/// The application protocols that a client offered (ALPN), as far as they say who speaks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// None: the server may speak first, as mail servers do.
    #[default]
    None,
    /// Others than HTTP/2: the client speaks first.
    Others,
    /// HTTP/2, whose server sends its SETTINGS unasked (RFC 9113 §3.4), perhaps beside others.
    Http2,
}

impl Rule13 {
    /// The rule for a connection whose hellos are read; `found` has the early data so far.
    pub(crate) fn new(settled: Settled, found: Found) -> Self {
        let overhead = 1 + settled.suite.tag_len;
        let alerted = matches!(settled.version.draft(), Some(..19));
        Rule13 {
            overhead,
            finished_len: 4 + settled.suite.hash_len + overhead,
            end_of_early_data_len: overhead + if alerted { 2 } else { 4 },
            server_hello_end: settled.server_hello_end,
            psk_accepted: settled.psk_accepted,
            early_offered: settled.early_offered,
            alps_offered: settled.alps_offered,
            flight: [None; FLIGHT],
            flight_overflow: false,
            end_of_early_data: None,
            client_alert: None,
            client_flight: [None; CLIENT_FLIGHT],
            padded: 0,
            certified: false,
            client_short: None,
            after: After::new(overhead, settled.tickets_useful, settled.protocols),
            found,
        }
    }

    /// Whether nothing more is to be found.
    pub(crate) fn is_done(&self) -> bool {
        self.found.server_data.is_some()
            && (self.found.client_data.is_some()
                || self.found.early_data == Some(EarlyData::Accepted))
    }

    /// Takes the client's next encrypted record.
    pub(crate) fn client(&mut self, record: Encrypted) {
        if self.found.client_finished.is_some() {
            self.client_after_finished(record);
        } else if self.early_offered && record.begin.acked < self.server_hello_end {
            self.found.early(record);
        } else if self.is_client_finished(record) {
            self.client_finished(record);
        } else if self.early_offered && self.psk_accepted {
            // RFC 8446 §4.5: the last record before the Finished, if it has the length.
            if let Some(earlier) = self.end_of_early_data.take() {
                self.found.early(earlier);
            }
            if record.len == self.end_of_early_data_len {
                self.end_of_early_data = Some(record);
            } else if !self.may_be_alert(record) {
                self.early_or_padded(record);
            }
        } else if !self.may_be_alert(record) {
            self.client_certificate(record);
        }
    }

    /// Whether a record is as long as padding makes it: content, type and zeros fill blocks.
    const fn seems_padded(&self, record: &Encrypted) -> bool {
        record.len.saturating_add(1).saturating_sub(self.overhead).is_multiple_of(BLOCK)
    }

    /// Whether a record of the client has the size of its Finished, or where application settings were
    /// offered of these and the Finished: libraries put both into one record.
    const fn is_client_finished(&self, record: Encrypted) -> bool {
        record.len == self.finished_len
            || (self.alps_offered && record.len == self.finished_len + CLIENT_SETTINGS)
    }

    /// Whether a record before the client's Finished may be an alert: if no other follows.
    fn may_be_alert(&mut self, record: Encrypted) -> bool {
        if let Some(earlier) = self.client_alert.take()
            && self.early_offered
        {
            self.found.early(earlier);
        }
        let may = record.len == self.overhead + 2;
        if may {
            self.client_alert = Some(record);
        }
        may
    }

    /// A record behind the ServerHello that is early data, or hides EndOfEarlyData or the Finished by
    /// padding: early data where one of the Finished's length follows.
    fn early_or_padded(&mut self, record: Encrypted) {
        let flight = &mut self.client_flight;
        if let Some(place) = flight.iter_mut().find(|place| place.is_none()) {
            *place = Some(record);
        } else if self.padded == 0 {
            flight.rotate_left(1);
            let [.., last] = flight;
            if let Some(first) = last.replace(record) {
                self.found.early(first);
            }
        }
    }

    /// A client that offers early data has padded its records, and the server went on after some of them.
    fn client_padded(&mut self) {
        self.found.doubt(Uncertain::ClientFinished);
        self.found.doubt(Uncertain::EndOfEarlyData);
        let flight = std::mem::take(&mut self.client_flight);
        let mut records = flight.into_iter().flatten();
        if self.padded > 1 {
            self.end_of_early_data = records.next();
        }
        let Some(finished) = records.next() else { return };
        self.client_finished(finished);
        for record in records {
            self.client_after_finished(record);
        }
    }

    /// A record that is neither early data nor a Finished: a certificate or its proof, perhaps
    /// with the Finished in the same record.
    fn client_certificate(&mut self, record: Encrypted) {
        match self.client_flight.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(record),
            None => {
                self.found.doubt(Uncertain::ClientFinished);
                self.client_joined();
                self.client_after_finished(record);
            }
        }
    }

    /// The first record of the client's flight has its Finished, too; what follows is data.
    fn client_joined(&mut self) {
        let flight = std::mem::take(&mut self.client_flight);
        let [Some(first), ..] = flight else { return };
        self.certified = true;
        self.client_finished(first);
        for record in flight.into_iter().skip(1).flatten() {
            self.client_after_finished(record);
        }
    }

    /// What the server sends behind its flight comes after the client's Finished: so it is among the
    /// client's records that a record of the server acknowledges.
    fn client_answered(&mut self, record: Encrypted) {
        let known = |one: &&Encrypted| record.begin.acked >= one.end_offset;
        let flight = self.client_flight;
        let acked = flight.iter().flatten().take_while(known).count();
        if acked > 0 && self.flight.iter().flatten().next().is_some() {
            if self.early_offered && self.psk_accepted {
                self.padded = if self.padded == 0 { acked } else { self.padded };
                return;
            }
            let first = flight[0].map(|first| first.begin.at);
            let elsewhere = |one: &Encrypted| Some(one.begin.at) != first || Some(one.end) != first;
            if acked > 1 && flight.iter().flatten().take(acked).any(elsewhere) {
                self.found.doubt(Uncertain::ClientFinished);
            }
            self.client_joined();
        }
    }

    fn client_finished(&mut self, record: Encrypted) {
        self.found.client_finished = Some(record);
        let before = std::mem::take(&mut self.client_flight);
        if self.early_offered && self.psk_accepted {
            before.into_iter().flatten().for_each(|earlier| self.found.early(earlier));
        } else {
            self.certified |= before[0].is_some();
        }
        if let Some(earlier) = self.client_alert.take()
            && self.early_offered
        {
            self.found.early(earlier);
        }
        if self.early_offered {
            let accepted = self.end_of_early_data.is_some();
            if accepted && self.found.early_records == 0 {
                self.found.doubt(Uncertain::EndOfEarlyData);
            }
            let outcome = if accepted { EarlyData::Accepted } else { EarlyData::Rejected };
            self.found.early_data = Some(outcome);
        }
        self.end_server_flight();
    }

    fn client_after_finished(&mut self, record: Encrypted) {
        if self.found.client_data.is_some() || record.len <= self.overhead {
            return;
        }
        if record.len == self.overhead + 2 && self.client_short.is_none() {
            self.client_short = Some(record);
        } else {
            let first = self.client_short.take().unwrap_or(record);
            self.found.client_data = Some(first);
            self.after.client_speaks(first, &mut self.found);
        }
    }

    /// Finds the end of the server's flight among the records before the client's Finished; what
    /// follows it is a ticket or half-RTT data.
    fn end_server_flight(&mut self) {
        let flight = self.flight;
        let records = flight.iter().flatten();
        let count = records.clone().count();
        let Some(first) = records.clone().next() else {
            self.found.doubt(Uncertain::ServerFinished);
            return;
        };
        let of_length = records.clone().skip(1).position(|r| r.len == self.finished_len);
        // Room for an empty EncryptedExtensions and a Finished.
        let joined = first.len >= self.finished_len + 6;
        let full = RECORD_MAX + self.overhead;
        let last = match of_length {
            Some(position) => {
                if joined && self.psk_accepted {
                    self.found.doubt(Uncertain::ServerFinished);
                }
                position + 1
            }
            None if joined => {
                let padded = records.clone().all(|r| self.seems_padded(r));
                let fulls = records.clone().take_while(|r| r.len == full).count();
                let last = if padded { count - 1 } else { fulls.min(count - 1) };
                if (padded || last + 1 < count) && !self.psk_accepted {
                    self.found.doubt(Uncertain::ServerFinished);
                }
                last
            }
            None => {
                if self.early_offered || self.flight_overflow {
                    self.found.doubt(Uncertain::ServerFinished);
                }
                count - 1
            }
        };
        self.found.server_flight_end = records.clone().nth(last).map(|record| record.end);
        for record in records.skip(last + 1) {
            self.server_after_flight(*record);
        }
    }

    /// Takes the server's next encrypted record.
    pub(crate) fn server(&mut self, record: Encrypted) {
        if self.found.client_finished.is_none() {
            self.client_answered(record);
        }
        if self.found.client_finished.is_some() {
            self.server_after_flight(record);
            return;
        }
        match self.flight.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(record),
            None => self.flight_overflow = true,
        }
    }

    /// A ticket or application data.
    fn server_after_flight(&mut self, record: Encrypted) {
        let answers = self.answers(record);
        self.after.server(record, answers, &mut self.found);
    }

    /// Whether the server had both the client's Finished and application data when it sent it.
    fn answers(&self, record: Encrypted) -> bool {
        let acked = record.begin.acked;
        let finished = self.found.client_finished.is_some_and(|f| acked >= f.end_offset);
        let request = self.found.client_data.or(self.client_short);
        finished
            && (self.found.early_data == Some(EarlyData::Accepted)
                || request.is_some_and(|request| acked > request.begin_offset))
    }

    /// Decides what is still open when the connection ends.
    pub(crate) fn close(&mut self) {
        if self.found.client_finished.is_none()
            && self.client_alert.is_none()
            && self.client_flight[0].is_some()
        {
            self.found.doubt(Uncertain::ClientFinished);
            if self.padded > 0 {
                self.client_padded();
            } else if self.early_offered && self.psk_accepted {
                // The server did not go on: nothing says which of them was the Finished.
                let flight = std::mem::take(&mut self.client_flight);
                flight.into_iter().flatten().for_each(|record| self.found.early(record));
            } else {
                self.client_joined();
            }
        }
        self.short_records();
        self.alerts();
        self.after.close(&mut self.found);
    }
}

#[cfg(test)]
mod tests;
