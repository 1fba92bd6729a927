//! What is to be measured: sweeps, and the points and cells that they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls_drivers::{Cipher, Contexts, Extent, Group, Key, Locks, Suite, Version, Wire, Workload};

use crate::point::{Point, Tool, UnknownValue, parse_workload};
use crate::roster::{Build, Library, NULL, Roster, UnknownLibrary};

mod expand;

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");

/// Most measurements that one plan may make: a bound on what a wrong plan file can start.
const MOST_MEASUREMENTS: u64 = 200_000;
/// Most threads of one measurement.
const MOST_THREADS: usize = 1024;
/// Longest single measurement.
const MOST_MS: u64 = 600_000;
/// Most tickets of one handshake.
const MOST_TICKETS: u32 = 16;
/// Most connections of one measurement, a thread.
const MOST_CONNECTIONS: u64 = 1_000_000;

/// A plan that cannot be carried out. The caller's fault.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file is not a plan.
    #[error("this is not a plan: {0}; hint: see plan.toml of the stacks study for the form")]
    NotAPlan(#[from] toml::de::Error),
    /// No such scale.
    #[error("no scale is called `{name}`; there are: {known}")]
    UnknownScale {
        /// The name as given.
        name: String,
        /// The names that the plan has.
        known: String,
    },
    /// No such library.
    #[error(transparent)]
    Library(#[from] UnknownLibrary),
    /// No such workload, or number of threads.
    #[error(transparent)]
    Value(#[from] UnknownValue),
    /// A list of a sweep is empty.
    #[error("sweep `{sweep}` measures nothing: its list `{list}` is empty")]
    Empty {
        /// The sweep's name.
        sweep: String,
        /// The empty list.
        list: &'static str,
    },
    /// A number lies outside what is allowed.
    #[error("sweep `{sweep}`: {what}")]
    OutOfRange {
        /// The sweep's name.
        sweep: String,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// Two sweeps have one name.
    #[error("two sweeps are called `{0}`; give each a name of its own")]
    Twice(String),
    /// No sweep.
    #[error("the plan has no sweep")]
    NoSweep,
}

/// Every combination of the lists, each measured `repeat` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name, unique in the plan.
    pub name: String,
    /// Libraries by name or pattern, or `default`, `built`, `all`.
    #[serde(default = "default_library")]
    pub library: Vec<String>,
    /// The client's library: `same` (as the server's), `reference` (one for all, that takes few
    /// locks), or a name.
    #[serde(default = "same")]
    pub client: Vec<String>,
    /// Workloads: `full`, `resume`, `chain:10`, `bulk:16384`, `footprint:200`.
    pub workload: Vec<String>,
    /// How the bytes go. A chain always goes over loopback.
    #[serde(default = "memory")]
    pub wire: Vec<Wire>,
    /// Versions of TLS.
    #[serde(default = "tls13")]
    pub version: Vec<Version>,
    /// Keys of the server's certificate.
    #[serde(default = "ecdsa")]
    pub key: Vec<Key>,
    /// Groups of the key exchange.
    #[serde(default = "x25519")]
    pub group: Vec<Group>,
    /// Record ciphers.
    #[serde(default = "aes_128")]
    pub cipher: Vec<Cipher>,
    /// Threads: numbers, `cores`, `2xcores`, or `powers` (1, 2, 4 … and the cores).
    #[serde(default = "one_thread")]
    pub threads: Vec<String>,
    /// Tickets that the server issues in a handshake of TLS 1.3; in TLS 1.2 it is one in any case.
    #[serde(default = "one_ticket")]
    pub tickets: Vec<u32>,
    /// Who uses a context.
    #[serde(default = "shared")]
    pub contexts: Vec<Contexts>,
    /// What stands under the locks.
    #[serde(default = "pthread")]
    pub locks: Vec<Locks>,
    /// What counts.
    #[serde(default)]
    pub tool: Tool,
    /// Wall time of a measurement in milliseconds; this or `connections`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Connections of a measurement, a thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Measurements a point.
    pub repeat: u32,
}

fn default_library() -> Vec<String> {
    vec!["default".to_owned()]
}
fn same() -> Vec<String> {
    vec!["same".to_owned()]
}
fn memory() -> Vec<Wire> {
    vec![Wire::Memory]
}
fn tls13() -> Vec<Version> {
    vec![Version::Tls13]
}
fn ecdsa() -> Vec<Key> {
    vec![Key::EcdsaP256]
}
fn x25519() -> Vec<Group> {
    vec![Group::X25519]
}
fn aes_128() -> Vec<Cipher> {
    vec![Cipher::Aes128Gcm]
}
fn one_thread() -> Vec<String> {
    vec!["1".to_owned()]
}
fn one_ticket() -> Vec<u32> {
    vec![1]
}
fn shared() -> Vec<Contexts> {
    vec![Contexts::Shared]
}
fn pthread() -> Vec<Locks> {
    vec![Locks::Pthread]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    scale: BTreeMap<String, Scale>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    #[serde(default)]
    budget_s: Option<u64>,
    sweep: Vec<Sweep>,
}

/// Points that differ in library, client, tickets, contexts and locks only: they take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// How long each measurement goes on.
    pub extent: Extent,
    /// Measurements a point.
    pub repeat: u32,
    /// What takes turns, A B A B.
    pub points: Vec<Point>,
}

/// What a plan comes to on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The cells, in order.
    pub cells: Vec<Cell>,
    /// Libraries that the plan names and that cannot be measured, and why.
    pub left_out: BTreeMap<String, String>,
    /// Libraries that would not fit the time, by name.
    pub no_time: BTreeSet<String>,
    /// The client's library where the plan says `reference`.
    pub reference: Option<String>,
}

