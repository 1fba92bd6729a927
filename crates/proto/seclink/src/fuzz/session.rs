//! Whole sessions of key agreement in virtual time, with an attacker who holds every packet but no key.

use std::collections::BTreeSet;
use std::time::Duration;

use units::Time;
use wire::macsec::Sci;

use crate::macsec::{Confidentiality, Naming, Opened, Receive, Suite, Transmit, Validation};
use crate::mka::{Action, Cak, Participant, Randomness, Settings};
use crate::{KeyError, Secret, Slot};

/// Time in which members agree once nobody interferes any more: who is gone expires within 8 s, and a packet of every
/// member follows within 2 s.
pub const SETTLED: Duration = Duration::from_secs(12);

/// Most packets that the attacker keeps.
const MOST_KEPT: usize = 2000;
/// Sealed frames that are replayed to all.
const MOST_FRAMES: usize = 12;
/// Most steps of a session of bytes.
const MOST_STEPS: usize = 24;

/// Ends of the members' channels. Their order is not that of the priorities.
const CHANNELS: [u8; 4] = [9, 1, 5, 3];
/// Bytes of a frame before its user data, and of the tag put between.
const ADDRESSES: usize = 12;
const TAG: usize = 2 + wire::macsec::LONG_LEN;
/// User data: zeros, so that the sealed frame shows the key stream.
const USER_DATA: usize = 32;

/// A step of a session. Members are numbered from 0, by rising priority value: the first is key server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Time passes; packets that are not blocked arrive within it.
    Run(Duration),
    /// Packets from one member to another are dropped, or pass again.
    Block(usize, usize),
    /// A kept packet arrives at a member: by its number among all kept ones.
    Inject(usize, usize),
    /// All kept packets that a member sent, of one of its lives or of all, arrive at another in order.
    Replay {
        /// The sender, and which of its lives.
        from: usize,
        /// `None`: all.
        life: Option<usize>,
        /// The receiver.
        to: usize,
    },
    /// A member forgets everything and begins again.
    Restart(usize),
    /// A member asks for a fresh key.
    Rekey(usize),
}

/// Random bytes that never repeat within a session.
struct Counted(u64);

impl Randomness for Counted {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64, a bijection of the counter.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let mixed = (mixed ^ mixed >> 31).to_le_bytes();
            chunk.iter_mut().zip(mixed).for_each(|(to, from)| *to = from);
        }
    }
}

/// A member with its MACsec.
struct Station {
    sci: Sci,
    priority: u8,
    life: usize,
    member: Participant,
    /// The association that it sends with.
    sending: u8,
    transmit: Transmit,
    receive: Receive,
    /// Frames that this life took, by their key stream.
    taken: BTreeSet<[u8; 16]>,
}

impl Station {
    fn new(
        sci: Sci,
        priority: u8,
        suite: Suite,
        now: Time,
        random: &mut Counted,
    ) -> Result<Self, KeyError> {
        let cak = Cak::new(b"a name".to_vec(), Secret::new(vec![0x42; 16]))?;
        let confidentiality = Confidentiality::All;
        let settings = Settings { sci, cak, priority, suite, confidentiality };
        Ok(Station {
            sci,
            priority,
            life: 0,
            sending: 0,
            member: Participant::new(&settings, now, random)?,
            transmit: Transmit::new(sci, Naming::Explicit),
            receive: Receive::new(Validation::Strict, Some(0)),
            taken: BTreeSet::new(),
        })
    }

    fn obey(&mut self, peers: &[Sci]) {
        for action in self.member.take_actions() {
            match action {
                Action::Receive(sci, key) => self.receive.install(sci, key),
                Action::Prepare(key) => self.transmit.prepare(key),
                Action::Transmit(number) => {
                    assert!(self.transmit.use_association(number), "a key to send with is there");
                    self.sending = number;
                }
                Action::Remove(number) => {
                    self.transmit.remove(number);
                    peers.iter().for_each(|sci| self.receive.remove(*sci, number));
                }
                Action::RemovePeer(sci) => self.receive.remove_channel(sci),
            }
        }
    }

    fn hear(&mut self, now: Time, packet: &[u8], peers: &[Sci]) {
        // Whatever comes of it: the attacker's packets are refused in many ways.
        let _ = self.member.receive(now, packet);
        self.obey(peers);
    }

