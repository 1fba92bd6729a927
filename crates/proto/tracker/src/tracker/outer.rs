//! One tracker of several, whose time is another's to say.

use units::Time;

use super::frames::{GROUP, Packet, Read};
use super::{Tracker, add};
use crate::decode::{Content, decode};
use crate::flow::FlowContent;
use crate::plain::Plain;
use crate::record::Traffic;
use crate::shard::Datagram;
use crate::table::Activity;

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

    /// Takes frames as [`Tracker::handle_packets`] does, of which a [`crate::Sharder`] has read the headers of
    /// some: `read` gives a frame and these. The bytes of a frame whose connection's record is out are not
    /// looked at then.
    pub fn handle_sharded<'a, T>(
        &mut self,
        frames: &[T],
        read: impl Fn(&T) -> (Packet<'a>, Option<Plain>),
    ) {
        for group in frames.chunks(GROUP) {
            let mut hashes = [None; GROUP];
            for (hash, frame) in hashes.iter_mut().zip(group) {
                let (packet, plain) = read(frame);
                *hash = match plain {
                    Some(plain) => Some(self.table.hash_plain(plain.ends())),
                    None => self.hash_of(&packet),
                };
            }
            let guessed = hashes.map(|hash| hash.and_then(|hash| self.table.guess(hash)));
            for place in guessed.into_iter().flatten() {
                std::hint::black_box(self.table.warm(place));
            }
            for ((frame, hash), guessed) in group.iter().zip(hashes).zip(guessed) {
                let (packet, plain) = read(frame);
                if !plain.is_some_and(|plain| self.handle_plain(&packet, &plain, guessed)) {
                    let read = self.read_frame(&packet, hash);
                    self.handle_frame(&packet, &read);
                }
            }
        }
    }

    /// Takes a frame by its headers alone, if it is of the connection at the place that was guessed and that
    /// one's record is out; false if not.
    #[inline]
    fn handle_plain(&mut self, packet: &Packet<'_>, plain: &Plain, guessed: Option<u32>) -> bool {
        let (key, from_low) = plain.key();
        let Some(place) = guessed.filter(|place| self.table.is_at(*place, &key)) else {
            return false;
        };
        let Some(flow) = self.table.get(place) else { return false };
        let side = flow.sender(from_low);
        let FlowContent::ReportedTcp(reported) = &mut flow.content else { return false };
        reported.handle_plain(plain, side);
        let list = if reported.is_closed() { Activity::Closed } else { Activity::Reported };
        let frames = Traffic { frames: 1, bytes: packet.original_len as u64 };
        flow.count(packet.at, side, frames);
        self.counters.frames += 1;
        self.now = self.now.max(packet.at);
        add(&mut self.counters.followed, frames);
        self.table.touch(place, list, self.now);
        if self.outer_clock.is_none() {
            self.expire();
        }
        true
    }

    /// Takes a datagram that a [`crate::Sharder`] has put together; its frames were counted there.
    pub fn handle_datagram(&mut self, at: Time, datagram: &Datagram) {
        self.now = self.now.max(at);
        let mut passing = datagram.passing;
        let content = datagram.whole.layer().and_then(|layer| decode(layer, &mut passing));
        let hash = match &content {
            Some(Content::Transport(packet)) => self.table.hash(&packet.key),
            _ => 0,
        };
        let read = Read { content, hash, passing };
        self.handle_content(at, &read, datagram.whole.frames);
    }

    /// The connections begun since this was called last, in order: how many frames had been taken when
    /// each began, the frame that began it included. Empty without an outer clock.
    pub fn take_begun(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.outer_clock.iter_mut().flat_map(|begun| begun.drain(..))
    }
}
