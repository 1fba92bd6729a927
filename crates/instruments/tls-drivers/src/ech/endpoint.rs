//! One side of a handshake with ECH: a driver's, or one that is built in.

use std::rc::Rc;

use tls::ech::{Answer, Endpoint};

use crate::DriverError;
use crate::driver::{Conn, Context, EchAnswer, Io, Step, Transport};
use crate::host::pipe::{End, Wires};

/// A driver's side: what it reads and writes lies in memory.
pub(super) struct DriverEndpoint {
    conn: Conn<End>,
    /// The other end of what the library reads and writes.
    peer: End,
    server: bool,
    answer: Option<Answer>,
}

impl DriverEndpoint {
    /// Begins a connection: a client's hello is ready then.
    pub(super) fn new(context: &Context, server: bool) -> Result<Self, DriverError> {
        let wires = Rc::new(Wires::default());
        let conn = Conn::new(context, End::new(&wires, server), None)?;
        let mut begun =
            DriverEndpoint { conn, peer: End::new(&wires, !server), server, answer: None };
        if !server {
            begun.step()?;
        }
        Ok(begun)
    }

    fn step(&mut self) -> Result<(), DriverError> {
        let failed =
            |what: &str| Err(DriverError::Failed { doing: "the handshake", what: what.to_owned() });
        let answer = match self.conn.handshake() {
            Ok(Step::Again) => return Ok(()),
            Ok(Step::Closed) => return failed("the other side has closed the connection"),
            Ok(Step::Done(())) => match self.conn.ech()? {
                EchAnswer::None => Answer::NotOffered,
                EchAnswer::Accepted => Answer::Accepted,
                // RFC 9849 §6.1.6: such a connection is of no use.
                EchAnswer::Rejected => return failed("it was finished although ECH was rejected"),
            },
            Err(error) => match self.conn.ech() {
                Ok(EchAnswer::Rejected) if !self.server => Answer::Rejected(self.conn.ech_retry()?),
                _ => return Err(error),
            },
        };
        self.answer = Some(answer);
        Ok(())
    }
}

impl Endpoint<DriverError> for DriverEndpoint {
    fn read_tls(&mut self, mut bytes: &[u8]) -> Result<(), DriverError> {
        while !bytes.is_empty() {
            match self.peer.send(bytes) {
                Io::Moved(len) => bytes = bytes.get(len..).unwrap_or_default(),
                // More than a handshake has.
                _ => return Err(DriverError::Stuck),
            }
        }
        if self.answer.is_some() { Ok(()) } else { self.step() }
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<(), DriverError> {
        let mut chunk = [0; 4096];
        while let Io::Moved(len) = self.peer.recv(&mut chunk) {
            out.extend_from_slice(chunk.get(..len).unwrap_or_default());
        }
        Ok(())
    }

    fn answer(&self) -> Option<Answer> {
        self.answer.clone()
    }

    fn server_name(&self) -> Option<String> {
        // One that does not tell is asked for nothing, which is no hidden name.
        if self.server { self.conn.server_name().ok().flatten() } else { None }
    }
}

/// A side that is built in, whose failures are a driver's here.
pub(super) struct BuiltIn(pub(super) Box<dyn Endpoint>);

impl Endpoint<DriverError> for BuiltIn {
    fn read_tls(&mut self, bytes: &[u8]) -> Result<(), DriverError> {
        Ok(self.0.read_tls(bytes)?)
    }

    fn write_tls(&mut self, out: &mut Vec<u8>) -> Result<(), DriverError> {
        Ok(self.0.write_tls(out)?)
    }

    fn answer(&self) -> Option<Answer> {
        self.0.answer()
    }

    fn server_name(&self) -> Option<String> {
        self.0.server_name()
    }
}
