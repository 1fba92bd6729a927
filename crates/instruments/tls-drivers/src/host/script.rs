//! What each side does in a connection: a handshake, one request, one response, the end.

use crate::driver::{Conn, Context, Session, Step, Transport};
use crate::{DriverError, Negotiated};

/// The request: small, as in HAProxy 2025's first scenario.
pub(crate) const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: server.test\r\nConnection: close\r\n\r\n";
/// The response: a status, and few bytes.
pub(crate) const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\nConnection: close\r\n\r\nthis is a reply\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Handshake,
    Send,
    Receive,
    /// A proxy's: the request is there, the answer is still to be had.
    Hold,
    End,
    Close,
    Done,
}

/// One side of a connection.
pub(crate) struct Party<T: Transport> {
    pub(crate) conn: Conn<T>,
    client: bool,
    holds: bool,
    phase: Phase,
    sent: usize,
    received: usize,
}

/// What a party came to in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits for the other.
    Waits,
    /// It is done.
    Done,
}

impl<T: Transport> Party<T> {
    pub(crate) fn new(
        context: &Context,
        transport: T,
        client: bool,
        session: Option<&Session>,
    ) -> Result<Self, DriverError> {
        let conn = Conn::new(context, transport, session)?;
        Ok(Self { conn, client, holds: false, phase: Phase::Handshake, sent: 0, received: 0 })
    }

    /// Has a server wait between request and response.
    pub(crate) fn holding(self) -> Self {
        Self { holds: true, ..self }
    }

    /// Whether it waits so.
    pub(crate) fn is_held(&self) -> bool {
        self.phase == Phase::Hold
    }

    /// Lets it answer.
    pub(crate) fn release(&mut self) {
        if self.is_held() {
            self.phase = Phase::Send;
        }
    }

    /// Goes on as far as it can.
    pub(crate) fn turn(&mut self, scratch: &mut [u8]) -> Result<Turn, DriverError> {
        let (says, hears) = if self.client { (REQUEST, RESPONSE) } else { (RESPONSE, REQUEST) };
        loop {
            let step = match self.phase {
                Phase::Handshake => self.conn.handshake()?.next(if self.client {
                    Phase::Send
                } else {
                    Phase::Receive
                }),
                Phase::Send => self.send(says)?,
                Phase::Receive => self.receive(hears, scratch)?,
                Phase::Hold => Next::Wait,
                Phase::End => self.await_end(scratch)?,
                Phase::Close => match self.conn.shutdown()? {
                    // Nobody waits for what remains unsent.
                    Step::Again if !self.client => Next::Wait,
                    _ => Next::Go(Phase::Done),
                },
                Phase::Done => return Ok(Turn::Done),
            };
            match step {
                Next::Go(phase) => self.phase = phase,
                Next::Wait => return Ok(Turn::Waits),
            }
        }
    }

    fn send(&mut self, says: &[u8]) -> Result<Next, DriverError> {
        let rest = says.get(self.sent..).unwrap_or_default();
        match self.conn.write(rest)? {
            Step::Done(len) => {
                self.sent += len;
                Ok(if self.sent < says.len() {
                    Next::Go(Phase::Send)
                } else if self.client {
                    Next::Go(Phase::Receive)
                } else {
                    Next::Go(Phase::Close)
                })
            }
            Step::Again => Ok(Next::Wait),
            Step::Closed => Err(DriverError::WrongBytes),
        }
    }

    fn receive(&mut self, hears: &[u8], scratch: &mut [u8]) -> Result<Next, DriverError> {
        match self.conn.read(scratch)? {
            Step::Done(len) => {
                let expected = hears.get(self.received..self.received + len);
                if expected.is_none() || expected != scratch.get(..len) {
                    return Err(DriverError::WrongBytes);
                }
                self.received += len;
                Ok(Next::Go(match (self.received < hears.len(), self.client) {
                    (true, _) => Phase::Receive,
                    (false, true) => Phase::End,
                    (false, false) if self.holds => Phase::Hold,
                    (false, false) => Phase::Send,
                }))
            }
            Step::Again => Ok(Next::Wait),
            Step::Closed => Err(DriverError::WrongBytes),
        }
    }

    /// The server closes first (RFC 9112 §9.6); tickets have come by then.
    fn await_end(&mut self, scratch: &mut [u8]) -> Result<Next, DriverError> {
        match self.conn.read(scratch)? {
            Step::Done(_) => Err(DriverError::WrongBytes),
            Step::Again => Ok(Next::Wait),
            Step::Closed => Ok(Next::Go(Phase::Close)),
        }
    }

    /// What the library says that was agreed on.
    pub(crate) fn negotiated(&mut self) -> Result<Negotiated, DriverError> {
        self.conn.negotiated()
    }
}

/// What follows a step.
enum Next {
    Go(Phase),
    Wait,
}

impl Step<()> {
    fn next(self, phase: Phase) -> Next {
        match self {
            Step::Done(()) => Next::Go(phase),
            Step::Again | Step::Closed => Next::Wait,
        }
    }
}
