//! What is to be measured: sweeps, and the points and cells that they come to.

use std::collections::BTreeMap;
use std::time::Duration;

use linkmodel::{Middlebox, Path};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls::{Group, KeyType, Library};
use units::{Delay, Probability, Rate};

use crate::mode::{Mode, Security, Transport, UnknownMode};
use crate::point::{Peer, Point, Visit};

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");

/// Most connections that one plan may make: a bound on what a wrong plan file can start.
const MOST_CONNECTIONS: u64 = 1_000_000;
/// Most connections under way at once.
const MOST_CONCURRENT: u32 = 256;

/// A plan that cannot be carried out. The caller's fault.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The file is not a plan.
    #[error("this is not a plan: {0}; hint: see plan.toml of the handshake study for the form")]
    NotAPlan(#[from] toml::de::Error),
    /// No such scale.
    #[error("no scale is called `{name}`; there are: {known}")]
    UnknownScale {
        /// The name as given.
        name: String,
        /// The names that the plan has.
        known: String,
    },
    /// The path makes no sense.
    #[error("the path: {0}")]
    Path(#[from] linkmodel::ConfigError),
    /// No such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
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
    /// Nothing that can be measured is left.
    #[error("the plan measures nothing: every combination in it is impossible ({0})")]
    NothingLeft(String),
}

/// Every combination of the lists, each measured `repeat` times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name, unique in the plan.
    pub name: String,
    /// Modes by name, or `all`.
    pub mode: Vec<String>,
    /// Round-trip times, propagation only.
    pub rtt: Vec<Delay>,
    /// Probability that a frame is lost, each way.
    #[serde(default = "no_loss")]
    pub loss: Vec<Probability>,
    /// Keys of the server's certificates.
    #[serde(default = "default_key")]
    pub key: Vec<KeyType>,
    /// Key exchange groups (ECDHE and TLS 1.3).
    #[serde(default = "default_group")]
    pub group: Vec<Group>,
    /// TLS library on both sides.
    #[serde(default = "default_library")]
    pub library: Vec<Library>,
    /// Certificates that the server sends.
    #[serde(default = "default_chain")]
    pub chain: Vec<usize>,
    /// Middleboxes on the way that do not bear data on a SYN.
    #[serde(default = "no_middlebox", skip_serializing_if = "is_no_middlebox")]
    pub middlebox: Vec<Middlebox>,
    /// What the server is.
    #[serde(default = "same_peer", skip_serializing_if = "is_same_peer")]
    pub peer: Vec<Peer>,
    /// Whether the client has met the path before.
    #[serde(default = "first_visit", skip_serializing_if = "is_first_visit")]
    pub visit: Vec<Visit>,
    /// Connections a point.
    pub repeat: u32,
    /// Connections under way at once; above 1, CPU times are not comparable with those at 1.
    #[serde(default = "one")]
    pub concurrent: u32,
}

fn no_loss() -> Vec<Probability> {
    vec![Probability::ZERO]
}
fn default_key() -> Vec<KeyType> {
    vec![KeyType::Rsa2048]
}
fn default_group() -> Vec<Group> {
    vec![Group::X25519]
}
fn default_library() -> Vec<Library> {
    vec![Library::OpenSsl]
}
fn default_chain() -> Vec<usize> {
    vec![1]
}
fn no_middlebox() -> Vec<Middlebox> {
    vec![Middlebox::None]
}
fn same_peer() -> Vec<Peer> {
    vec![Peer::Same]
}
fn first_visit() -> Vec<Visit> {
    vec![Visit::First]
}
fn one() -> u32 {
    1
}

// A sweep without these axes is written as before there were any.
fn is_no_middlebox(list: &[Middlebox]) -> bool {
    list == [Middlebox::None]
}
fn is_same_peer(list: &[Peer]) -> bool {
    list == [Peer::Same]
}
fn is_first_visit(list: &[Visit]) -> bool {
    list == [Visit::First]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    scale: BTreeMap<String, Scale>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    sweep: Vec<Sweep>,
}

/// Points that share a path: they take turns on it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Round-trip time.
    pub rtt: Delay,
    /// Loss each way.
    pub loss: Probability,
    /// The middlebox on the way.
    pub middlebox: Middlebox,
    /// Connections a point.
    pub repeat: u32,
    /// Connections under way at once.
    pub concurrent: u32,
    /// What takes turns.
    pub points: Vec<Point>,
}

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Seed of every random draw.
    pub seed: u64,
    /// After how long an attempt is given up, and kept as a censored sample.
    pub timeout: Delay,
    /// Rate of the path both ways; unlimited without.
    pub rate: Option<Rate>,
    /// What the path does besides RTT, loss and rate: jitter, queue, traces, outages. Its delays
    /// give way to the cells' RTTs, its loss and rate to those given.
    pub base: Option<Path>,
    /// The options that gave the base, for the command that measures a point again:
    /// `--profile lte`.
    pub base_options: String,
}

