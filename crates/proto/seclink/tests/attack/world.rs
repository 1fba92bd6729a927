//! A segment in virtual time, and an attacker who rules it without a key.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use seclink::mka::Rejected;
use units::Time;
use wire::macsec::Sci;
use wire::mka::{ICV_LEN, KeyIdentifier, Known, MemberIdentifier, Packet};

use super::station::{Seeded, Station, key_stream};
use super::step::{Breach, Choice, Coverage, Setup, Step, Transit};

/// Bytes of the Ethernet and EAPOL headers before a packet.
const HEADERS: usize = 18;
/// Most packets that the attacker keeps.
const MOST_KEPT: usize = 6_000;
/// Most sealed frames that the attacker keeps.
const MOST_FRAMES: usize = 24;
/// Transit time of an honest link.
const MILLISECOND: Duration = Duration::from_millis(1);
/// Time for which a peer is live after its last packet, at most: MKA Life Time and MKA Hello Time.
const LONGEST_PROOF: Duration = Duration::from_secs(8);
/// Time for which members must stay agreed.
const STAY: Duration = Duration::from_secs(6);

/// A packet that the attacker keeps.
struct Kept {
    from: usize,
    life: usize,
    sent: Time,
    packet: Vec<u8>,
    /// Bits of the members that it did not reach.
    lost_to: u8,
}

/// The segment.
pub struct World {
    now: Time,
    random: Seeded,
    network: Pcg64,
    stations: Vec<Station>,
    channels: Vec<Sci>,
    links: BTreeMap<(usize, usize), Transit>,
    in_flight: BTreeMap<(Time, usize), (usize, usize)>,
    sequence: usize,
    kept: Vec<Kept>,
    /// Key streams of all sealed frames, and their senders.
    streams: HashMap<[u8; 16], usize>,
    frames: Vec<Vec<u8>>,
    keys: HashSet<KeyIdentifier>,
    /// Chance of a check after each event.
    pub watch: f64,
    pub breaches: BTreeSet<Breach>,
    pub coverage: Coverage,
}

impl World {
    pub fn new(setup: &Setup) -> Self {
        let mut random = Seeded(Pcg64::seed_from_u64(setup.seed));
        let members = setup.members.iter();
        let stations = members.map(|&(end, priority, suite)| {
            let sci = Sci([2, 0, 0, 0, 0, end, 0, 1]);
            Station::new(sci, priority, suite, Time::ZERO, &mut random)
        });
        let stations: Vec<Station> = stations.collect();
        World {
            now: Time::ZERO,
            random,
            network: Pcg64::seed_from_u64(setup.seed ^ 0x5eed),
            channels: stations.iter().map(|station| station.sci).collect(),
            stations,
            links: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            sequence: 0,
            kept: Vec::new(),
            streams: HashMap::new(),
            frames: Vec::new(),
            keys: HashSet::new(),
            watch: 0.1,
            breaches: BTreeSet::new(),
            coverage: Coverage::default(),
        }
    }

    pub fn station(&mut self, at: usize) -> &mut Station {
        &mut self.stations[at]
    }

    pub fn count(&self) -> usize {
        self.stations.len()
    }

    /// Returns the members' identifiers, last message numbers and channels, as their packets show them.
    pub fn heard(&self) -> Vec<(MemberIdentifier, u32, Sci)> {
        let of = |at: usize| {
            let last = self.kept.iter().rev().find(|kept| kept.from == at)?;
            let basic = parse(&last.packet).basic();
            Some((basic.member, basic.message_number, basic.sci))
        };
        (0..self.count()).filter_map(of).collect()
    }

    /// Returns the keys that members send with.
    pub fn keys(&self) -> Vec<KeyIdentifier> {
        self.stations.iter().filter_map(|station| station.member.transmits_with()).collect()
    }

    /// Returns the length in bytes of the longest packet.
    pub fn longest(&self) -> usize {
        self.kept.iter().map(|kept| kept.packet.len()).max().unwrap_or(0)
    }

