//! What the carriage asks of TLS.

use tls::{EarlyData, Error, Facts, Session, Ticket};
use units::Time;

/// One connection's TLS as the carriage sees it: a [`Session`], or what takes its place in exact
/// simulation ([`crate::testing::ScriptedEngine`]).
///
/// It differs from [`Session`] in that time is an argument and an answer may be pending: a
/// signature takes milliseconds, which virtual time must see.
pub trait Engine: Send {
    /// As [`Session::read_tls`].
    ///
    /// # Errors
    /// As [`Session::read_tls`]: final, and an alert may be waiting.
    fn read_tls(&mut self, now: Time, records: &[u8]) -> Result<(), Error>;

    /// As [`Session::write_tls`]: appends what is ready by `now`.
    ///
    /// # Errors
    /// As [`Session::write_tls`].
    fn write_tls(&mut self, now: Time, out: &mut Vec<u8>) -> Result<usize, Error>;

    /// When an answer that is being computed will be ready; then call [`Engine::write_tls`].
    fn pending_until(&self) -> Option<Time> {
        None
    }

    /// As [`Session::may_send`].
    fn may_send(&self) -> bool;

    /// As [`Session::is_handshaking`].
    fn is_handshaking(&self) -> bool;

    /// As [`Session::early_data_room`].
    fn early_data_room(&self) -> usize;

    /// As [`Session::send_early`].
    ///
    /// # Errors
    /// As [`Session::send_early`].
    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error>;

    /// As [`Session::send`].
    ///
    /// # Errors
    /// As [`Session::send`].
    fn send(&mut self, data: &[u8]) -> Result<(), Error>;

    /// As [`Session::receive`].
    ///
    /// # Errors
    /// As [`Session::receive`].
    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error>;

    /// As [`Session::peer_closed`].
    fn peer_closed(&self) -> bool;

    /// What became of early data.
    fn early_data(&self) -> EarlyData;

    /// As [`Session::facts`].
    fn facts(&self) -> Facts;

    /// As [`Session::take_ticket`].
    fn take_ticket(&mut self) -> Option<Ticket>;

    /// As [`Session::close`].
    fn close(&mut self);
}

impl Engine for Box<dyn Session> {
    fn read_tls(&mut self, _: Time, records: &[u8]) -> Result<(), Error> {
        self.as_mut().read_tls(records)
    }

    fn write_tls(&mut self, _: Time, out: &mut Vec<u8>) -> Result<usize, Error> {
        self.as_mut().write_tls(out)
    }

    fn may_send(&self) -> bool {
        self.as_ref().may_send()
    }

    fn is_handshaking(&self) -> bool {
        self.as_ref().is_handshaking()
    }

    fn early_data_room(&self) -> usize {
        self.as_ref().early_data_room()
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.as_mut().send_early(data)
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.as_mut().send(data)
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        self.as_mut().receive(out)
    }

    fn peer_closed(&self) -> bool {
        self.as_ref().peer_closed()
    }

    fn early_data(&self) -> EarlyData {
        self.as_ref().facts().early_data
    }

    fn facts(&self) -> Facts {
        self.as_ref().facts()
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        self.as_mut().take_ticket()
    }

    fn close(&mut self) {
        self.as_mut().close();
    }
}