impl Plan {
    /// The plan of a scale that comes with the study: `quick` or `full`.
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
        Plan::new(found.sweep)
    }

    /// A plan of these sweeps, with the default seed and timeout.
    ///
    /// # Errors
    /// If a sweep asks for what cannot be.
    pub fn new(sweeps: Vec<Sweep>) -> Result<Plan, PlanError> {
        let timeout = Delay::from(Duration::from_secs(60));
        let plan =
            Plan { sweeps, seed: 1, timeout, rate: None, base: None, base_options: String::new() };
        plan.check()?;
        Ok(plan)
    }

    /// A plan with a single sweep over everything given; what is not given has its default.
    #[must_use]
    pub fn single_sweep(name: &str) -> Sweep {
        let millis = [0.4, 11.6, 20.0, 50.0, 85.5, 200.0];
        Sweep {
            name: name.to_owned(),
            mode: vec!["all".to_owned()],
            rtt: millis.map(|ms| Delay::from(Duration::from_secs_f64(ms / 1e3))).to_vec(),
            loss: no_loss(),
            key: default_key(),
            group: default_group(),
            library: default_library(),
            chain: default_chain(),
            middlebox: no_middlebox(),
            peer: same_peer(),
            visit: first_visit(),
            repeat: 10,
            concurrent: one(),
        }
    }

    /// What a command needs beside a point to measure it again: the rate and what gave the base.
    pub(crate) fn options(&self) -> String {
        let rate = self.rate.map(|rate| format!(" --rate {rate}")).unwrap_or_default();
        match self.base_options.as_str() {
            "" => rate,
            base => format!("{rate} {base}"),
        }
    }

    /// Whether it can be carried out: for a plan that was not made by [`Plan::new`].
    ///
    /// # Errors
    /// As [`Plan::new`], and if its path makes no sense.
    pub fn check(&self) -> Result<(), PlanError> {
        if let Some(base) = &self.base {
            base.validate()?;
        }
        let mut connections = 0u64;
        for sweep in &self.sweeps {
            check_lists(sweep)?;
            check_numbers(sweep)?;
            connections += points_of(sweep)?.len() as u64 * u64::from(sweep.repeat);
            if connections > MOST_CONNECTIONS {
                let what = format!("more than {MOST_CONNECTIONS} connections in all");
                return Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what });
            }
        }
        let (cells, impossible) = self.cells()?;
        if cells.is_empty() {
            let reason = impossible.first().map_or("no sweep", |(_, reason)| *reason);
            return Err(PlanError::NothingLeft(reason.to_owned()));
        }
        Ok(())
    }

    /// The cells in the order to measure them, and the points left out with the reason.
    ///
    /// # Errors
    /// If a mode's name is unknown.
    #[allow(clippy::type_complexity)]
    pub fn cells(&self) -> Result<(Vec<Cell>, Vec<(Point, &'static str)>), PlanError> {
        let (mut cells, mut impossible) = (Vec::<Cell>::new(), Vec::new());
        for sweep in &self.sweeps {
            let Sweep { repeat, concurrent, .. } = *sweep;
            let first = cells.len();
            for point in points_of(sweep)? {
                if let Some(reason) = point.impossible() {
                    impossible.push((point, reason));
                    continue;
                }
                let (rtt, loss, middlebox) = (point.rtt, point.loss, point.middlebox);
                let path = |c: &Cell| (c.rtt, c.loss, c.middlebox) == (rtt, loss, middlebox);
                match cells[first..].iter().position(path) {
                    Some(at) => cells[first + at].points.push(point),
                    None => {
                        let points = vec![point];
                        cells.push(Cell { rtt, loss, middlebox, repeat, concurrent, points });
                    }
                }
            }
        }
        Ok((cells, impossible))
    }

    /// The path of a cell: the base's, with the cell's RTT, loss and middlebox and the plan's rate.
    #[must_use]
    pub fn path(&self, cell: &Cell) -> Path {
        let mut path = self.base.clone().unwrap_or_default();
        let (there, back) = cell.rtt.split_round_trip();
        path.forward.delay = there;
        path.backward.delay = back;
        for direction in [&mut path.forward, &mut path.backward] {
            if self.base.is_none() || !cell.loss.is_zero() {
                direction.loss = cell.loss.into();
            }
            if self.base.is_none() || cell.middlebox != Middlebox::None {
                direction.middlebox = cell.middlebox;
            }
            if let Some(rate) = self.rate {
                direction.rate = Some(linkmodel::RateSource::Fixed(rate));
            }
        }
        path
    }
}

