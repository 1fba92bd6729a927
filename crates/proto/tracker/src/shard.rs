//! Frames shared out among trackers, so that several threads follow a capture as one would.
//!
//! A [`Sharder`] says of each frame which [`Tracker`] is to take it: all frames of a connection go to
//! one, in both directions. Put together are datagrams in fragments by the sharder itself, for a fragment
//! does not say of which connection it is. The trackers follow its clock ([`Tracker::with_outer_clock`])
//! and not that of their own frames: connections fall silent when they would have in one tracker. So the
//! records are the same, as long as no tracker reaches its [`Limits`], which each has to itself.
//!
//! [`Tracker`]: crate::Tracker
//! [`Tracker::with_outer_clock`]: crate::Tracker::with_outer_clock
//! [`Limits`]: crate::Limits

use units::Time;

use crate::counters::Counters;
use crate::decode::{Content, Passing, decode, decode_frame, plain_tcp};
use crate::fragments::{Fragments, Whole};
use crate::plain::Plain;
use crate::record::Traffic;
use crate::table::Key;
use crate::tracker::{EXPIRY_PERIOD, Packet};

/// A datagram that was put together from fragments.
#[derive(Debug)]
pub struct Datagram {
    pub(crate) whole: Whole,
    /// Headers that may still follow.
    pub(crate) passing: Passing,
}

/// What becomes of a frame.
#[derive(Debug)]
pub enum Place {
    /// It is for the tracker with this number.
    Tracker(usize),
    /// It is a fragment: no tracker takes it.
    Nobody,
    /// It is the last fragment of a datagram, which is for the tracker with this number.
    Whole(usize, Box<Datagram>),
}

/// What becomes of a frame, and what all trackers are told around it.
#[derive(Debug)]
pub struct Routed {
    /// Where it goes.
    pub place: Place,
    /// What its headers say, if it is a plain segment: for [`crate::Tracker::handle_sharded`].
    pub plain: Option<Plain>,
    /// The capture's time, where it is later than the frame's: for its tracker, before the frame.
    pub now: Option<Time>,
    /// For all trackers, after the frame: [`crate::Tracker::pass`].
    pub pass: Option<Time>,
}

/// Shares frames out among trackers.
#[derive(Debug)]
pub struct Sharder {
    trackers: u64,
    /// Made of the seed; odd.
    factor: u64,
    fragments: Fragments,
    counters: Counters,
    now: Time,
    next_expiry: Time,
}

impl Sharder {
    /// One for so many trackers; `seed` keys who goes where.
    #[must_use]
    pub fn new(trackers: usize, seed: u64) -> Sharder {
        Sharder {
            trackers: trackers.max(1) as u64,
            factor: (seed ^ 0x9e37_79b9_7f4a_7c15) | 1,
            fragments: Fragments::new(seed),
            counters: Counters::default(),
            now: Time::ZERO,
            next_expiry: Time::ZERO,
        }
    }

    /// Says what becomes of the next frame, in the capture's order.
    #[inline]
    pub fn route(&mut self, packet: &Packet<'_>) -> Routed {
        let now = (packet.at < self.now).then_some(self.now);
        self.now = self.now.max(packet.at);
        let (place, plain) = match plain_tcp(packet.link_type, packet.bytes) {
            Some(ends) => {
                let end = |(address, port): (u32, u16)| Key::folded_end(address.into(), port);
                let [from, to] = ends.map(end);
                (Place::Tracker(self.shard(from, to)), Plain::of(ends, packet.bytes))
            }
            None => (self.read(packet), None),
        };
        let mut pass = None;
        if self.now >= self.next_expiry {
            self.next_expiry = self.now + EXPIRY_PERIOD;
            pass = Some(self.now);
            if self.fragments.waiting() > 0 {
                self.fragments.expire(self.now);
            }
        }
        Routed { place, plain, now, pass }
    }

    /// What it has counted itself: fragments, and the frames of those that came to nothing. With what the
    /// trackers have counted, every frame is explained.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let fragments_waiting = self.fragments.waiting();
        Counters {
            fragments_waiting,
            fragments_dropped: *self.fragments.dropped(),
            ..self.counters
        }
    }

    /// Gives up the fragments that wait: the capture is over.
    pub fn finish(&mut self) {
        self.fragments.finish();
    }

    /// The tracker of a connection: the same for both directions.
    fn shard(&self, from: u64, to: u64) -> usize {
        let mixed = self.mix(from).wrapping_add(self.mix(to));
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(self.factor);
        ((mixed >> 32).wrapping_mul(self.trackers) >> 32) as usize
    }

    fn mix(&self, end: u64) -> u64 {
        let mixed = end.wrapping_mul(self.factor);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    /// Reads a frame that is no plain TCP: of other links, in tunnels, in fragments.
    #[inline(never)]
    fn read(&mut self, packet: &Packet<'_>) -> Place {
        let mut passing = Passing::default();
        let fragment = match decode_frame(packet.link_type, packet.bytes, &mut passing) {
            Some(Content::Transport(decoded)) => {
                return Place::Tracker(self.shard_of(&decoded.key));
            }
            // Whoever takes it counts it.
            None => return Place::Tracker(0),
            Some(Content::Fragment(fragment)) => fragment,
        };
        self.counters.frames += 1;
        let frames = Traffic { frames: 1, bytes: packet.original_len as u64 };
        self.counters.fragments = self.counters.fragments.saturating_add(frames.frames);
        let Some(mut whole) = self.fragments.insert(self.now, &fragment, frames) else {
            return Place::Nobody;
        };
        // What was put together may be a fragment again, of a datagram around it.
        loop {
            self.counters.reassembled = self.counters.reassembled.saturating_add(1);
            let mut inner = passing;
            let frames = whole.frames;
            let next = match whole.layer().and_then(|layer| decode(layer, &mut inner)) {
                Some(Content::Transport(decoded)) => {
                    let tracker = self.shard_of(&decoded.key);
                    return Place::Whole(tracker, Box::new(Datagram { whole, passing }));
                }
                None => {
                    self.counters.other = self.counters.other.saturating_add(frames.frames);
                    if let Some(wrapping) = inner.wrapping {
                        self.counters.wrapped.add(wrapping, frames.frames);
                    }
                    return Place::Nobody;
                }
                Some(Content::Fragment(fragment)) => {
                    let fragments = self.counters.fragments.saturating_add(frames.frames);
                    self.counters.fragments = fragments;
                    self.fragments.insert(self.now, &fragment, frames)
                }
            };
            let Some(next) = next else { return Place::Nobody };
            (whole, passing) = (next, inner);
        }
    }

    fn shard_of(&self, key: &Key) -> usize {
        let [low, high] = key.folded();
        self.shard(low, high)
    }
}
