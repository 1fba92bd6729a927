//! The study's part of the report: the answer, the evidence, the tables for a terminal.

mod advice;
mod claims;
mod client;
mod cost;
mod counterparts;
mod documented;
mod functions;
mod locks;
mod machines;
mod markdown;
mod notes;
mod points;
mod profile;
mod rates;
mod rest;
mod runtimes;
mod scale;
mod sessions;
mod slices;

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Cell, Inline, KeyFigure, Section, Table};
use serde::Serialize;
use serde_json::{Value, json};
use stats::Estimate;
use study::{Counterpart, Subject};
use tls_drivers::{Locks, Workload};

use crate::advice::{Change, MODERN};
use crate::contention::{Contention, Counts};
use crate::machines::Need;
use crate::sample::value;
use crate::summary::{Summary, Want};

/// HAProxy 2025's yardstick.
const YARDSTICK: &str = "openssl-1.1.1w";

/// What the samples say, and what it means for a load.
pub struct Findings {
    /// What the samples say.
    pub summary: Summary,
    /// New connections per second that are to be served.
    pub load: f64,
    /// What changes would save.
    pub changes: Vec<Change>,
    seed: u64,
    /// Where the results come from, in words.
    provenance: String,
}

/// What the counts of one library's locks suggest.
#[derive(Debug, Clone, Serialize)]
pub struct LibraryContention {
    /// Its driver's name.
    pub library: String,
    /// `full` or `resume`.
    pub workload: String,
    /// What was counted, per handshake on the server's side.
    pub counts: Counts,
    /// The estimate of contention on this machine: no bound.
    pub estimate: Contention,
    /// Connections per second that HAProxy 2025 measured of its nearest version in HAProxy, with 64 threads
    /// and full handshakes.
    pub published_per_s: Option<f64>,
}

fn machines_of(cpu_us: f64, load: f64, cores: u32) -> Need {
    crate::machines::need(cpu_us, load, cores, None)
}

