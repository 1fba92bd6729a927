//! One connection, from connect(2) to close(2), driven by readiness.

mod http1;
mod http2;
mod transport;

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use crate::failure::{Failure, Kind, Stage};
use crate::h2::Session;
use crate::http::Response;
use crate::options::{Close, Options};
use crate::tally::{Censored, Tally, Times};
use crate::{schedule, socket, tickets};

/// State that a worker's connections share.
pub(crate) struct Tools<'a> {
    pub(crate) options: &'a Options,
    pub(crate) address: SocketAddr,
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

    fn timeout(&self) -> u64 {
        schedule::nanos(self.options.timeout)
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

/// Outcome of a look at a connection.
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
    /// The handshake was all, and this side has closed: what the server says of the certificate is waited for.
    Confirming,
    /// All is done and counted; the server is to close first.
    Closing,
}

struct Live {
    socket: OwnedFd,
    tls: Option<ClientConnection>,
    session: Option<Session>,
    phase: Phase,
    times: Times,
    requests_left: u32,
    has_ticket: bool,
    /// The server has asked for a certificate.
    asked: bool,
    /// The handshake is complete on this side, and the server may still refuse the certificate.
    unconfirmed: bool,
    saw_first_byte: bool,
    watches_write: bool,
}

impl Live {
    /// The server has gone on after the handshake.
    fn confirm(&mut self, tally: &mut Tally) {
        if std::mem::take(&mut self.unconfirmed)
            && let Some(tls) = &self.tls
        {
            tally.secured(&self.times, tls, self.has_ticket, self.asked);
        }
    }

    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Connecting => Stage::Connect,
            Phase::Handshaking | Phase::Ticket | Phase::Confirming => Stage::Tls,
            Phase::Responding | Phase::Closing if self.unconfirmed => Stage::Tls,
            Phase::Responding | Phase::Closing => Stage::Response,
        }
    }
}

/// A place for one connection after the other; its buffers are used again.
#[derive(Default)]
pub(crate) struct Slot {
    live: Option<Box<Live>>,
    out: Vec<u8>,
    sent: usize,
    response: Response,
    /// When requests were due that the server has not looked at (HTTP/2).
    unprocessed: Vec<u64>,
    /// Failures since the last success.
    pub(crate) failures: u32,
    /// Whether it stands in the worker's queue of connections with room for requests.
    pub(crate) queued: bool,
}

impl Slot {
    /// Closes what is open, uncounted.
    pub(crate) fn clear(&mut self) {
        self.live = None;
        self.out.clear();
        self.sent = 0;
        self.response.reset();
    }

    fn stage(&self) -> Stage {
        self.live.as_ref().map_or(Stage::Connect, |live| live.stage())
    }

    /// Looks whether its connection, or requests on it, have taken too long.
    pub(crate) fn look_at_clock(
        &mut self,
        key: u64,
        now: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        let Some(live) = &self.live else { return Step::Wait };
        if live.session.is_some() && live.phase == Phase::Responding {
            return self.expire(key, now, tools, tally);
        }
        if now.saturating_sub(live.times.started) < tools.timeout() {
            return Step::Wait;
        }
        let text = match live.phase {
            Phase::Closing => return Step::Done,
            Phase::Ticket => "no ticket came: the server may send none before a request",
            _ => "the server did not answer in time",
        };
        Step::Failed(live.stage(), Failure::new(Kind::Timeout, text))
    }