impl Expanded {
    /// How many measurements it comes to.
    #[must_use]
    pub fn measurements(&self) -> u64 {
        let of = |cell: &Cell| cell.points.len() as u64 * u64::from(cell.repeat);
        self.cells.iter().map(of).sum()
    }

    /// The names of all libraries in it, those that are left out too.
    #[must_use]
    pub fn libraries(&self) -> BTreeSet<String> {
        let points = self.cells.iter().flat_map(|cell| &cell.points);
        let sides = points.flat_map(|point| [point.library.clone(), point.client.clone()]);
        sides.chain(self.left_out.keys().cloned()).chain(self.no_time.iter().cloned()).collect()
    }

    /// How long they take, about.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let of = |cell: &Cell| -> Duration {
            let once: Duration = cell.points.iter().map(|point| point.expected(cell.extent)).sum();
            let before: Duration = cell.points.iter().map(Point::expected_once).sum();
            before + once * cell.repeat
        };
        self.cells.iter().map(of).sum()
    }
}

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Seed of every random draw of the evaluation.
    pub seed: u64,
    /// Time that it may take, about: libraries beyond the default set are left out, then
    /// measurements get shorter, until it fits.
    pub budget_s: Option<u64>,
}

impl Plan {
    /// The plan of a scale that comes with the study: `quick`, `default` or `full`.
    ///
    /// # Errors
    /// [`PlanError::UnknownScale`].
    pub fn built_in(scale: &str) -> Result<Plan, PlanError> {
        Plan::parse(BUILT_IN, scale)
    }

    /// The plan of scale `scale` in the text of a plan file.
    ///
    /// # Errors
    /// If the text is no plan, has no such scale or asks for what cannot be.
    pub fn parse(text: &str, scale: &str) -> Result<Plan, PlanError> {
        let mut file: PlanFile = toml::from_str(text)?;
        let Some(found) = file.scale.remove(scale) else {
            let known = file.scale.into_keys().collect::<Vec<_>>().join(", ");
            return Err(PlanError::UnknownScale { name: scale.to_owned(), known });
        };
        let plan = Plan { sweeps: found.sweep, seed: 1, budget_s: found.budget_s };
        plan.check()?;
        Ok(plan)
    }

    /// A sweep in which everything has its default.
    #[must_use]
    pub fn single_sweep(name: &str) -> Sweep {
        Sweep {
            name: name.to_owned(),
            library: default_library(),
            client: same(),
            workload: vec!["full".to_owned(), "resume".to_owned()],
            wire: memory(),
            version: tls13(),
            key: ecdsa(),
            group: x25519(),
            cipher: aes_128(),
            threads: one_thread(),
            tickets: one_ticket(),
            contexts: shared(),
            locks: pthread(),
            tool: Tool::Host,
            ms: None,
            connections: None,
            repeat: 5,
        }
    }

    /// Every sweep over these libraries in place of its own; the null driver keeps its place.
    pub fn only(&mut self, libraries: &[String]) {
        for sweep in &mut self.sweeps {
            let null = sweep.library.iter().any(|name| name == NULL);
            sweep.library = libraries.to_vec();
            if null {
                sweep.library.push(NULL.to_owned());
            }
        }
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// As [`Plan::parse`].
    pub fn check(&self) -> Result<(), PlanError> {
        if self.sweeps.is_empty() {
            return Err(PlanError::NoSweep);
        }
        let mut names = BTreeSet::new();
        for sweep in &self.sweeps {
            sweep.check()?;
            if !names.insert(&sweep.name) {
                return Err(PlanError::Twice(sweep.name.clone()));
            }
        }
        Ok(())
    }
}

impl Sweep {
    /// How long each measurement goes on: half a second unless it says otherwise.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match (self.ms, self.connections) {
            (None, Some(count)) => Extent::Connections(count),
            (ms, _) => Extent::Milliseconds(ms.unwrap_or(500)),
        }
    }

    fn check(&self) -> Result<(), PlanError> {
        let lists = [
            ("library", self.library.len()),
            ("client", self.client.len()),
            ("workload", self.workload.len()),
            ("wire", self.wire.len()),
            ("version", self.version.len()),
            ("key", self.key.len()),
            ("group", self.group.len()),
            ("cipher", self.cipher.len()),
            ("threads", self.threads.len()),
            ("tickets", self.tickets.len()),
            ("contexts", self.contexts.len()),
            ("locks", self.locks.len()),
        ];
        let sweep = self.name.clone();
        if let Some((list, _)) = lists.into_iter().find(|(_, len)| *len == 0) {
            return Err(PlanError::Empty { sweep, list });
        }
        for workload in &self.workload {
            parse_workload(workload)?;
        }
        for threads in &self.threads {
            expand::threads(threads, 1)?;
        }
        let wrong = match (self.ms, self.connections) {
            (Some(_), Some(_)) => Some("`ms` and `connections` exclude each other".to_owned()),
            (Some(ms), _) if !(10..=MOST_MS).contains(&ms) => {
                Some(format!("ms is {ms}; 10 to {MOST_MS} are possible"))
            }
            (_, Some(count)) if !(1..=MOST_CONNECTIONS).contains(&count) => {
                Some(format!("connections is {count}; 1 to {MOST_CONNECTIONS} are possible"))
            }
            _ if self.tickets.iter().any(|tickets| !(1..=MOST_TICKETS).contains(tickets)) => {
                Some(format!("1 to {MOST_TICKETS} tickets a handshake are possible"))
            }
            _ if !(1..=1000).contains(&self.repeat) => {
                Some(format!("repeat is {}; 1 to 1000 are possible", self.repeat))
            }
            _ => None,
        };
        wrong.map_or(Ok(()), |what| Err(PlanError::OutOfRange { sweep, what }))
    }
}

#[cfg(test)]
mod tests;
