//! What is kept of the records of one side.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use export::Record;
use serde::Serialize;
use siphasher::sip::SipHasher13;

use super::drawn::Drawn;
use crate::digest::{Add, Top, bounded};
use crate::reasons::Facts;

units::named! {
    /// The time that is compared.
    #[derive(Default)]
    pub enum Timed: "time of handshakes" {
        /// From the ClientHello to the client's Finished.
        #[default]
        TlsHandshake = "tls_handshake_ms",
        /// From the ClientHello to the client's first application data.
        HelloToData = "hello_to_data_ms",
        /// From the SYN, or QUIC's first Initial, to the client's Finished.
        Handshake = "handshake_ms",
        /// From the ClientHello to the client's Finished, over the client's own round-trip time.
        RoundTrips = "tls_round_trips",
    }
}

impl Timed {
    /// The unit that it is compared in: `ms` or `round trips`.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Timed::RoundTrips => "round trips",
            _ => "ms",
        }
    }

    /// The facts that it follows from.
    const fn facts(self) -> Facts {
        match self {
            Timed::TlsHandshake | Timed::Handshake | Timed::RoundTrips => Facts::FINISHED,
            Timed::HelloToData => Facts::CLIENT_DATA,
        }
    }

    fn of(self, record: &Record) -> Option<f64> {
        match self {
            Timed::TlsHandshake => record.tls_handshake.map(ms),
            Timed::HelloToData => record.hello_to_data.map(ms),
            Timed::Handshake => record.handshake.map(ms),
            Timed::RoundTrips => record.tls_round_trips,
        }
    }
}

fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Whose handshakes are taken together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "by", content = "name", rename_all = "snake_case")]
pub enum Group {
    /// All handshakes of a side.
    All,
    /// Those of a version, over TCP or QUIC.
    Version(String),
    /// Those of a version and class.
    Class(String),
    /// Those from a client network.
    Network(String),
    /// Those to a server name; empty where none was asked for.
    Name(String),
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::All => f.write_str("all"),
            Group::Version(name) | Group::Class(name) => f.write_str(name),
            Group::Network(name) => write!(f, "from {name}"),
            Group::Name(name) if name.is_empty() => f.write_str("without a server name"),
            Group::Name(name) => write!(f, "to {name}"),
        }
    }
}

/// What bounds a side's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Networks and names that are kept apart, of each: the most frequent.
    pub groups: usize,
    /// Handshakes of each group whose times are kept: a fair draw.
    pub kept: usize,
    /// Keys the draw.
    pub seed: u64,
}

impl Default for Bounds {
    /// 256 and 2000: some 50 MB at most.
    fn default() -> Self {
        Bounds { groups: 256, kept: 2000, seed: 1 }
    }
}

/// Versions that are kept apart: what else a stranger makes up is not compared by itself.
const VERSIONS: usize = 24;

/// What is kept of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) attempts: u64,
    pub(super) failed: u64,
    pub(super) resumed: u64,
    pub(super) times: Drawn,
    pub(super) round_trips: Drawn,
}

impl Add for Kept {
    fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.failed += other.failed;
        self.resumed += other.resumed;
        self.times.add(&other.times);
        self.round_trips.add(&other.round_trips);
    }
}

/// One handshake, as it is kept.
struct Taken {
    failed: bool,
    resumed: bool,
    draw: u64,
    time: Option<f64>,
    round_trip: Option<f64>,
}

impl Kept {
    fn take(&mut self, taken: &Taken, room: usize) {
        self.attempts += 1;
        self.failed += u64::from(taken.failed);
        self.resumed += u64::from(taken.resumed);
        if let Some(time) = taken.time {
            self.times.offer(taken.draw, time, room);
        }
        if let Some(round_trip) = taken.round_trip {
            self.round_trips.offer(taken.draw, round_trip, room);
        }
    }
}

/// The records of one side.
#[derive(Debug, Clone)]
pub struct Side {
    timed: Timed,
    bounds: Bounds,
    all: Kept,
    versions: BTreeMap<String, Kept>,
    classes: BTreeMap<String, Kept>,
    networks: Top<String, Kept>,
    names: Top<String, Kept>,
    records: u64,
}

impl Side {
    /// A side without records, of which this time will be compared.
    #[must_use]
    pub fn new(timed: Timed, bounds: Bounds) -> Side {
        Side {
            timed,
            bounds,
            all: Kept::default(),
            versions: BTreeMap::new(),
            classes: BTreeMap::new(),
            networks: Top::new(bounds.groups),
            names: Top::new(bounds.groups),
            records: 0,
        }
    }

    /// Takes a record. One without TLS, or of which too little was captured to tell how it went, says
    /// nothing here.
    pub fn take(&mut self, record: &Record) {
        self.records += 1;
        let Some(class) = record.class.as_deref() else { return };
        let failed = class == "failed";
        let touched = Facts::touched_by(record.uncertain.iter().map(String::as_str));
        let sure = !touched.touch(self.timed.facts());
        let finite = |value: &f64| value.is_finite() && *value >= 0.0;
        let taken = Taken {
            failed,
            resumed: matches!(class, "resumed" | "zero_rtt"),
            draw: draw(self.bounds.seed, record),
            time: self.timed.of(record).filter(finite).filter(|_| sure && !failed),
            round_trip: record.round_trip.map(ms).filter(|_| !failed),
        };
        let room = self.bounds.kept;
        self.all.take(&taken, room);
        if let Some(version) = &record.version {
            let over = if record.transport == "quic" { " over QUIC" } else { "" };
            let version = format!("{}{over}", bounded(version));
            let of_class = format!("{version}, {}", bounded(class).replace('_', " "));
            if let Some(kept) = entry(&mut self.classes, of_class, VERSIONS * 5) {
                kept.take(&taken, room);
            }
            if let Some(kept) = entry(&mut self.versions, version, VERSIONS) {
                kept.take(&taken, room);
            }
        }
        let network = bounded(&record.client_network);
        self.networks.count(network).value.take(&taken, room);
        let name = bounded(record.sni.as_deref().unwrap_or_default());
        self.names.count(name).value.take(&taken, room);
    }

    /// Records taken, those without TLS too.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Handshakes taken, those that failed too.
    #[must_use]
    pub fn handshakes(&self) -> u64 {
        self.all.attempts
    }

    /// Which time is compared.
    #[must_use]
    pub fn timed(&self) -> Timed {
        self.timed
    }

    /// All groups that the side has, each with what was kept of it.
    pub(super) fn groups(&self) -> BTreeMap<Group, &Kept> {
        let mut groups = BTreeMap::from([(Group::All, &self.all)]);
        groups
            .extend(self.versions.iter().map(|(name, kept)| (Group::Version(name.clone()), kept)));
        groups.extend(self.classes.iter().map(|(name, kept)| (Group::Class(name.clone()), kept)));
        for (name, entry) in self.networks.ranked() {
            groups.insert(Group::Network(name.clone()), &entry.value);
        }
        for (name, entry) in self.names.ranked() {
            groups.insert(Group::Name(name.clone()), &entry.value);
        }
        groups
    }
}

/// The entry of a name, if there is room for it.
fn entry(map: &mut BTreeMap<String, Kept>, name: String, room: usize) -> Option<&mut Kept> {
    if map.len() >= room && !map.contains_key(&name) {
        return None;
    }
    Some(map.entry(name).or_default())
}

/// The draw of a record: the same whatever the order in which records come.
fn draw(seed: u64, record: &Record) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, 0x6265_666f_7265_2121);
    (&record.run, record.number, record.first_frame, &record.client).hash(&mut hasher);
    hasher.finish()
}
