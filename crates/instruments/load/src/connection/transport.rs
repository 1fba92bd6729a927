//! Bytes in and out of a connection, through TLS where there is any.

use std::io::Write;

use rustix::event::epoll::{self, EventData};
use rustix::io::Errno;
use rustls::ProtocolVersion;

use super::{Fault, Live, Phase, Slot, Step, Tools, interest, library};
use crate::failure::{Failure, Kind, Stage};
use crate::tally::Tally;
use crate::{certificate, socket};

impl Slot {
    /// Reads until nothing is left. Readiness is told once (edge-triggered): a short read means that
    /// nothing more is there, unless the end is.
    pub(super) fn receive(
        &mut self,
        key: u64,
        ends: bool,
        buffer: &mut [u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        loop {
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            let len = match socket::receive_some(&live.socket, buffer) {
                Ok(0) => return self.end_of_stream(tools, tally),
                Ok(len) => len,
                Err(Errno::AGAIN) => return Ok(Step::Wait),
                Err(Errno::INTR) => continue,
                Err(_) if live.phase == Phase::Closing => return Ok(Step::Done),
                Err(errno) => return Err((live.stage(), Failure::of_errno(errno))),
            };
            tally.bytes_in += len as u64;
            let step = self.feed(key, buffer.get(..len).unwrap_or_default(), tools, tally)?;
            if !matches!(step, Step::Wait) || (len < buffer.len() && !ends) {
                return Ok(step);
            }
        }
    }

    pub(super) fn feed(
        &mut self,
        key: u64,
        mut data: &[u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let arrived = tools.now();
        while !data.is_empty() {
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            if live.phase == Phase::Closing {
                return Ok(Step::Wait);
            }
            let stage = live.stage();
            let Some(tls) = &mut live.tls else {
                return self.multiplex_plain(data, arrived, key, tools, tally);
            };
            tls.read_tls(&mut data).map_err(|cause| (stage, library(&cause)))?;
            let closed = match tls.process_new_packets() {
                Ok(state) => state.peer_has_closed(),
                Err(error) => {
                    // The server is told why, if it listens.
                    if tls.write_tls(&mut self.out).is_ok() {
                        let _ = self.flush(key, tools, tally);
                    }
                    let asked = self.live.as_ref().is_some_and(|live| live.asked);
                    let asked = certificate::take_asked() || asked;
                    return Err((stage, Failure::of_tls(&error, asked)));
                }
            };
            if live.phase == Phase::Handshaking {
                live.look_at_handshake(tools, tally)?;
            }
            let step = match live.phase {
                Phase::Responding if live.session.is_some() => {
                    self.multiplex(arrived, key, tools, tally)?
                }
                Phase::Responding => self.respond(arrived, tools, tally)?,
                Phase::Ticket => self.await_ticket(key, tools, tally)?,
                Phase::Confirming => self.await_word(closed, tools, tally)?,
                _ => Step::Wait,
            };
            let closing = self.live.as_ref().is_some_and(|live| live.phase == Phase::Closing);
            if !matches!(step, Step::Wait) || closing {
                return Ok(step);
            }
            if closed {
                return self.end_of_stream(tools, tally);
            }
        }
        // Requests of HTTP/2 follow, and go out with it.
        if !self.carries_requests() {
            self.push(key, tools, tally)?;
        }
        Ok(Step::Wait)
    }

    /// Sends what HTTP/2 and TLS have to send.
    pub(super) fn push(
        &mut self,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let stage = self.stage();
        let Some(live) = &mut self.live else { return Ok(()) };
        if let Some(session) = &mut live.session
            && !session.out.is_empty()
        {
            match &mut live.tls {
                Some(tls) => {
                    let written = tls.writer().write_all(&session.out);
                    written.map_err(|cause| (stage, library(&cause)))?;
                }
                None => self.out.extend_from_slice(&session.out),
            }
            session.out.clear();
        }
        if let Some(tls) = &mut live.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.out).map_err(|cause| (stage, library(&cause)))?;
            }
        }
        if self.sent < self.out.len() && live.phase != Phase::Connecting {
            self.flush(key, tools, tally)?;
        }
        Ok(())
    }

    pub(super) fn flush(
        &mut self,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let stage = self.stage();
        let Some(live) = &mut self.live else { return Ok(()) };
        while self.sent < self.out.len() {
            match socket::send_some(&live.socket, self.out.get(self.sent..).unwrap_or_default()) {
                Ok(sent) => {
                    self.sent += sent;
                    tally.bytes_out += sent as u64;
                }
                Err(Errno::AGAIN) => {
                    if !live.watches_write {
                        live.watches_write = true;
                        let key = EventData::new_u64(key);
                        epoll::modify(&tools.epoll, &live.socket, key, interest(true))
                            .map_err(|errno| (stage, Failure::of_errno(errno)))?;
                    }
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err((stage, Failure::of_errno(errno))),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }
}

impl Live {
    /// The connection stands.
    pub(super) fn established(&mut self, connected: u64, tally: &mut Tally) {
        self.times.connected = connected;
        self.phase = Phase::Handshaking;
        if self.tls.is_none() {
            self.times.secured = connected;
            self.phase = Phase::Responding;
            tally.connected(&self.times);
        }
    }

    /// Goes on where the handshake is complete.
    pub(super) fn look_at_handshake(
        &mut self,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let Some(tls) = &self.tls else { return Ok(()) };
        self.asked |= certificate::take_asked();
        if tls.is_handshaking() {
            return Ok(());
        }
        if self.session.is_some() && tls.alpn_protocol() != Some(b"h2") {
            let text = "the server does not choose HTTP/2 (ALPN)";
            return Err((Stage::Tls, Failure::new(Kind::Http2, text)));
        }
        self.times.secured = tools.now();
        self.times.requested = self.times.secured;
        // In TLS 1.2 the server's Finished comes after the client's certificate.
        self.unconfirmed = true;
        if !self.asked || tls.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            self.confirm(tally);
        }
        self.phase = match tools.options.request {
            Some(_) => Phase::Responding,
            None => Phase::Ticket,
        };
        Ok(())
    }
}