    /// Takes a step, then checks all promises.
    pub fn step(&mut self, step: Step) {
        self.coverage.count("steps", 1);
        let count = self.count();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        match step {
            Step::Run(time) => self.run(time),
            Step::Link(from, to, transit) => drop(self.links.insert((from, to), transit)),
            Step::Isolate(at, transit) => {
                let of = pairs.filter(|(from, to)| *from == at || *to == at);
                self.links.extend(of.map(|pair| (pair, transit)));
            }
            Step::Partition(mask) => {
                let of = pairs.filter(|(from, to)| (mask >> from ^ mask >> to) & 1 != 0);
                self.links.extend(of.map(|pair| (pair, Transit::Drop)));
            }
            Step::Heal => self.links.clear(),
            Step::Replay { choice, to, reversed } => self.replay(choice, to, reversed),
            Step::Forge { packet, byte, mask, cut, to } => {
                if let Some(at) = packet.checked_rem(self.kept.len()) {
                    let mut forged = self.kept[at].packet.clone();
                    let at = byte % forged.len();
                    forged[at] ^= mask;
                    forged.truncate(forged.len() - cut);
                    self.inject(to, &forged);
                }
            }
            Step::Restart(at, priority) => {
                self.coverage.count("restarts", 1);
                self.stations[at].restart(priority, self.now, &mut self.random);
            }
            Step::Rekey(at) => self.stations[at].member.rekey(self.now),
            Step::Exhaust(at) => {
                let Station { member, ordered, suite, .. } = &mut self.stations[at];
                if let Some(number) = *ordered {
                    let pending = 0xc000_0000 << if suite.is_extended() { 32 } else { 0 };
                    member.set_packet_numbers(self.now, number, pending, 1);
                }
            }
            Step::Pause(at, time) => {
                let station = &mut self.stations[at];
                station.paused = station.paused.max(self.now + time);
            }
        }
        self.check();
    }

    fn chosen(&self, choice: Choice, to: usize) -> Vec<usize> {
        let identifier = self.stations[to].identifier;
        let is_chosen = |at: usize, kept: &Kept| match choice {
            Choice::Sender(from) => kept.from == from,
            Choice::Life(from, life) => kept.from == from && kept.life == life,
            Choice::Naming(from) => {
                kept.from == from && identifier.is_some_and(|own| names(&kept.packet, own))
            }
            Choice::Keys => sets(&kept.packet).any(|set| matches!(set, Known::Sak(_))),
            Choice::Lost(from, time) => {
                kept.from == from && kept.lost_to >> to & 1 != 0 && kept.sent + time >= self.now
            }
            Choice::Last(count) => at + count >= self.kept.len(),
            Choice::One(number) => at == number % self.kept.len(),
            Choice::All => true,
        };
        let of = self.kept.iter().enumerate().filter(|(at, kept)| is_chosen(*at, kept));
        of.map(|(at, _)| at).collect()
    }

    fn replay(&mut self, choice: Choice, to: usize, reversed: bool) {
        let mut chosen = self.chosen(choice, to);
        if reversed {
            chosen.reverse();
        }
        for at in chosen {
            let Kept { from, life, ref packet, .. } = self.kept[at];
            let packet = packet.clone();
            let is_earlier = life != self.stations[from].life;
            self.coverage.count("packets of earlier lives", usize::from(is_earlier));
            self.inject(to, &packet);
        }
    }

    /// Gives a member a packet of the attacker's.
    pub fn inject(&mut self, to: usize, packet: &[u8]) {
        let is_taken = self.hear(to, packet);
        self.coverage.count("injected packets", 1);
        self.coverage.count("injected packets taken", usize::from(is_taken));
    }

    fn hear(&mut self, to: usize, packet: &[u8]) -> bool {
        let said = self.stations[to].member.receive(self.now, packet);
        if let Err(error) = said {
            let reason = match error {
                Rejected::Malformed(_) => "Malformed".to_owned(),
                other => format!("{other:?}"),
            };
            *self.coverage.rejected.entry(reason).or_default() += 1;
        }
        self.obey(to);
        said.is_ok()
    }

    fn hear_kept(&mut self, to: usize, kept: usize) {
        let packet = self.kept[kept].packet.clone();
        self.hear(to, &packet);
    }

