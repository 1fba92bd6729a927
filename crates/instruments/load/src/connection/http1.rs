//! HTTP/1.1 on a connection: one request after the other; or the handshake alone.

use std::io::{BufRead, ErrorKind, Write};

use rustls::ProtocolVersion;

use super::{Fault, Phase, Slot, Step, Tools, library};
use crate::failure::{Failure, Kind, Stage};
use crate::socket;
use crate::tally::Tally;

impl Slot {
    /// Reads what TLS has decrypted of the response.
    pub(super) fn respond(
        &mut self,
        arrived: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        loop {
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            let Some(tls) = &mut live.tls else { return Ok(Step::Wait) };
            let mut reader = tls.reader();
            let len = match reader.fill_buf() {
                Ok([]) => return Ok(Step::Wait),
                Ok(chunk) => {
                    if !live.saw_first_byte {
                        live.saw_first_byte = true;
                        tally.first_byte(live.times.due, live.times.requested, arrived);
                    }
                    let received = self.response.receive(chunk);
                    received.map_err(|wrong| (Stage::Response, wrong.into()))?;
                    chunk.len()
                }
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Step::Wait),
                Err(cause) => return Err((Stage::Response, library(&cause))),
            };
            reader.consume(len);
            if live.unconfirmed {
                live.confirm(tally);
            }
            if self.response.is_done() {
                return self.response_done(arrived, tools, tally);
            }
        }
    }

    fn response_done(
        &mut self,
        arrived: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let status = self.response.status();
        if !(200..400).contains(&status) {
            return Err((Stage::Response, Failure::new(Kind::Status, status)));
        }
        tally.answered(arrived);
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        live.requests_left = live.requests_left.saturating_sub(1);
        if live.requests_left == 0 {
            return Ok(self.complete(tools, tally));
        }
        if !self.response.keeps_alive() {
            return Ok(self.cut_short(tools, tally));
        }
        self.response.reset();
        live.saw_first_byte = false;
        let request = tools.request(live.requests_left).unwrap_or_default();
        live.times.requested = tools.now();
        let Some(tls) = &mut live.tls else { return Ok(Step::Wait) };
        let written = tls.writer().write_all(request);
        written.map_err(|cause| (Stage::Response, library(&cause)))?;
        Ok(Step::Wait)
    }

    /// Whether a response is whole and nothing of the next one has come.
    pub(super) fn is_between_responses(&self) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.phase == Phase::Responding
                && live.session.is_none()
                && live.requests_left > 0
                && !live.saw_first_byte
                && live.times.requested > live.times.secured
        })
    }

    /// The server ends the connection before all its requests, as it may (RFC 9112 §9.3).
    pub(super) fn cut_short(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Step {
        tally.short += 1;
        self.complete(tools, tally)
    }

    /// The server has closed, and a response is not whole.
    pub(super) fn end_of_response(
        &mut self,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        // An end without close_notify may be anybody's (RFC 8446 §6.1).
        let closed = live.tls.as_mut().is_some_and(|tls| {
            tls.process_new_packets().is_ok_and(|state| state.peer_has_closed())
        });
        if closed && self.response.ends() {
            live.requests_left = live.requests_left.min(1);
            return self.response_done(tools.now(), tools, tally);
        }
        let text = if closed {
            "the server closed before the response was whole"
        } else {
            "the connection ended before the response was whole, without close_notify"
        };
        if self.is_between_responses() {
            return Ok(self.cut_short(tools, tally));
        }
        Err((Stage::Response, Failure::new(Kind::ClosedEarly, text)))
    }

    pub(super) fn await_ticket(
        &mut self,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        self.push(key, tools, tally)?;
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let Some(tls) = &mut live.tls else { return Ok(Step::Wait) };
        let tls13 = tls.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if tls13 && tls.tls13_tickets_received() > 0 {
            live.confirm(tally);
        } else if tools.options.resume > 0.0 && tls13 {
            return Ok(Step::Wait);
        }
        if self.sent < self.out.len() {
            // Finished is not out yet.
            return Ok(Step::Wait);
        }
        if !live.unconfirmed {
            return Ok(self.complete(tools, tally));
        }
        // The server's word on the certificate comes at the latest when it answers the end of this side: an alert,
        // or its own end.
        if let Some(tls) = &mut live.tls {
            tls.send_close_notify();
        }
        live.phase = Phase::Confirming;
        self.push(key, tools, tally)?;
        if let Some(live) = &self.live {
            socket::end_of_sending(&live.socket);
        }
        Ok(Step::Wait)
    }

    /// Looks for what the server says after its request for a certificate.
    pub(super) fn await_word(
        &mut self,
        closed: bool,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let Some(tls) = &mut live.tls else { return Ok(Step::Wait) };
        let spoke = tls.reader().fill_buf().is_ok_and(|data| !data.is_empty());
        if closed || spoke || tls.tls13_tickets_received() > 0 {
            return Ok(self.complete(tools, tally));
        }
        Ok(Step::Wait)
    }
}