    /// Whether it delivers a sealed frame. None is delivered twice.
    fn takes(&mut self, frame: &[u8]) -> bool {
        let mut buffer = frame.to_vec();
        let range = 0..buffer.len();
        let Some(mut slot) = Slot::new(&mut buffer, range) else { return false };
        let is_delivered = self.receive.open(&mut slot) == Opened::Delivered;
        assert!(
            !is_delivered || key_stream(frame).is_some_and(|stream| self.taken.insert(stream)),
            "a frame is delivered twice"
        );
        is_delivered
    }
}

/// A packet that the attacker keeps.
struct Kept {
    from: usize,
    life: usize,
    packet: Vec<u8>,
}

/// Members on one segment, and the attacker between them.
pub struct Session {
    now: Time,
    suite: Suite,
    random: Counted,
    stations: Vec<Station>,
    channels: Vec<Sci>,
    blocked: BTreeSet<(usize, usize)>,
    kept: Vec<Kept>,
    /// Key streams of all frames that anybody sealed.
    streams: BTreeSet<[u8; 16]>,
    frames: Vec<Vec<u8>>,
}

impl Session {
    /// Members that begin at once, 2 to 4.
    ///
    /// # Errors
    /// Keys of this suite cannot be made here.
    pub fn new(members: usize, suite: Suite) -> Result<Self, KeyError> {
        let mut random = Counted(1);
        let channels = CHANNELS.iter().take(members.clamp(2, 4));
        let channels: Vec<Sci> = channels.map(|end| Sci([2, 0, 0, 0, 0, *end, 0, 1])).collect();
        let stations = channels.iter().zip(16..);
        let stations = stations
            .map(|(sci, priority)| Station::new(*sci, priority, suite, Time::ZERO, &mut random));
        Ok(Session {
            now: Time::ZERO,
            suite,
            stations: stations.collect::<Result<_, _>>()?,
            random,
            channels,
            blocked: BTreeSet::new(),
            kept: Vec::new(),
            streams: BTreeSet::new(),
            frames: Vec::new(),
        })
    }

    /// How many packets the attacker has.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The member of this number.
    #[must_use]
    pub fn member(&self, at: usize) -> Option<&Participant> {
        self.stations.get(at).map(|station| &station.member)
    }

    /// A member's data plane says the lowest packet number that it accepts, and the next that it sends.
    pub fn set_packet_numbers(&mut self, at: usize, lowest_acceptable: u64, next_sent: u64) {
        if let Some(Station { member, sending, .. }) = self.stations.get_mut(at) {
            member.set_packet_numbers(self.now, *sending, lowest_acceptable, next_sent);
        }
    }

    /// Takes a step; then every member seals a frame and hears those of the others.
    ///
    /// # Panics
    /// Two frames were sealed with one key and nonce, or one frame was delivered twice.
    pub fn step(&mut self, step: Step) {
        match step {
            Step::Run(time) => self.run(time),
            Step::Block(from, to) => {
                if !self.blocked.remove(&(from, to)) {
                    self.blocked.insert((from, to));
                }
            }
            Step::Inject(number, to) => {
                let kept = self.kept.get(number).into_iter();
                inject(kept, self.now, self.stations.get_mut(to), &self.channels);
            }
            Step::Replay { from, life, to } => {
                let of =
                    |kept: &&Kept| kept.from == from && life.is_none_or(|life| kept.life == life);
                let kept = self.kept.iter().filter(of);
                inject(kept, self.now, self.stations.get_mut(to), &self.channels);
            }
            Step::Restart(at) => {
                if let Some(old) = self.stations.get_mut(at)
                    && let Ok(new) =
                        Station::new(old.sci, old.priority, self.suite, self.now, &mut self.random)
                {
                    *old = Station { life: old.life.saturating_add(1), ..new };
                }
            }
            Step::Rekey(at) => {
                if let Some(station) = self.stations.get_mut(at) {
                    station.member.rekey(self.now);
                }
            }
        }
        self.all_hear_all();
    }

