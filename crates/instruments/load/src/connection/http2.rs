//! HTTP/2 on a connection: many requests at once.

use std::io::{BufRead, ErrorKind};

use super::{Fault, Live, Phase, Slot, Step, Tools, library};
use crate::failure::{Failure, Kind, Stage};
use crate::h2::{Outcome, Violation, code};
use crate::tally::Tally;

/// Facts that the counting of outcomes needs.
struct Count<'a> {
    tally: &'a mut Tally,
    unprocessed: &'a mut Vec<u64>,
    now: u64,
    timeout: u64,
}

impl Count<'_> {
    fn take(&mut self, outcome: Outcome) {
        let (tally, now) = (&mut *self.tally, self.now);
        match outcome {
            Outcome::Begun(stream) => tally.first_byte(stream.due, stream.started, now),
            Outcome::Answered(stream) if (200..400).contains(&stream.status) => {
                tally.answered(now);
                tally.unit_completed(stream.due, now);
            }
            Outcome::Answered(stream) => {
                tally.request_failed(Failure::new(Kind::Status, stream.status), now);
            }
            Outcome::Reset(_, error) => tally.request_reset(error, now),
            Outcome::Malformed(_, text) => {
                tally.request_failed(Failure::new(Kind::Http2, text), now);
            }
            Outcome::TimedOut(stream) => {
                let text = "the server did not answer in time";
                tally.request_failed(Failure::new(Kind::Timeout, text), now);
                tally.request_censored(&stream, stream.started.saturating_add(self.timeout));
            }
            Outcome::Unprocessed(stream) => {
                tally.retried += 1;
                self.unprocessed.push(stream.due);
            }
        }
    }
}

