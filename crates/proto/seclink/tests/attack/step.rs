//! Steps of a session, and the promises that they may break.

use std::collections::BTreeMap;
use std::time::Duration;

use seclink::macsec::Suite;

/// Members of a session.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Source of all randomness.
    pub seed: u64,
    /// Last byte of the address, priority, cipher suite of each member.
    pub members: Vec<(u8, u8, Suite)>,
}

/// Transit of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transit {
    /// Packets arrive in a millisecond.
    Pass,
    /// Packets arrive after this time.
    Delay(Duration),
    /// Packets arrive twice, each copy after up to this time.
    Shuffle(Duration),
    /// Every second packet gets lost.
    Lossy,
    /// All packets get lost.
    Drop,
}

/// A choice of kept packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// All of a sender.
    Sender(usize),
    /// One life of a sender.
    Life(usize, usize),
    /// The sender's packets that name the receiver's current identifier.
    Naming(usize),
    /// Packets that distribute a key.
    Keys,
    /// The sender's packets that the link lost in this time.
    Lost(usize, Duration),
    /// The last packets on the segment.
    Last(usize),
    /// One packet, by its number.
    One(usize),
    /// All.
    All,
}

/// A step of the attacker, or an event in a member's life. Members are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Time passes.
    Run(Duration),
    /// A link from one member to another changes.
    Link(usize, usize, Transit),
    /// All links to and from a member change.
    Isolate(usize, Transit),
    /// Members whose bits differ lose each other.
    Partition(u8),
    /// All links pass.
    Heal,
    /// Kept packets arrive at a member, the last first if `reversed`.
    Replay {
        /// The packets.
        choice: Choice,
        /// The receiver.
        to: usize,
        /// Whether the order is reversed.
        reversed: bool,
    },
    /// A kept packet with one changed byte and a shorter end arrives at a member.
    Forge {
        /// Its number.
        packet: usize,
        /// The place of the byte.
        byte: usize,
        /// The changed bits.
        mask: u8,
        /// Bytes cut off.
        cut: usize,
        /// The receiver.
        to: usize,
    },
    /// A member forgets everything and begins again with this priority.
    Restart(usize, u8),
    /// A member asks for a fresh key.
    Rekey(usize),
    /// A member's data plane reports packet numbers near their end.
    Exhaust(usize),
    /// A member does nothing for this time; its packets wait.
    Pause(usize, Duration),
}

/// A broken promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breach {
    /// A member sealed two frames with one key and nonce.
    NonceTwice,
    /// Two members sealed frames with one key and nonce.
    NonceShared,
    /// A member delivered one frame twice.
    FrameTwice,
    /// A peer is live that sent nothing for so long that no proof can be recent.
    Ghost,
    /// Two members send with one key and do not hear each other.
    Unheard,
    /// A member's first key is sent with before the order.
    EarlyFirst,
    /// A later key is sent with before the order: it has the association number in use.
    EarlyLater,
    /// A member loses the key that it sends with before it sends with the next.
    CutOff,
    /// A member says that it sends with a key, and its data plane does not.
    NoOrder,
    /// A polled member asks for the next poll at once.
    Restless,
    /// Members do not agree in time after the attack.
    Disagree,
}

/// Counts of the states that sessions reached.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// By name: packets, restarts, ….
    pub counts: BTreeMap<&'static str, u64>,
    /// By reason: rejected packets.
    pub rejected: BTreeMap<String, u64>,
    /// Longest time from the attack's end to agreement.
    pub slowest: Duration,
}

impl Coverage {
    /// Adds to a count.
    pub fn count(&mut self, name: &'static str, more: usize) {
        *self.counts.entry(name).or_default() += more as u64;
    }

    /// Returns a count.
    pub fn of(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Adds those of another session.
    pub fn add(&mut self, other: &Coverage) {
        for (name, count) in &other.counts {
            *self.counts.entry(name).or_default() += count;
        }
        for (reason, count) in &other.rejected {
            *self.rejected.entry(reason.clone()).or_default() += count;
        }
        self.slowest = self.slowest.max(other.slowest);
    }
}
