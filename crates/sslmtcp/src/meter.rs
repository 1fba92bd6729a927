//! CPU time inside the TLS library.

use std::time::Duration;

use tls::{EarlyData, Error, Facts, Ticket};
use units::Time;

use crate::Engine;

/// An engine whose calls are measured by the thread's CPU clock until the handshake is over. After
/// that they are not: reading the clock is a system call.
#[derive(Debug)]
pub(crate) struct Metered<E> {
    engine: E,
    spent: Duration,
    over: bool,
}

impl<E: Engine> Metered<E> {
    /// `spent` is what making the engine took.
    pub(crate) fn new(engine: E, spent: Duration) -> Self {
        Self { engine, spent, over: false }
    }

    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }

    fn measure<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        if self.over {
            return call(&mut self.engine);
        }
        let began = packet::clock::thread_cpu();
        let result = call(&mut self.engine);
        self.spent += packet::clock::thread_cpu().saturating_sub(began);
        self.over = !self.engine.is_handshaking();
        result
    }
}

impl<E: Engine> Engine for Metered<E> {
    fn read_tls(&mut self, now: Time, records: &[u8]) -> Result<(), Error> {
        self.measure(|engine| engine.read_tls(now, records))
    }

    fn write_tls(&mut self, now: Time, out: &mut Vec<u8>) -> Result<usize, Error> {
        self.measure(|engine| engine.write_tls(now, out))
    }

    fn pending_until(&self) -> Option<Time> {
        self.engine.pending_until()
    }

    fn may_send(&self) -> bool {
        self.engine.may_send()
    }

    fn is_handshaking(&self) -> bool {
        self.engine.is_handshaking()
    }

    fn early_data_room(&self) -> usize {
        self.engine.early_data_room()
    }

    fn send_early(&mut self, data: &[u8]) -> Result<usize, Error> {
        self.measure(|engine| engine.send_early(data))
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.measure(|engine| engine.send(data))
    }

    fn receive(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        self.engine.receive(out)
    }

    fn peer_closed(&self) -> bool {
        self.engine.peer_closed()
    }

    fn early_data(&self) -> EarlyData {
        self.engine.early_data()
    }

    fn facts(&self) -> Facts {
        self.engine.facts()
    }

    fn take_ticket(&mut self) -> Option<Ticket> {
        self.engine.take_ticket()
    }

    fn close(&mut self) {
        self.engine.close();
    }
}