impl Slot {
    /// Whether requests can be sent on it, now or later.
    pub(super) fn carries_requests(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.session.is_some() && live.phase == Phase::Responding)
    }

    /// Whether another request can be sent now.
    pub(crate) fn has_room(&self) -> bool {
        self.live.as_ref().is_some_and(|live| {
            live.phase == Phase::Responding
                && live.session.as_ref().is_some_and(|session| session.has_room())
        })
    }

    /// Adds a request to what is to be sent. Call it where [`Slot::has_room`].
    pub(crate) fn request(&mut self, due: u64, now: u64, tools: &Tools<'_>, tally: &mut Tally) {
        let Some(block) = &tools.options.request else { return };
        if let Some(session) = self.live.as_mut().and_then(|live| live.session.as_mut()) {
            session.request(block, due, now);
            tally.unit_started(due, now);
        }
    }

    /// When requests were due that can be sent again, and that this connection has not carried.
    pub(crate) fn take_unprocessed(&mut self) -> std::vec::Drain<'_, u64> {
        self.unprocessed.drain(..)
    }

    /// Sends the requests that were added. Ends a connection that has done all it was to do: with `over`, one
    /// without requests under way.
    pub(crate) fn send_requests(
        &mut self,
        key: u64,
        over: bool,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        if !self.carries_requests() {
            return Step::Wait;
        }
        if let Err((stage, failure)) = self.push(key, tools, tally) {
            return Step::Failed(stage, failure);
        }
        let session = self.live.as_mut().and_then(|live| live.session.as_mut());
        let Some(session) = session else { return Step::Wait };
        if session.open() > 0 || (session.may_go_on() && !over) {
            return Step::Wait;
        }
        match session.going() {
            Some(code::NO_ERROR) if session.answered() > 0 || over => {
                tally.short += u64::from(!session.is_complete());
            }
            Some(error) => return Step::Failed(Stage::Response, goaway(error)),
            None => {}
        }
        session.finish();
        // It is done either way.
        let _ = self.push(key, tools, tally);
        self.complete(tools, tally)
    }

    /// Reads what came without TLS.
    pub(super) fn multiplex_plain(
        &mut self,
        data: &[u8],
        arrived: u64,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let Some(live) = &mut self.live else { return Ok(Step::Wait) };
        let timeout = tools.timeout();
        let unprocessed = &mut self.unprocessed;
        let mut count = Count { tally, unprocessed, now: arrived, timeout };
        let Some(session) = &mut live.session else { return Ok(Step::Wait) };
        match session.receive(data, arrived, &mut |outcome| count.take(outcome)) {
            Ok(()) => Ok(Step::Wait),
            Err(violation) => Err(self.broken(violation, key, tools, tally)),
        }
    }

    /// Reads what TLS has decrypted.
    pub(super) fn multiplex(
        &mut self,
        arrived: u64,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        loop {
            let Some(live) = &mut self.live else { return Ok(Step::Wait) };
            let Live { tls: Some(tls), session: Some(session), .. } = &mut **live else {
                return Ok(Step::Wait);
            };
            let mut reader = tls.reader();
            let (len, received) = match reader.fill_buf() {
                Ok([]) => return Ok(Step::Wait),
                Ok(chunk) => {
                    let timeout = tools.timeout();
                    let unprocessed = &mut self.unprocessed;
                    let mut count = Count { tally, unprocessed, now: arrived, timeout };
                    let received =
                        session.receive(chunk, arrived, &mut |outcome| count.take(outcome));
                    (chunk.len(), received)
                }
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(Step::Wait),
                Err(cause) => return Err((Stage::Response, library(&cause))),
            };
            reader.consume(len);
            let acknowledged = session.is_acknowledged();
            if live.unconfirmed && acknowledged {
                live.confirm(tally);
            }
            if let Err(violation) = received {
                return Err(self.broken(violation, key, tools, tally));
            }
        }
    }

    /// The server has broken the protocol; it is told, if it listens.
    fn broken(
        &mut self,
        violation: Violation,
        key: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Fault {
        let _ = self.push(key, tools, tally);
        (Stage::Response, violation.into())
    }

    /// Gives requests up that have taken too long, and a connection on which nothing comes any more.
    pub(super) fn expire(
        &mut self,
        key: u64,
        now: u64,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Step {
        let Some(live) = &mut self.live else { return Step::Wait };
        let stage = live.stage();
        let Some(session) = &mut live.session else { return Step::Wait };
        let timeout = tools.timeout();
        let unprocessed = &mut self.unprocessed;
        let mut count = Count { tally, unprocessed, now, timeout };
        if session.expire(now, timeout, &mut |outcome| count.take(outcome)) {
            let text = "nothing came on the connection in time";
            return Step::Failed(stage, Failure::new(Kind::Timeout, text));
        }
        match self.push(key, tools, tally) {
            Ok(()) => Step::Wait,
            Err((stage, failure)) => Step::Failed(stage, failure),
        }
    }

    /// The server has closed.
    pub(super) fn end_of_session(
        &mut self,
        tools: &Tools<'_>,
        tally: &mut Tally,
    ) -> Result<Step, Fault> {
        let session = self.live.as_mut().and_then(|live| live.session.as_mut());
        let Some(session) = session else { return Ok(Step::Wait) };
        match session.going() {
            Some(error) if error != code::NO_ERROR => Err((Stage::Response, goaway(error))),
            _ if session.open() == 0 && session.is_acknowledged() => {
                Ok(self.cut_short(tools, tally))
            }
            _ => {
                let text = "the server closed before the responses were whole";
                Err((Stage::Response, Failure::new(Kind::ClosedEarly, text)))
            }
        }
    }

    /// Counts the requests under way as `failed`, and as longer than until `until`.
    pub(crate) fn lose_requests(&mut self, until: Option<u64>, failed: bool, tally: &mut Tally) {
        let session = self.live.as_mut().and_then(|live| live.session.as_mut());
        let Some(session) = session else { return };
        session.drain(|stream| {
            if let Some(until) = until {
                tally.request_censored(&stream, until);
            }
            if failed {
                tally.request_lost();
            }
        });
    }

    /// Whether its connection has carried a request: answered, or under way.
    pub(crate) fn has_carried(&self) -> bool {
        let session = self.live.as_ref().and_then(|live| live.session.as_ref());
        session.is_some_and(|session| session.open() > 0 || session.answered() > 0)
    }
}

fn goaway(error: u32) -> Failure {
    match code::name(error) {
        Some(name) => Failure::new(Kind::Http2, format!("GOAWAY: {name}")),
        None => Failure::new(Kind::Http2, format!("GOAWAY: code {error}")),
    }
}
