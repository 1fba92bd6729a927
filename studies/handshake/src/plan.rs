//! What is to be measured: sweeps, and the points and cells that they come to.

use std::collections::BTreeMap;
use std::time::Duration;

use linkmodel::Path;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls::{Group, KeyType, Library};
use units::{Delay, Probability, Rate};

use crate::mode::{Mode, Security, Transport, UnknownMode};

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
fn one() -> u32 {
    1
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

/// Where a connection is measured: one combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// How the connection is set up.
    pub mode: Mode,
    /// Round-trip time, propagation only.
    pub rtt: Delay,
    /// Loss each way.
    pub loss: Probability,
    /// Key of the server's certificates.
    pub key: KeyType,
    /// Key exchange group.
    pub group: Group,
    /// TLS library on both sides.
    pub library: Library,
    /// Certificates sent.
    pub chain: usize,
}

impl Point {
    /// The point as the axes of a sample.
    #[must_use]
    pub fn axes(&self) -> BTreeMap<String, String> {
        [
            ("sweep", self.sweep.clone()),
            ("mode", self.mode.to_string()),
            ("rtt", self.rtt.to_string()),
            ("loss", self.loss.to_string()),
            ("key", self.key.to_string()),
            ("group", self.group.to_string()),
            ("library", self.library.to_string()),
            ("chain", self.chain.to_string()),
        ]
        .into_iter()
        .map(|(axis, value)| (axis.to_owned(), value))
        .collect()
    }

    /// The command that measures this point again.
    #[must_use]
    pub fn command(&self, seed: u64, repeat: u32) -> String {
        let Point { mode, rtt, loss, key, group, library, chain, .. } = self;
        format!(
            "wiretax handshake --mode {mode} --rtt {rtt} --loss {loss} --key {key} --group {group} \
             --library {library} --chain {chain} --repeat {repeat} --seed {seed}"
        )
    }

    /// Why no library can do this, if none can.
    #[must_use]
    pub fn impossible(&self) -> Option<&'static str> {
        let rsa_exchange = self.mode.security == Security::Tls12Rsa;
        let tls12 =
            rsa_exchange || matches!(self.mode.security, Security::Tls12 | Security::Tls12Resumed);
        if rsa_exchange && self.library == Library::Rustls {
            Some("rustls has no RSA key exchange")
        } else if rsa_exchange && self.key == KeyType::EcdsaP256 {
            Some("RSA key exchange needs an RSA certificate")
        } else if tls12 && self.group == Group::X25519MlKem768 {
            Some("X25519MLKEM768 exists in TLS 1.3 only")
        } else {
            None
        }
    }
}

/// Points that share a path: they take turns on it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Round-trip time.
    pub rtt: Delay,
    /// Loss each way.
    pub loss: Probability,
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
                let (rtt, loss) = (point.rtt, point.loss);
                let same = cells[first..].iter().position(|c| c.rtt == rtt && c.loss == loss);
                match same {
                    Some(at) => cells[first + at].points.push(point),
                    None => cells.push(Cell { rtt, loss, repeat, concurrent, points: vec![point] }),
                }
            }
        }
        Ok((cells, impossible))
    }

    /// The path of a cell: the base's, with the cell's RTT and loss and the plan's rate.
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
    for &rtt in &sweep.rtt {
        for &loss in &sweep.loss {
            for &mode in &modes {
                for variant in variants_of(sweep) {
                    let point = Point { mode, rtt, loss, ..variant }.canonical();
                    if !points.contains(&point) {
                        points.push(point);
                    }
                }
            }
        }
    }
    Ok(points)
}

fn variants_of(sweep: &Sweep) -> Vec<Point> {
    let mut variants = Vec::new();
    for &key in &sweep.key {
        for &group in &sweep.group {
            for &library in &sweep.library {
                for &chain in &sweep.chain {
                    variants.push(Point {
                        sweep: sweep.name.clone(),
                        mode: Mode { transport: Transport::Tcp, security: Security::Plain },
                        rtt: Delay::ZERO,
                        loss: Probability::ZERO,
                        key,
                        group,
                        library,
                        chain,
                    });
                }
            }
        }
    }
    variants
}

impl Point {
    /// QUIC is rustls' whatever the sweep says: the point says what is measured.
    fn canonical(mut self) -> Point {
        if self.mode.transport == Transport::Quic {
            self.library = Library::Rustls;
        }
        self
    }
}

#[cfg(test)]
mod tests;
