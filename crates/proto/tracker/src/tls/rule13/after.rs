//! Tells a TLS 1.3 server's tickets from its application data after its flight.
//!
//! * A NewSessionTicket is 18 bytes at least (RFC 8446 §4.6.1), its record 35: a shorter record is
//!   application data. A client without PSK modes gets no tickets (§4.2.9).
//! * A record that does not acknowledge the client's application data is unasked: a ticket, if it is short
//!   enough. Tickets of a connection are as long as one another: an unasked record of another length is a
//!   ticket for sure only where the client's protocols say that the client speaks first.
//! * A client that offers HTTP/2 may get SETTINGS unasked (RFC 9113 §3.4), of 9 bytes and 6 for each
//!   setting, often with a WINDOW_UPDATE of 13. A record of such a length that differs from the tickets
//!   before is taken for them. One below 41 bytes is no ticket: libraries make none so short. The first
//!   record of the server, at 41 bytes or more, may be either: a doubt.
//! * A client without ALPN may speak a protocol whose server begins, as mail does. A lone ticket, or
//!   one of another length, may then be its greeting: a doubt, if the client waited for it.
//! * Where a record acknowledges both Finished and request, one or two equal records before another one
//!   are taken for tickets. Another of an earlier ticket's length is one too. The connection counts as
//!   uncertain; not where all came at the same time, which is then known, nor where the last can be
//!   nothing but SETTINGS.

use super::{Found, Protocols};
use crate::record::{EarlyData, Uncertain};
use crate::tls::Encrypted;

/// Shortest NewSessionTicket: header, lifetime, age, empty nonce, ticket of one byte, no extension.
const TICKET_MIN: usize = 4 + 4 + 4 + 1 + (2 + 1) + 2;
/// Shortest ticket of a library: a nonce of 8 bytes and a ticket of 16.
const TICKET_MADE: usize = 4 + 4 + 4 + (1 + 8) + (2 + 16) + 2;
/// Longest content taken for tickets: two of half a kilobyte, as some libraries join them.
const TICKET_MAX: usize = 1200;

/// Longest content taken for the greeting of a server that speaks first: a line.
const GREETING_MAX: usize = 160;

/// A frame's header in HTTP/2 (RFC 9113 §4.1).
const FRAME_HEADER: usize = 9;
/// A setting (RFC 9113 §6.5.1).
const SETTING: usize = 6;
/// Settings that a server sends at most: seven are registered and in use, and two of extensions.
const SETTINGS: usize = 9;
/// A WINDOW_UPDATE frame (RFC 9113 §6.9).
const WINDOW_UPDATE: usize = FRAME_HEADER + 4;

/// What the server sends after its flight.
#[derive(Debug)]
pub(super) struct After {
    overhead: usize,
    tickets_useful: bool,
    protocols: Protocols,
    /// The first unasked record that is as long as a ticket.
    first: Option<Encrypted>,
    /// Records that were taken for tickets, as long as the first.
    unasked: u32,
    /// The first unasked record may be SETTINGS.
    settings: Option<Encrypted>,
    /// Up to two records that are tickets or the response.
    held: [Option<Encrypted>; 2],
    short: Option<Encrypted>,
}

impl After {
    pub(super) const fn new(overhead: usize, tickets_useful: bool, protocols: Protocols) -> Self {
        After {
            overhead,
            tickets_useful,
            protocols,
            first: None,
            unasked: 0,
            settings: None,
            held: [None; 2],
            short: None,
        }
    }

    /// A record of an alert's length, the first of the server's that may be data.
    pub(super) const fn short(&self) -> Option<Encrypted> {
        self.short
    }

    /// Whether nothing but a record of an alert's length came.
    pub(super) const fn is_empty(&self, found: &Found) -> bool {
        found.tickets == 0
            && found.server_data.is_none()
            && self.first.is_none()
            && self.held[0].is_none()
    }

    fn content(&self, record: Encrypted) -> usize {
        record.len.saturating_sub(self.overhead)
    }

    /// Takes a record; `answers`: the server had the client's Finished and data when it sent it.
    pub(super) fn server(&mut self, record: Encrypted, answers: bool, found: &mut Found) {
        let content = self.content(record);
        if content == 0 || found.server_data.is_some() {
            return;
        }
        if content == 2 && self.short.is_none() {
            self.short = Some(record);
            return;
        }
        if let Some(short) = self.short {
            self.data(short, found);
        } else if content < TICKET_MIN || !self.tickets_useful {
            self.data_behind(record, true, found);
        } else if answers {
            self.answer(record, found);
        } else if found.early_data == Some(EarlyData::Accepted) {
            // Half-RTT data answers early data; some libraries send their tickets here too.
            if content <= TICKET_MAX {
                found.doubt(Uncertain::TicketOrData);
            }
            self.data(record, found);
        } else if content <= TICKET_MAX {
            self.unasked(record, found);
        } else {
            found.doubt(Uncertain::ServerSpeaksFirst);
            self.data_behind(record, true, found);
        }
    }

    /// Whether a record is as long as SETTINGS are, and the client speaks HTTP/2.
    fn may_be_settings(&self, record: Encrypted) -> bool {
        let content = self.content(record);
        let frames = |rest: usize| {
            content
                .checked_sub(rest)
                .is_some_and(|list| list % SETTING == 0 && list / SETTING <= SETTINGS)
        };
        self.protocols == Protocols::Http2
            && (frames(FRAME_HEADER) || frames(FRAME_HEADER + WINDOW_UPDATE))
    }

    /// Whether a record can be nothing but SETTINGS.
    fn is_settings(&self, record: Encrypted) -> bool {
        self.may_be_settings(record) && self.content(record) < TICKET_MADE
    }

