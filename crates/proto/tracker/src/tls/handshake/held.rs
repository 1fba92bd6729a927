//! What a handshake holds beside its own, and letting go of it.

use super::{Handshake, Side};
use crate::side::Sender;

impl Handshake {
    /// Bytes that it holds beside its own: hellos and records that are not whole, lists and texts of
    /// the facts.
    pub(crate) fn held_bytes(&self) -> usize {
        let side = |side: &Side| side.messages.held_bytes() + side.ciphertext.capacity();
        let keys = self.decryption.as_ref().map_or(0, |keys| keys.held_bytes());
        side(&self.sides.client) + side(&self.sides.server) + keys + self.facts.heap_bytes()
    }

    /// Gives up what is not whole, to save memory. Whether a hello was.
    pub(crate) fn give_up(&mut self) -> bool {
        let mut hello = false;
        for side in [Sender::Client, Sender::Server] {
            hello |= self.sides[side].messages.give_up();
            self.sides[side].ciphertext = Vec::new();
        }
        if let Some(keys) = &mut self.decryption {
            keys.give_up();
        }
        hello
    }

    /// Lets go of what is held for joining.
    pub(crate) fn release(&mut self) {
        for side in [Sender::Client, Sender::Server] {
            self.sides[side].messages.release();
            self.sides[side].ciphertext = Vec::new();
        }
    }
}
