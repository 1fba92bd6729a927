//! What is written, and how far ahead of what was sent.

use super::*;
use crate::info::Hold;

impl Connection {
    /// Queues bytes to be sent. `spare` is what is left of [`Config::send_memory`].
    pub(crate) fn write(
        &mut self,
        data: &[u8],
        config: &Config,
        spare: usize,
    ) -> Result<usize, StreamError> {
        self.clamp_send(config, spare);
        if let Some(reason) = self.closed {
            return Err(StreamError::Closed(reason));
        }
        if self.fin {
            return Err(StreamError::Shutdown);
        }
        if data.is_empty() {
            return Ok(0);
        }
        match self.send.write(data.get(..self.writable()).unwrap_or(data)) {
            0 => {
                self.write_blocked = true;
                Err(StreamError::WouldBlock)
            }
            count => Ok(count),
        }
    }

    pub(crate) fn writable(&self) -> usize {
        if self.fin || self.closed.is_some() {
            return 0;
        }
        let room = self.room();
        match self.state {
            // Who is not validated is not worth more memory.
            State::SynReceived => room.min(MAX_UNVALIDATED.saturating_sub(self.send.len())),
            _ => room,
        }
    }

    /// Its own bytes and half of what is left for all: as the memory runs out each has less, and none
    /// has all.
    pub(super) fn clamp_send(&mut self, config: &Config, spare: usize) {
        self.send.allow(config.send_initial.max(1).saturating_add(spare / 2));
    }

    /// Bytes that may be written, by the buffer and by what may be written ahead.
    fn room(&self) -> usize {
        let room = self.send.room();
        let Some(least) = self.send_ahead else { return room };
        let unsent = usize::try_from(self.unsent()).unwrap_or(usize::MAX);
        room.min(self.most_ahead(least).saturating_sub(unsent))
    }

    /// Bytes that were written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.send.end().saturating_sub(self.recovery.next())
    }

    /// What holds back what was written, or else those who would write.
    pub(super) fn hold(&self) -> Option<Hold> {
        let is_open = self.is_synchronised() && self.closed.is_none();
        let waits_for_room = self.write_blocked && self.unsent() == 0;
        let hold = self.recovery.hold().or(waits_for_room.then_some(Hold::SendBuffer));
        hold.filter(|_| is_open && self.send_end() > self.una())
    }

    /// Bytes that may be unsent, of those that the buffer holds.
    fn most_ahead(&self, least: usize) -> usize {
        let window = usize::try_from(self.recovery.congestion_window()).unwrap_or(usize::MAX);
        window.max(least).min(self.send.room() + self.send.len())
    }

    /// Tells an application that waits to write, once it is worth its while.
    pub(super) fn wake_writer(&mut self) {
        let worth = match self.send_ahead {
            Some(least) => self.most_ahead(least) / 2,
            None => self.send.len() / 2,
        };
        if self.write_blocked && self.room() >= worth {
            self.write_blocked = false;
            self.pending.add(Pending::WRITABLE);
        }
    }
}