    /// Counts its connection as longer than until `until`, or than the limit of time.
    pub(crate) fn censor(&self, until: Option<u64>, tools: &Tools<'_>, tally: &mut Tally) {
        let Some(live) = &self.live else { return };
        if live.phase == Phase::Closing {
            return;
        }
        let limit = live.times.started.saturating_add(tools.timeout());
        let until = until.unwrap_or_else(|| limit.min(tools.now()));
        let place = Censored {
            stage: live.stage(),
            offered: live.has_ticket,
            waits: live.session.is_none() && !live.saw_first_byte,
            unit: live.session.is_none(),
        };
        tally.censored(&live.times, until, &place);
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
        let options = tools.options;
        let mut times = Times { due, started: tools.now(), ..Times::default() };
        let mut session = options.streams().map(|streams| {
            let limit = options.requests_per_connection;
            Session::new(streams, (limit > 0).then_some(u64::from(limit)))
        });
        if session.is_none() {
            tally.unit_started(due, times.started);
        }
        tickets::resume_next(resume);
        let made = (!options.plaintext)
            .then(|| ClientConnection::new(Arc::clone(&tools.config), tools.name.clone()))
            .transpose();
        let has_ticket = tickets::taken();
        tally.started(resume, has_ticket);
        let mut tls = made.map_err(|error| (Stage::Tls, Failure::of_tls(&error, false)))?;
        if let Some(tls) = &mut tls {
            tls.set_buffer_limit(None);
            // Kept back by rustls until the handshake allows it, so that it goes out with Finished.
            let first = match &mut session {
                Some(session) => Some(session.out.as_slice()),
                None => tools.first_request(),
            };
            if let Some(first) = first {
                tls.writer().write_all(first).map_err(|cause| (Stage::Tls, library(&cause)))?;
            }
            tls.write_tls(&mut self.out).map_err(|cause| (Stage::Tls, library(&cause)))?;
        } else if let Some(session) = &session {
            self.out.extend_from_slice(&session.out);
        }
        if let Some(session) = &mut session {
            session.out.clear();
        }
        times.connecting = tools.now();
        let reset = options.close == Close::Reset;
        let at_connect = |errno| (Stage::Connect, Failure::of_errno(errno));
        let socket = socket::begin(tools.address, source, reset).map_err(at_connect)?;
        if session.is_some() {
            // A request does not wait for the acknowledgement of the one before.
            socket::send_at_once(&socket).map_err(at_connect)?;
        }
        let mut live = Live {
            socket,
            tls,
            session,
            phase: Phase::Connecting,
            times,
            requests_left: options.requests_per_connection,
            has_ticket,
            asked: false,
            unconfirmed: false,
            saw_first_byte: false,
            watches_write: false,
        };
        self.response.set_answers_head(
            options.request.as_ref().is_some_and(|request| request.starts_with(b"HEAD ")),
        );
        // On loopback the connection already stands: no wait for it then, and no event.
        let connected = tools.now();
        match socket::send_some(&live.socket, &self.out) {
            Ok(sent) => {
                self.sent = sent;
                tally.bytes_out += sent as u64;
                live.established(connected, tally);
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
            Err(fault) => self.explain(fault, key, buffer, tools, tally),
        }
    }

    /// A fault that another explains better: what came before a reset is still there to be read.
    fn explain(
        &mut self,
        (stage, failure): Fault,
        key: u64,
        buffer: &mut [u8],
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        if failure.kind == Kind::Reset
            && let Some(live) = &self.live
            && let Ok(len @ 1..) = socket::receive_some(&live.socket, buffer)
        {
            match self.feed(key, buffer.get(..len).unwrap_or_default(), tools, tally) {
                Ok(Step::Wait) => {}
                Ok(step) => return step,
                Err((stage, better)) if better.kind != Kind::Reset => {
                    return Step::Failed(stage, better);
                }
                Err(_) => {}
            }
        }
        if matches!(failure.kind, Kind::Reset | Kind::ClosedEarly) && self.is_between_responses() {
            return self.cut_short(tools, tally);
        }
        Step::Failed(stage, failure)
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
                live.established(connected, tally);
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

    /// Counts a connection as done, and closes it as asked for.
    fn complete(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Step {
        let Some(live) = &mut self.live else { return Step::Wait };
        let now = tools.now();
        live.confirm(tally);
        tally.completed(now);
        if live.session.is_none() {
            tally.unit_completed(live.times.due, now);
        }
        match tools.options.close {
            Close::Server => {
                live.phase = Phase::Closing;
                // From here on the limit counts anew.
                live.times.started = now;
                return Step::Wait;
            }
            Close::Notify => {
                if let Some(tls) = &mut live.tls {
                    tls.send_close_notify();
                    if tls.write_tls(&mut self.out).is_ok() {
                        // It is done either way.
                        let unsent = self.out.get(self.sent..).unwrap_or_default();
                        let _ = socket::send_some(&live.socket, unsent);
                    }
                }
            }
            Close::Fin | Close::Reset => {}
        }
        Step::Done
    }

    /// The server has closed: TCP's end, or a close_notify alert.
    fn end_of_stream(&mut self, tools: &Tools<'_>, tally: &mut Tally) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let stage = live.stage();
        let early = |text: &str| Err((stage, Failure::new(Kind::ClosedEarly, text)));
        match live.phase {
            Phase::Closing => Ok(Step::Done),
            Phase::Connecting | Phase::Handshaking => early("the server closed in the handshake"),
            Phase::Ticket if !live.unconfirmed => Ok(self.complete(tools, tally)),
            _ if live.unconfirmed => {
                early("the server asked for a client certificate and closed without a word")
            }
            Phase::Ticket | Phase::Confirming => Ok(self.complete(tools, tally)),
            Phase::Responding if live.session.is_some() => self.end_of_session(tools, tally),
            Phase::Responding => self.end_of_response(tools, tally),
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