/// The load that machines are reckoned for by default: HAProxy 2025's 64-core server.
pub const LOAD: f64 = 100_000.0;

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "Which TLS library to build on".to_owned(),
            question:
                "Which TLS library should I build on, and what do its locks cost when threads \
                       share it?"
                    .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        advice::answer(self)
    }

    fn rankings(&self) -> Vec<(String, stats::claims::Ranking)> {
        advice::rankings(self)
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        advice::key_figures(self)
    }

    fn cautions(&self) -> Vec<Caution> {
        notes::cautions(self)
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let sections = [
            rates::section(self)?,
            cost::section(self)?,
            cost::over_loopback(self),
            client::section(self),
            advice::section(self),
            locks::section(self),
            sessions::section(self),
            scale::section(self)?,
            machines::section(self),
            functions::section(self),
            rest::instructions(self),
            profile::section(self),
            rest::bulk(self),
            rest::memory(self),
            notes::section(self),
        ];
        Ok(sections.into_iter().flatten().collect())
    }

    fn tables(&self) -> Vec<Table> {
        let first = [
            cost::summary(self),
            cost::told_apart(self),
            cost::loopback_summary(self),
            rates::summary(self),
            locks::summary(self),
            scale::summary(self),
            machines::summary(self),
        ];
        let last = [
            functions::table(self).map(|(table, _)| table),
            documented::table(self),
            advice::summary(self),
        ];
        let others = points::others(self);
        let ours = client::summary(self).into_iter().chain(profile::summary(self));
        let others = ours.chain(sessions::tables(self)).chain(others);
        first.into_iter().flatten().chain(others).chain(last.into_iter().flatten()).collect()
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        counterparts::all(self)
    }

    fn json(&self) -> Result<Value, Problem> {
        let mut summary = serde_json::to_value(&self.summary).blame(Fault::Results)?;
        summary["changes"] = json!(self.changes);
        summary["contention"] = json!(self.contention());
        summary["needs"] = json!(self.needs());
        Ok(json!({ "stacks": summary }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        // Both need what was counted beside the times: results of one question alone have their own text.
        let is_full = |cell: &crate::summary::Cell| cell.point.workload == Workload::Full;
        let whole = self.summary.all(Want::TIMED).any(is_full) && self.has_counted_locks();
        let texts = [
            ("stacks", whole.then(|| markdown::markdown(self))),
            ("stacks-claims", whole.then(|| claims::markdown(self))),
            ("stacks-light-claims", claims::light_markdown(self)),
            ("stacks-client-claims", claims::client_markdown(self)),
            ("stacks-profile", profile::markdown(self)),
            ("stacks-sessions", sessions::markdown(self)),
            ("stacks-profile-claims", claims::profile_markdown(self)),
        ];
        Ok(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect())
    }

    fn empty(&self) -> Option<Problem> {
        self.summary.is_empty().then(crate::frame::nothing_measured)
    }
}

impl Findings {
    /// What `summary` says to someone who has `load` new connections per second to serve.
    #[must_use]
    pub fn new(summary: Summary, load: f64, seed: u64) -> Self {
        let changes = crate::advice::changes(&summary, seed);
        Findings { summary, load, changes, seed, provenance: String::new() }
    }

    /// The same with where the results come from, for Markdown.
    #[must_use]
    pub fn measured(self, provenance: String) -> Self {
        Findings { provenance, ..self }
    }

    fn has_counted_locks(&self) -> bool {
        self.summary.cells.iter().any(|cell| cell.point.locks == Locks::Count)
    }

    /// What counts suggest of each library's server (see [`crate::contention()`]), of the modern suite.
    #[must_use]
    pub fn contention(&self) -> Vec<LibraryContention> {
        let Some(contended) = self.summary.machine.as_ref().and_then(|machine| machine.contended)
        else {
            return Vec::new();
        };
        let names = self.summary.measured().into_iter();
        let of = |name| {
            [Workload::Full, Workload::Resume].into_iter().filter_map(move |workload| {
                let (counts, estimate) =
                    scale::contention_of(&self.summary, name, workload, MODERN, contended)?;
                let full = workload == Workload::Full;
                Some(LibraryContention {
                    library: name.to_owned(),
                    workload: workload.to_string(),
                    counts,
                    estimate,
                    published_per_s: full.then(|| counterparts::published_full(name)).flatten(),
                })
            })
        };
        names.flat_map(of).collect()
    }

    /// What the load takes of each library's server, full handshakes of the main suite.
    #[must_use]
    pub fn needs(&self) -> Vec<(String, Need)> {
        let suite = cost::suites(&self.summary).first().copied().unwrap_or(MODERN);
        let cores = self.summary.machine.as_ref().map_or(1, |machine| machine.cores);
        let of = |name: &str| {
            let cell = self.summary.find(Want::handshake(Workload::Full, suite).of(name))?;
            let cpu = cell.median(value::SERVER_CPU)?.value;
            Some((name.to_owned(), machines_of(cpu, self.load, cores)))
        };
        self.summary.measured().into_iter().filter_map(of).collect()
    }

    /// The library that ratios are to: HAProxy 2025's yardstick where it was measured.
    fn yardstick(&self) -> Option<&str> {
        let names = self.summary.measured();
        names.iter().find(|name| **name == YARDSTICK).or(names.first()).copied()
    }
}

/// An estimate in a table's cell.
fn estimate(estimate: Option<Estimate>, decimals: usize) -> Cell {
    estimate.map_or(Cell::Empty, |it| Cell::estimate(it.value, it.low, it.high, decimals))
}

/// A rate in thousands, or as it is.
fn rate_text(rate: f64) -> String {
    if rate >= 10_000.0 { format!("{:.0} thousand", rate / 1e3) } else { format!("{rate:.0}") }
}

/// A suite for people: `TLS 1.3, ECDSA P-256, X25519`.
fn suite_text(suite: tls_drivers::Suite) -> String {
    format!("{}, {}", handshake_text(suite), group_text(suite.group))
}

/// The same without the group.
fn handshake_text(suite: tls_drivers::Suite) -> String {
    let version = match suite.version {
        tls_drivers::Version::Tls12 => "TLS 1.2",
        tls_drivers::Version::Tls13 => "TLS 1.3",
    };
    let key = match suite.key {
        tls_drivers::Key::Rsa2048 => "RSA-2048",
        tls_drivers::Key::Rsa4096 => "RSA-4096",
        tls_drivers::Key::EcdsaP256 => "ECDSA P-256",
    };
    format!("{version}, {key}")
}

fn group_text(group: tls_drivers::Group) -> &'static str {
    match group {
        tls_drivers::Group::X25519 => "X25519",
        tls_drivers::Group::Secp256r1 => "P-256",
        tls_drivers::Group::X25519MlKem768 => "X25519MLKEM768",
    }
}

/// A workload for people.
fn workload_text(workload: tls_drivers::Workload) -> String {
    match workload {
        tls_drivers::Workload::Full => "full handshakes".to_owned(),
        tls_drivers::Workload::Resume => "resumed handshakes".to_owned(),
        tls_drivers::Workload::Chain { proxies } => format!("chain of {proxies} proxies, resumed"),
        tls_drivers::Workload::Bulk { record } => format!("records of {record} bytes"),
        tls_drivers::Workload::Footprint { connections } => {
            format!("{connections} connections held")
        }
    }
}