    /// A record of a ticket's length for which nobody asked.
    fn unasked(&mut self, record: Encrypted, found: &mut Found) {
        let Some(first) = self.first else {
            self.first_unasked(record, found);
            return;
        };
        let same = first.len == record.len;
        if same {
            if self.settings.take().is_some() {
                self.ticket(found);
            }
            self.ticket(found);
        } else if let Some(settings) = self.settings {
            if self.is_settings(record) {
                // A short ticket, and SETTINGS behind it.
                self.settings = None;
                self.ticket(found);
                self.data(record, found);
            } else {
                found.doubt(Uncertain::TicketOrData);
                self.data(settings, found);
            }
        } else if self.may_be_settings(record) {
            self.data(record, found);
        } else if self.protocols != Protocols::None {
            self.ticket(found);
        } else {
            found.doubt(Uncertain::ServerSpeaksFirst);
            self.data(record, found);
        }
    }

    fn first_unasked(&mut self, record: Encrypted, found: &mut Found) {
        if self.is_settings(record) {
            self.data(record, found);
            return;
        }
        self.first = Some(record);
        if self.may_be_settings(record) {
            self.settings = Some(record);
        } else {
            self.ticket(found);
        }
    }

    fn ticket(&mut self, found: &mut Found) {
        self.unasked = self.unasked.saturating_add(1);
        found.tickets = found.tickets.saturating_add(1);
    }

    /// The client's first data: where it waited for a lone ticket, that may have been a greeting.
    pub(super) fn client_speaks(&self, data: Encrypted, found: &mut Found) {
        let alone = self.protocols == Protocols::None && self.unasked == 1;
        let may_greet = |record: &Encrypted| alone && self.content(*record) <= GREETING_MAX;
        if self.first.filter(may_greet).is_some_and(|one| data.begin.acked >= one.end_offset) {
            found.doubt(Uncertain::ServerSpeaksFirst);
        }
    }

    fn answer(&mut self, record: Encrypted, found: &mut Found) {
        if self.settings.is_some() {
            self.data_behind(record, false, found);
            return;
        }
        let taken_early = found.early_data == Some(EarlyData::Accepted);
        let same = self.first.is_some_and(|first| first.len == record.len);
        let one_more = same && self.unasked == 1 && self.held[0].is_none();
        if (found.tickets > 0 && !taken_early && !one_more) || self.content(record) > TICKET_MAX {
            if matches!(self.held, [Some(_), None]) && !self.held_is_ticket() {
                // A ticket, or the first part of an answer.
                self.doubt_held(record, found);
            } else if same {
                found.doubt(Uncertain::TicketOrData);
            }
            self.data(record, found);
            return;
        }
        match self.held {
            [None, _] if self.is_settings(record) => self.data(record, found),
            [None, _] => self.held[0] = Some(record),
            [Some(first), None] if first.len == record.len => self.held[1] = Some(record),
            _ => self.data_behind(record, false, found),
        }
    }

    /// Whether what is held is as long as a ticket that came unasked.
    fn held_is_ticket(&self) -> bool {
        let [Some(held), _] = self.held else { return false };
        self.unasked > 0 && self.first.is_some_and(|first| first.len == held.len)
    }

    /// Data, for `sure` or so it seems, behind what may be SETTINGS or tickets.
    fn data_behind(&mut self, record: Encrypted, sure: bool, found: &mut Found) {
        if let Some(settings) = self.settings.take() {
            // An HTTP/2 server's first data are its SETTINGS.
            found.doubt(Uncertain::TicketOrData);
            self.data(settings, found);
            return;
        }
        match self.held {
            // SETTINGS come first.
            [Some(_), _] if self.may_be_settings(record) && !self.held_may_be_settings() => {}
            [Some(_), _] if self.held_is_ticket() => {}
            [Some(held), None] if self.may_be_settings(held) => {
                found.doubt(Uncertain::TicketOrData);
                self.held = [None; 2];
                self.data(held, found);
                return;
            }
            _ if sure => {}
            _ => self.doubt_held(record, found),
        }
        self.data(record, found);
    }

    fn held_may_be_settings(&self) -> bool {
        self.held.iter().flatten().any(|held| self.may_be_settings(*held))
    }

    /// What is held could be data as well as `record`: a doubt, unless both came at the same time.
    fn doubt_held(&mut self, record: Encrypted, found: &mut Found) {
        if self.held.iter().flatten().any(|held| held.begin.at != record.begin.at) {
            found.doubt(Uncertain::TicketOrData);
        }
    }

    /// The server's first application data is found; what was held were tickets.
    fn data(&mut self, record: Encrypted, found: &mut Found) {
        found.server_data = Some(record.begin);
        let held = self.held.iter().flatten().count() as u32;
        found.tickets = found.tickets.saturating_add(held);
        self.held = [None; 2];
        self.settings = None;
    }

    /// Decides what is still open when the connection ends.
    pub(super) fn close(&mut self, found: &mut Found) {
        if found.server_data.is_some() {
            return;
        }
        if let Some(settings) = self.settings {
            found.doubt(Uncertain::TicketOrData);
            self.data(settings, found);
            return;
        }
        match self.held {
            [Some(_), None] if self.held_is_ticket() => {
                found.doubt(Uncertain::TicketOrData);
                found.tickets = found.tickets.saturating_add(1);
            }
            [Some(only), None] => {
                found.doubt(Uncertain::TicketOrData);
                self.held = [None; 2];
                self.data(only, found);
            }
            [Some(_), Some(_)] => {
                found.doubt(Uncertain::TicketOrData);
                found.tickets = found.tickets.saturating_add(2);
            }
            _ => {}
        }
    }
}