fn check_lists(sweep: &Sweep) -> Result<(), PlanError> {
    let lists = [
        ("mode", sweep.mode.is_empty()),
        ("rtt", sweep.rtt.is_empty()),
        ("loss", sweep.loss.is_empty()),
        ("key", sweep.key.is_empty()),
        ("group", sweep.group.is_empty()),
        ("library", sweep.library.is_empty()),
        ("chain", sweep.chain.is_empty()),
        ("middlebox", sweep.middlebox.is_empty()),
        ("peer", sweep.peer.is_empty()),
        ("visit", sweep.visit.is_empty()),
    ];
    match lists.iter().find(|(_, empty)| *empty) {
        Some((list, _)) => Err(PlanError::Empty { sweep: sweep.name.clone(), list }),
        None => Ok(()),
    }
}

fn check_numbers(sweep: &Sweep) -> Result<(), PlanError> {
    let wrong = |what: String| Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what });
    if sweep.repeat == 0 {
        return wrong("repeat is 0; at least 1 is needed".to_owned());
    }
    if !(1..=MOST_CONCURRENT).contains(&sweep.concurrent) {
        return wrong(format!("concurrent is {}; 1 to {MOST_CONCURRENT} work", sweep.concurrent));
    }
    if let Some(chain) = sweep.chain.iter().find(|chain| !(1..=9).contains(*chain)) {
        return wrong(format!("chain is {chain}; 1 to 9 certificates work"));
    }
    let longest = Duration::from_secs(10);
    if let Some(rtt) = sweep.rtt.iter().find(|rtt| rtt.duration() > longest) {
        return wrong(format!("rtt is {rtt}; at most 10s works"));
    }
    if let Some(loss) = sweep.loss.iter().find(|loss| loss.value() > 0.5) {
        return wrong(format!("loss is {loss}; at most 50% works"));
    }
    Ok(())
}

/// Every combination of a sweep's lists, each once.
fn points_of(sweep: &Sweep) -> Result<Vec<Point>, PlanError> {
    let mut modes = Vec::new();
    for name in &sweep.mode {
        match name.as_str() {
            "all" => modes.extend(Mode::all()),
            _ => modes.push(name.parse()?),
        }
    }
    let mut points = Vec::<Point>::new();
    for path in paths_of(sweep) {
        for &mode in &modes {
            for variant in variants_of(sweep, &path) {
                let point = Point { mode, ..variant }.canonical();
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
    }
    Ok(points)
}

/// Every path of a sweep: RTT, loss, middlebox.
fn paths_of(sweep: &Sweep) -> Vec<(Delay, Probability, Middlebox)> {
    let mut paths = Vec::new();
    for &rtt in &sweep.rtt {
        for &loss in &sweep.loss {
            paths.extend(sweep.middlebox.iter().map(|&middlebox| (rtt, loss, middlebox)));
        }
    }
    paths
}

/// Every combination of what is not the path or the mode.
fn variants_of(sweep: &Sweep, path: &(Delay, Probability, Middlebox)) -> Vec<Point> {
    let &(rtt, loss, middlebox) = path;
    let mut variants = vec![Point {
        sweep: sweep.name.clone(),
        mode: Mode { transport: Transport::Tcp, security: Security::Plain },
        rtt,
        loss,
        key: KeyType::Rsa2048,
        group: Group::X25519,
        library: Library::OpenSsl,
        chain: 1,
        middlebox,
        peer: Peer::Same,
        visit: Visit::First,
    }];
    variants = crossed(variants, &sweep.key, |point, key| point.key = key);
    variants = crossed(variants, &sweep.group, |point, group| point.group = group);
    variants = crossed(variants, &sweep.library, |point, library| point.library = library);
    variants = crossed(variants, &sweep.chain, |point, chain| point.chain = chain);
    variants = crossed(variants, &sweep.peer, |point, peer| point.peer = peer);
    crossed(variants, &sweep.visit, |point, visit| point.visit = visit)
}

/// Each of these points with each of these values.
fn crossed<T: Copy>(points: Vec<Point>, values: &[T], set: impl Fn(&mut Point, T)) -> Vec<Point> {
    let each = |point: Point| {
        let set = &set;
        values.iter().map(move |value| {
            let mut point = point.clone();
            set(&mut point, *value);
            point
        })
    };
    points.into_iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests;