    /// Carries a member's orders out. A key is sent with as soon as it may: its first number shows whether it was in
    /// use before.
    fn obey(&mut self, at: usize) {
        let station = &mut self.stations[at];
        let mut orders = 0;
        for action in station.member.take_actions() {
            orders += usize::from(matches!(action, seclink::mka::Action::Transmit(_)));
            if !station.obey(action, &self.channels) {
                self.breaches.insert(Breach::NoOrder);
            }
        }
        let live = station.member.live_peers().count();
        self.coverage.count("expiries", station.live.saturating_sub(live));
        let is_server = live > 0 && station.member.is_key_server();
        self.coverage.count("changes of server", usize::from(is_server != station.is_server));
        (station.live, station.is_server) = (live, is_server);
        if let Some(key) = station.member.transmits_with() {
            self.coverage.count("keys", usize::from(self.keys.insert(key)));
        }
        if orders > 0 {
            self.seal(at);
        }
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for at in 0..self.count() {
                self.attend(at);
            }
            if self.network.random_bool(self.watch) {
                self.check();
            }
            let soon = self.now + MILLISECOND;
            let polls = self
                .stations
                .iter()
                .map(|station| station.member.next_timeout().max(station.paused).max(soon));
            let arrival = self.in_flight.keys().next().map(|(time, _)| *time);
            let next = polls.chain(arrival).min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = next;
            while let Some(first) = self.in_flight.first_entry()
                && first.key().0 <= self.now
            {
                let (to, kept) = first.remove();
                if self.stations[to].paused > self.now {
                    self.stations[to].waiting.push(kept);
                } else {
                    self.hear_kept(to, kept);
                }
            }
        }
        self.now = end;
        self.coverage.count("milliseconds", time.as_millis() as usize);
    }

    /// Gives a member the packets that waited, and polls it.
    fn attend(&mut self, at: usize) {
        if self.stations[at].paused > self.now {
            return;
        }
        for kept in std::mem::take(&mut self.stations[at].waiting) {
            self.hear_kept(at, kept);
        }
        while let Some(packet) = self.stations[at].member.poll(self.now, &mut self.random) {
            self.stations[at].identifier = Some(parse(&packet).basic().member);
            self.send(at, packet);
        }
        self.obey(at);
        if self.stations[at].member.next_timeout() <= self.now {
            self.breaches.insert(Breach::Restless);
        }
        let is_ghost = |sci: Sci| {
            let peer = self.stations.iter().find(|station| station.sci == sci);
            let sent = peer.and_then(|peer| peer.last_sent);
            sent.is_none_or(|sent| sent + LONGEST_PROOF < self.now)
        };
        if self.stations[at].member.live_peers().any(is_ghost) {
            self.breaches.insert(Breach::Ghost);
        }
    }

    fn send(&mut self, from: usize, packet: Vec<u8>) {
        self.coverage.count("packets", 1);
        let number = self.kept.len();
        assert!(number < MOST_KEPT, "they send without end");
        let mut lost_to = 0;
        for to in (0..self.count()).filter(|to| *to != from) {
            let transit = self.links.get(&(from, to)).copied().unwrap_or(Transit::Pass);
            let random = &mut self.network;
            let mut within =
                |most: Duration| random.random_range(MILLISECOND..=most.max(MILLISECOND));
            let delays = match transit {
                Transit::Pass => vec![MILLISECOND],
                Transit::Delay(delay) => vec![delay],
                Transit::Shuffle(most) => vec![within(most), within(most)],
                Transit::Lossy if number.is_multiple_of(2) => vec![MILLISECOND],
                Transit::Lossy | Transit::Drop => vec![],
            };
            lost_to |= u8::from(delays.is_empty()) << to;
            for delay in delays {
                self.sequence += 1;
                self.in_flight.insert((self.now + delay, self.sequence), (to, number));
            }
        }
        self.stations[from].last_sent = Some(self.now);
        let life = self.stations[from].life;
        self.kept.push(Kept { from, life, sent: self.now, packet, lost_to });
    }

    /// A member seals a frame. `None` without a key.
    pub fn seal(&mut self, from: usize) -> Option<Vec<u8>> {
        let sealed = self.stations[from].seal().ok()?;
        self.coverage.count("sealed frames", 1);
        if let Some(before) = self.streams.insert(key_stream(&sealed), from) {
            let is_own = before == from;
            self.breaches.insert(if is_own { Breach::NonceTwice } else { Breach::NonceShared });
        }
        Some(sealed)
    }

    /// A member opens a frame. Whether it is delivered.
    pub fn open(&mut self, to: usize, sealed: &[u8]) -> bool {
        let opened = self.stations[to].open(sealed);
        if opened == Some(false) {
            self.breaches.insert(Breach::FrameTwice);
        }
        opened.is_some()
    }

    /// Each member seals a frame, which the others open; sometimes kept frames come again. Whether all heard all.
    fn check(&mut self) -> bool {
        let count = self.count();
        let mut all_heard = true;
        for from in 0..count {
            let key = self.stations[from].member.transmits_with();
            self.check_orders(from, key.is_some());
            let Some(sealed) = self.seal(from) else {
                all_heard = false;
                continue;
            };
            for to in (0..count).filter(|to| *to != from) {
                let is_heard = self.open(to, &sealed);
                all_heard &= is_heard;
                if key.is_some() && self.stations[to].member.transmits_with() == key && !is_heard {
                    self.breaches.insert(Breach::Unheard);
                }
            }
            if self.frames.len() < MOST_FRAMES {
                self.frames.push(sealed);
            } else if self.network.random_bool(0.02) {
                let at = self.network.random_range(0..MOST_FRAMES);
                self.frames[at] = sealed;
            }
        }
        if self.network.random_bool(0.05) {
            for frame in self.frames.clone() {
                (0..count).for_each(|to| {
                    self.open(to, &frame);
                });
                self.coverage.count("replayed frames", count);
            }
        }
        all_heard
    }

    fn check_orders(&mut self, at: usize, says_that_it_sends: bool) {
        let Station { ordered, was_ordered, transmit, .. } = &self.stations[at];
        let breach = match (says_that_it_sends, transmit.next_number().is_some()) {
            (true, _) if ordered.is_none() => Breach::NoOrder,
            (false, false) if *was_ordered => Breach::CutOff,
            (false, true) if *was_ordered => Breach::EarlyLater,
            (false, true) => Breach::EarlyFirst,
            _ => return,
        };
        self.breaches.insert(breach);
    }

    /// Whether all members send with one key, know each other, and hear each other.
    pub fn agrees(&mut self) -> bool {
        let (keys, others) = (self.keys(), self.count() - 1);
        keys.len() == self.count()
            && keys.iter().all(|key| *key == keys[0])
            && self.stations.iter().all(|one| one.member.live_peers().count() == others)
            && self.check()
    }

    /// Ends the attack: links pass and delayed packets are gone. Members must agree within the bound, and stay so.
    pub fn settle(&mut self, bound: Duration) {
        self.links.clear();
        self.in_flight.clear();
        for station in &mut self.stations {
            (station.paused, station.waiting) = (self.now, Vec::new());
        }
        let begin = self.now;
        let mut agreed = None;
        while self.now < agreed.unwrap_or(begin + bound) + STAY {
            self.run(Duration::from_millis(250));
            let is_agreed = self.agrees();
            agreed = agreed.or(Some(self.now)).filter(|_| is_agreed);
        }
        let taken = agreed.map_or(Duration::MAX, |at| at.saturating_since(begin));
        self.coverage.slowest = self.coverage.slowest.max(taken);
        if taken > bound {
            self.breaches.insert(Breach::Disagree);
        }
    }
}

fn parse(frame: &[u8]) -> Packet<'_> {
    Packet::new_checked(&frame[HEADERS..], ICV_LEN).unwrap()
}

fn sets(frame: &[u8]) -> impl Iterator<Item = Known<'_>> {
    parse(frame).sets().map(|set| Known::parse(&set.unwrap()).unwrap())
}

fn names(frame: &[u8], member: MemberIdentifier) -> bool {
    sets(frame).any(|set| match set {
        Known::Live(list) | Known::Potential(list) => list.iter().any(|peer| peer.member == member),
        _ => false,
    })
}
