//! One connection, from connect(2) to close(2), driven by readiness.

use std::io::{BufRead, ErrorKind, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use crate::failure::{Failure, Kind, Stage};
use crate::http::Response;
use crate::options::{Close, Options};
use crate::tally::{Tally, Times};
use crate::{schedule, socket, tickets};

/// What a worker's connections share.
pub(crate) struct Tools<'a> {
    pub(crate) options: &'a Options,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
    pub(crate) epoll: OwnedFd,
    pub(crate) epoch: Instant,
}

impl Tools<'_> {
    /// Nanoseconds since the start of the run.
    pub(crate) fn now(&self) -> u64 {
        schedule::nanos(self.epoch.elapsed())
    }

    fn first_request(&self) -> Option<&[u8]> {
        self.request(self.options.requests_per_connection)
    }

    /// The request to send when so many are left, it included.
    fn request(&self, left: u32) -> Option<&[u8]> {
        let options = self.options;
        let last = options.last_request.as_ref().filter(|_| left <= 1);
        last.or(options.request.as_ref()).filter(|_| options.request.is_some()).map(Vec::as_slice)
    }
}

/// What comes of looking at a connection.
#[derive(Debug)]
pub(crate) enum Step {
    /// It waits for the server.
    Wait,
    /// It is at its end, and was counted.
    Done,
    /// It has failed, which is to be counted.
    Failed(Stage, Failure),
}

type Fault = (Stage, Failure);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    Responding,
    /// The handshake was all; a ticket is waited for.
    Ticket,
    /// All is done and counted; the server is to close first.
    Closing,
}

struct Live {
    socket: OwnedFd,
    tls: ClientConnection,
    phase: Phase,
    times: Times,
    requests_left: u32,
    has_ticket: bool,
    saw_first_byte: bool,
    watches_write: bool,
}

/// A place for one connection after the other; its buffers are used again.
#[derive(Default)]
pub(crate) struct Slot {
    live: Option<Box<Live>>,
    out: Vec<u8>,
    sent: usize,
    response: Response,
    /// Failures since the last success.
    pub(crate) failures: u32,
}

impl Slot {
    /// When its connection started.
    pub(crate) fn started(&self) -> Option<u64> {
        self.live.as_ref().map(|live| live.times.started)
    }

    /// Closes what is open, uncounted.
    pub(crate) fn clear(&mut self) {
        self.live = None;
        self.out.clear();
        self.sent = 0;
        self.response.reset();
    }

    /// Its connection has taken too long.
    pub(crate) fn time_out(&mut self) -> Step {
        let stage = match self.live.as_ref().map(|live| live.phase) {
            None | Some(Phase::Closing) => return Step::Done,
            Some(Phase::Connecting) => Stage::Connect,
            Some(Phase::Handshaking) => Stage::Tls,
            Some(Phase::Responding) => Stage::Response,
            Some(Phase::Ticket) => {
                let text = "no ticket came: the server may send none before a request";
                return Step::Failed(Stage::Tls, Failure::new(Kind::Timeout, text));
            }
        };
        Step::Failed(stage, Failure::new(Kind::Timeout, "the server did not answer in time"))
    }

    /// Starts a connection that was due at `due`.
    pub(crate) fn start(
        &mut self,
        key: u64,
        due: u64,
        source: Option<IpAddr>,
        resume: bool,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        self.clear();
        match self.try_start(key, due, source, resume, tools, tally) {
            Ok(()) => Step::Wait,
            Err((stage, failure)) => Step::Failed(stage, failure),
        }
    }

