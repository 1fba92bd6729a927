//! One tracker of several, whose time is another's to say.

use units::Time;

use super::Tracker;
use super::frames::Read;
use crate::decode::{Content, decode};
use crate::shard::Datagram;

impl Tracker {
    /// The same, one of several behind a [`crate::Sharder`]: its time is what [`Tracker::pass`] says.
    #[must_use]
    pub fn with_outer_clock(mut self) -> Self {
        self.outer_clock = Some(Vec::new());
        self
    }

    /// It is at least this late: the next frame was captured out of order.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// It is this late, by an outer clock: gives out what has been silent for long enough.
    pub fn pass(&mut self, now: Time) {
        self.advance(now);
        self.expire_now();
    }

    /// Takes a datagram that a [`crate::Sharder`] has put together; its frames were counted there.
    pub fn handle_datagram(&mut self, at: Time, datagram: &Datagram) {
        self.now = self.now.max(at);
        let mut left = datagram.left;
        let content = datagram.whole.layer().and_then(|layer| decode(layer, &mut left));
        let hash = match &content {
            Some(Content::Transport(packet)) => self.table.hash(&packet.key),
            _ => 0,
        };
        let read = Read { content, hash, left };
        self.handle_content(at, &read, datagram.whole.frames);
    }

    /// The connections begun since this was called last, in order: how many frames had been taken when
    /// each began, the frame that began it included. Empty without an outer clock.
    pub fn take_begun(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.outer_clock.iter_mut().flat_map(|begun| begun.drain(..))
    }
}