    /// Lets everybody do what is due for so long.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let mut sent = Vec::new();
            for (at, station) in self.stations.iter_mut().enumerate() {
                while let Some(packet) = station.member.poll(self.now, &mut self.random) {
                    sent.push(Kept { from: at, life: station.life, packet });
                }
                station.obey(&self.channels);
            }
            let is_quiet = sent.is_empty();
            for kept in sent {
                for (to, station) in self.stations.iter_mut().enumerate() {
                    if to != kept.from && !self.blocked.contains(&(kept.from, to)) {
                        station.hear(self.now, &kept.packet, &self.channels);
                    }
                }
                if self.kept.len() < MOST_KEPT {
                    self.kept.push(kept);
                }
            }
            // A packet takes a millisecond.
            let soon = self.now + Duration::from_millis(1);
            let next = self.stations.iter().map(|station| station.member.next_timeout()).min();
            let next = next.filter(|_| is_quiet).map_or(soon, |next| next.max(soon));
            self.now = next.min(end);
        }
    }

    /// A frame of each member to all others, and frames of before again. Whether all got all of the new ones.
    fn all_hear_all(&mut self) -> bool {
        let mut is_heard = true;
        let frames: Vec<_> =
            self.stations.iter_mut().map(|station| seal(&mut station.transmit)).collect();
        for (from, frame) in frames.into_iter().enumerate() {
            let stream = frame.as_deref().and_then(key_stream);
            let (Some(frame), Some(stream)) = (frame, stream) else {
                is_heard = false;
                continue;
            };
            assert!(self.streams.insert(stream), "a nonce is used twice with a key");
            for (to, station) in self.stations.iter_mut().enumerate() {
                is_heard &= to == from || station.takes(&frame);
            }
            if self.frames.len() < MOST_FRAMES {
                self.frames.push(frame);
            }
        }
        for frame in &self.frames {
            self.stations.iter_mut().for_each(|station| {
                station.takes(frame);
            });
        }
        is_heard
    }

    /// Whether all members send with the same key, know each other, and hear each other's frames.
    #[must_use]
    pub fn agrees(&mut self) -> bool {
        let keys: Vec<_> =
            self.stations.iter().map(|station| station.member.transmits_with()).collect();
        let others = self.stations.len().saturating_sub(1);
        let is_one = keys
            .first()
            .is_some_and(|first| first.is_some() && keys.iter().all(|key| key == first));
        let knows_all = |station: &Station| station.member.live_peers().count() == others;
        is_one && self.stations.iter().all(knows_all) && self.all_hear_all()
    }

    /// Ends all interference; then the members agree within [`SETTLED`].
    ///
    /// # Panics
    /// They do not.
    pub fn settle(&mut self) {
        self.blocked.clear();
        self.run(SETTLED);
        assert!(self.agrees(), "the members do not agree");
    }
}

fn inject<'k>(
    kept: impl Iterator<Item = &'k Kept>,
    now: Time,
    to: Option<&mut Station>,
    channels: &[Sci],
) {
    if let Some(station) = to {
        kept.for_each(|kept| station.hear(now, &kept.packet, channels));
    }
}

/// A sealed frame of zeros; `None` without a key.
fn seal(transmit: &mut Transmit) -> Option<Vec<u8>> {
    let behind = crate::macsec::ICV_LEN;
    let mut buffer = vec![0; TAG + ADDRESSES + USER_DATA + behind];
    let mut slot = Slot::new(&mut buffer, TAG..TAG + ADDRESSES + USER_DATA)?;
    transmit.seal(&mut slot).ok()?;
    Some(slot.frame().to_vec())
}

/// The first block of a sealed frame's key stream: a function of key and nonce alone.
fn key_stream(frame: &[u8]) -> Option<[u8; 16]> {
    frame.get(ADDRESSES + TAG..)?.first_chunk().copied()
}

/// Any bytes as a session: its members and suite, and three bytes a step.
///
/// # Panics
/// Two frames were sealed with one key and nonce, a frame was delivered twice, or the members do not agree when the
/// attacker is gone.
pub fn session(bytes: &[u8]) {
    let Some((&[members, suite], steps)) = bytes.split_first_chunk::<2>() else { return };
    let members = 2 + usize::from(members) % 3;
    let Ok(mut session) = Session::new(members, super::suite(suite)) else { return };
    let (steps, _) = steps.as_chunks::<3>();
    for &[kind, first, second] in steps.iter().take(MOST_STEPS) {
        let number = usize::from(u16::from_be_bytes([first, second]));
        let rest = usize::from(kind >> 3);
        let member = |byte: usize| byte.checked_rem(members).unwrap_or(0);
        let (a, b) = (member(first.into()), member(second.into()));
        session.step(match kind & 7 {
            0 | 1 => Step::Run(Duration::from_millis(u64::from(first) * 32 + u64::from(second))),
            2 | 3 => Step::Block(a, b),
            4 => Step::Inject(number.checked_rem(session.kept()).unwrap_or(0), member(rest)),
            5 => Step::Replay { from: a, life: rest.checked_sub(1), to: b },
            6 => Step::Restart(a),
            _ => Step::Rekey(a),
        });
    }
    session.settle();
}