    fn try_start(
        &mut self,
        key: u64,
        due: u64,
        source: Option<IpAddr>,
        resume: bool,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<(), Fault> {
        let mut times = Times { due, started: tools.now(), ..Times::default() };
        tickets::resume_next(resume);
        let made = ClientConnection::new(Arc::clone(&tools.config), tools.name.clone());
        let has_ticket = tickets::taken();
        tally.started(&times, resume, has_ticket);
        let mut tls = made.map_err(|error| (Stage::Tls, Failure::of_tls(&error)))?;
        tls.set_buffer_limit(None);
        if let Some(request) = tools.first_request() {
            // Kept back by rustls until the handshake allows it, so that it goes out with Finished.
            tls.writer().write_all(request).map_err(|cause| (Stage::Tls, library(&cause)))?;
        }
        tls.write_tls(&mut self.out).map_err(|cause| (Stage::Tls, library(&cause)))?;
        times.connecting = tools.now();
        let reset = tools.options.close == Close::Reset;
        let at_connect = |errno| (Stage::Connect, Failure::of_errno(errno));
        let socket = socket::begin(tools.options.address, source, reset).map_err(at_connect)?;
        let mut live = Live {
            socket,
            tls,
            phase: Phase::Connecting,
            times,
            requests_left: tools.options.requests_per_connection,
            has_ticket,
            saw_first_byte: false,
            watches_write: false,
        };
        // On loopback the connection already stands: no wait for it then, and no event.
        let connected = tools.now();
        match socket::send_some(&live.socket, &self.out) {
            Ok(sent) => {
                self.sent = sent;
                tally.bytes_out += sent as u64;
                live.times.connected = connected;
                live.phase = Phase::Handshaking;
            }
            Err(Errno::AGAIN | Errno::NOTCONN) => {}
            Err(errno) => return Err(at_connect(errno)),
        }
        live.watches_write = self.sent < self.out.len();
        let flags = interest(live.watches_write);
        let key = EventData::new_u64(key);
        epoll::add(&tools.epoll, &live.socket, key, flags).map_err(at_connect)?;
        self.live = Some(Box::new(live));
        Ok(())
    }

    /// The kernel says that something can be done.
    pub(crate) fn ready(
        &mut self,
        key: u64,
        flags: EventFlags,
        buffer: &mut [u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        match self.try_ready(key, flags, buffer, tools, tally) {
            Ok(step) => step,
            Err((stage, failure)) => Step::Failed(stage, failure),
        }
    }

    fn stage(&self) -> Stage {
        match self.live.as_ref().map(|live| live.phase) {
            None | Some(Phase::Connecting) => Stage::Connect,
            Some(Phase::Handshaking | Phase::Ticket) => Stage::Tls,
            Some(Phase::Responding | Phase::Closing) => Stage::Response,
        }
    }

    fn try_ready(
        &mut self,
        key: u64,
        flags: EventFlags,
        buffer: &mut [u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        if live.phase == Phase::Connecting {
            if let Some(errno) = socket::pending_error(&live.socket) {
                return Err((Stage::Connect, Failure::of_errno(errno)));
            }
            let connected = tools.now();
            self.flush(key, tools, tally)?;
            if self.sent == 0 && !self.out.is_empty() {
                return Ok(Step::Wait);
            }
            if let Some(live) = &mut self.live {
                live.times.connected = connected;
                live.phase = Phase::Handshaking;
            }
        } else if self.sent < self.out.len() {
            self.flush(key, tools, tally)?;
        }
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(EventFlags::IN | ends) {
            return self.receive(key, flags.intersects(ends), buffer, tools, tally);
        }
        Ok(Step::Wait)
    }

    /// Reads until nothing is left. Readiness is told once (edge-triggered): a short read means that
    /// nothing more is there, unless the end is.
    fn receive(
        &mut self,
        key: u64,
        ends: bool,
        buffer: &mut [u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        loop {
            let stage = self.stage();
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            let len = match socket::receive_some(&live.socket, buffer) {
                Ok(0) => return self.end_of_stream(tools, tally),
                Ok(len) => len,
                Err(Errno::AGAIN) => return Ok(Step::Wait),
                Err(Errno::INTR) => continue,
                Err(_) if live.phase == Phase::Closing => return Ok(Step::Done),
                Err(errno) => return Err((stage, Failure::of_errno(errno))),
            };
            tally.bytes_in += len as u64;
            let step = self.feed(key, buffer.get(..len).unwrap_or_default(), tools, tally)?;
            if !matches!(step, Step::Wait) || (len < buffer.len() && !ends) {
                return Ok(step);
            }
        }
    }

    fn feed(
        &mut self,
        key: u64,
        mut data: &[u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let arrived = tools.now();
        while !data.is_empty() {
            let stage = self.stage();
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            if live.phase == Phase::Closing {
                return Ok(Step::Wait);
            }
            live.tls.read_tls(&mut data).map_err(|cause| (stage, library(&cause)))?;
            let closed = match live.tls.process_new_packets() {
                Ok(state) => state.peer_has_closed(),
                Err(error) => {
                    // The server is told why, if it listens.
                    if live.tls.write_tls(&mut self.out).is_ok() {
                        let _ = self.flush(key, tools, tally);
                    }
                    return Err((stage, Failure::of_tls(&error)));
                }
            };
            if live.phase == Phase::Handshaking && !live.tls.is_handshaking() {
                live.times.secured = tools.now();
                live.times.requested = live.times.secured;
                tally.secured(&live.times, &live.tls, live.has_ticket);
                live.phase = Phase::Responding;
                if tools.options.request.is_none() {
                    live.phase = Phase::Ticket;
                }
            }
            let step = match live.phase {
                Phase::Responding => self.respond(arrived, tools, tally)?,
                Phase::Ticket => self.await_ticket(key, tools, tally)?,
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
        self.push(key, tools, tally)?;
        Ok(Step::Wait)
    }

    /// Sends what TLS has to send.
    fn push(&mut self, key: u64, tools: &Tools<'_>, tally: &mut Tally) -> Result<(), Fault> {
        let stage = self.stage();
        let Some(live) = &mut self.live else { return Ok(()) };
        if !live.tls.wants_write() {
            return Ok(());
        }
        while live.tls.wants_write() {
            live.tls.write_tls(&mut self.out).map_err(|cause| (stage, library(&cause)))?;
        }
        self.flush(key, tools, tally)
    }

    fn flush(&mut self, key: u64, tools: &Tools<'_>, tally: &mut Tally) -> Result<(), Fault> {
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

    /// Reads what TLS has decrypted of the response.
    fn respond(
        &mut self,
        arrived: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        loop {
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            let mut reader = live.tls.reader();
            let len = match reader.fill_buf() {
                Ok([]) => return Ok(Step::Wait),
                Ok(chunk) => {
                    if !live.saw_first_byte {
                        live.saw_first_byte = true;
                        tally.first_byte(&live.times, arrived);
                    }
                    let received = self.response.receive(chunk);
                    received.map_err(|wrong| (Stage::Response, wrong.into()))?;
                    chunk.len()
                }
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Step::Wait),
                Err(cause) => return Err((Stage::Response, library(&cause))),
            };
            reader.consume(len);
            if self.response.is_done() {
                return self.response_done(tools, tally);
            }
        }
    }

    fn response_done(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Result<Step, Fault> {
        let status = self.response.status();
        if !(200..400).contains(&status) {
            return Err((Stage::Response, Failure::new(Kind::Status, status)));
        }
        tally.requests += 1;
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        live.requests_left = live.requests_left.saturating_sub(1);
        if live.requests_left == 0 {
            return self.complete(tools, tally);
        }
        if !self.response.keeps_alive() {
            tally.short += 1;
            return self.complete(tools, tally);
        }
        self.response.reset();
        live.saw_first_byte = false;
        let request = tools.request(live.requests_left).unwrap_or_default();
        live.times.requested = tools.now();
        let written = live.tls.writer().write_all(request);
        written.map_err(|cause| (Stage::Response, library(&cause)))?;
        Ok(Step::Wait)
    }

    fn await_ticket(
        &mut self,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        self.push(key, tools, tally)?;
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let tls13 = live.tls.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3);
        if tools.options.resume > 0.0 && tls13 && live.tls.tls13_tickets_received() == 0 {
            return Ok(Step::Wait);
        }
        if self.sent < self.out.len() {
            // Finished is not out yet.
            return Ok(Step::Wait);
        }
        self.complete(tools, tally)
    }

    fn complete(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        tally.completed(&live.times, tools.now());
        match tools.options.close {
            Close::Server => {
                live.phase = Phase::Closing;
                return Ok(Step::Wait);
            }
            Close::Notify => {
                live.tls.send_close_notify();
                if live.tls.write_tls(&mut self.out).is_ok() {
                    // It is done either way.
                    let _ = socket::send_some(&live.socket, &self.out);
                }
            }
            Close::Fin | Close::Reset => {}
        }
        Ok(Step::Done)
    }

    /// The server has closed: TCP's end, or a close_notify alert.
    fn end_of_stream(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Result<Step, Fault> {
        let stage = self.stage();
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let early = |text: &str| Err((stage, Failure::new(Kind::ClosedEarly, text)));
        match live.phase {
            Phase::Closing => Ok(Step::Done),
            Phase::Connecting | Phase::Handshaking => early("the server closed in the handshake"),
            Phase::Ticket => self.complete(tools, tally),
            Phase::Responding => {
                // An end without close_notify may be anybody's (RFC 8446 §6.1).
                let closed = live.tls.process_new_packets().is_ok_and(|it| it.peer_has_closed());
                if closed && self.response.ends() {
                    live.requests_left = live.requests_left.min(1);
                    return self.response_done(tools, tally);
                }
                early(if closed {
                    "the server closed before the response was whole"
                } else {
                    "the connection ended before the response was whole, without close_notify"
                })
            }
        }
    }
}

fn interest(write: bool) -> EventFlags {
    let read = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if write { read | EventFlags::OUT } else { read }
}

/// What rustls's own buffers refuse.
fn library(cause: &std::io::Error) -> Failure {
    Failure::new(Kind::Protocol, cause)
}
