//! One combination of what is varied: where a library is measured.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls_drivers::{Contexts, Extent, Key, Locks, Suite, Wire, Workload};

use crate::programs;

/// A word that names none of what it should. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no {axis} is called `{name}`; there are: {known}")]
pub struct UnknownValue {
    pub(crate) axis: &'static str,
    pub(crate) name: String,
    pub(crate) known: &'static str,
}

/// What counts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// The host process: clocks, and locks where they are asked for.
    #[default]
    Host,
    /// The host process under callgrind: instructions and atomic operations.
    Callgrind,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Tool::Host => "host",
            Tool::Callgrind => "callgrind",
        })
    }
}

impl FromStr for Tool {
    type Err = UnknownValue;

    fn from_str(name: &str) -> Result<Tool, UnknownValue> {
        match name {
            "host" => Ok(Tool::Host),
            "callgrind" => Ok(Tool::Callgrind),
            _ => {
                Err(UnknownValue { axis: "tool", name: name.to_owned(), known: "host, callgrind" })
            }
        }
    }
}

/// Proxies of a chain, as the document has them.
const PROXIES: usize = 10;
/// Bytes of a full record (RFC 8446 §5.1).
const RECORD: usize = 16_384;
/// Connections held at once for their memory.
const CONNECTIONS: usize = 200;

/// A workload's name as people write it: `full`, `chain:10`.
#[must_use]
pub fn workload_name(workload: Workload) -> String {
    match workload {
        Workload::Full => "full".to_owned(),
        Workload::Resume => "resume".to_owned(),
        Workload::Chain { proxies } => format!("chain:{proxies}"),
        Workload::Bulk { record } => format!("bulk:{record}"),
        Workload::Footprint { connections } => format!("footprint:{connections}"),
    }
}

/// Reads a workload: `full`, `resume`, `chain[:PROXIES]`, `bulk[:RECORD BYTES]` or
/// `footprint[:CONNECTIONS]`.
///
/// # Errors
/// [`UnknownValue`] with what there is.
pub fn parse_workload(text: &str) -> Result<Workload, UnknownValue> {
    let known = "full, resume, chain[:PROXIES up to 64], bulk[:BYTES up to 16384], \
                 footprint[:CONNECTIONS up to 100000]";
    let unknown = || UnknownValue { axis: "workload", name: text.to_owned(), known };
    let (name, number) = match text.split_once(':') {
        None => (text, None),
        Some((name, number)) => (name, Some(number.parse::<usize>().map_err(|_| unknown())?)),
    };
    let within = |default: usize, most: usize| {
        let number = number.unwrap_or(default);
        (1..=most).contains(&number).then_some(number).ok_or_else(unknown)
    };
    match (name, number) {
        ("full", None) => Ok(Workload::Full),
        ("resume", None) => Ok(Workload::Resume),
        ("chain", _) => Ok(Workload::Chain { proxies: within(PROXIES, 64)? }),
        ("bulk", _) => Ok(Workload::Bulk { record: within(RECORD, RECORD)? }),
        ("footprint", _) => Ok(Workload::Footprint { connections: within(CONNECTIONS, 100_000)? }),
        _ => Err(unknown()),
    }
}

/// Where a library is measured: one combination of a sweep's lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// The server's library.
    pub library: String,
    /// The client's library.
    pub client: String,
    /// What is done.
    pub workload: Workload,
    /// How the bytes go.
    pub wire: Wire,
    /// What is pinned.
    pub suite: Suite,
    /// Threads.
    pub threads: usize,
    /// Tickets that the server issues in a handshake of TLS 1.3.
    pub tickets: u32,
    /// Who uses a context.
    pub contexts: Contexts,
    /// What stands under the locks.
    pub locks: Locks,
    /// What counts.
    pub tool: Tool,
}

impl Point {
    /// The point as the axes of a sample.
    #[must_use]
    pub fn axes(&self) -> BTreeMap<String, String> {
        let Suite { version, key, group, cipher } = self.suite;
        [
            ("sweep", self.sweep.clone()),
            ("library", self.library.clone()),
            ("client", self.client.clone()),
            ("workload", workload_name(self.workload)),
            ("wire", self.wire.to_string()),
            ("version", version.to_string()),
            ("key", key.to_string()),
            ("group", group.to_string()),
            ("cipher", cipher.to_string()),
            ("threads", self.threads.to_string()),
            ("tickets", self.tickets.to_string()),
            ("contexts", self.contexts.to_string()),
            ("locks", self.locks.to_string()),
            ("tool", self.tool.to_string()),
        ]
        .into_iter()
        .map(|(axis, value)| (axis.to_owned(), value))
        .collect()
    }

    /// The point that a sample's axes name; `None` for axes that are not this study's.
    #[must_use]
    pub fn of_axes(axes: &BTreeMap<String, String>) -> Option<Point> {
        let text = |axis: &str| axes.get(axis).cloned();
        fn parsed<T: FromStr>(axes: &BTreeMap<String, String>, axis: &str) -> Option<T> {
            axes.get(axis)?.parse().ok()
        }
        Some(Point {
            sweep: text("sweep")?,
            library: text("library")?,
            client: text("client")?,
            workload: parse_workload(axes.get("workload")?).ok()?,
            wire: parsed(axes, "wire")?,
            suite: Suite {
                version: parsed(axes, "version")?,
                key: parsed(axes, "key")?,
                group: parsed(axes, "group")?,
                cipher: parsed(axes, "cipher")?,
            },
            threads: parsed(axes, "threads")?,
            tickets: parsed(axes, "tickets")?,
            contexts: parsed(axes, "contexts")?,
            locks: parsed(axes, "locks")?,
            tool: parsed(axes, "tool")?,
        })
    }

    /// The command that measures this point again.
    #[must_use]
    pub fn command(&self, extent: Extent, repeat: u32) -> String {
        let Suite { version, key, group, cipher } = self.suite;
        let mut line = format!(
            "wiretax stacks --libraries {} --client {} --workload {} --wire {} --version {version} \
             --key {key} --group {group} --cipher {cipher} --threads {} --contexts {} --locks {}",
            self.library,
            self.client,
            workload_name(self.workload),
            self.wire,
            self.threads,
            self.contexts,
            self.locks,
        );
        if self.tickets != 1 {
            line.push_str(&format!(" --tickets {}", self.tickets));
        }
        if self.tool == Tool::Callgrind {
            line.push_str(" --tool callgrind");
        }
        match extent {
            Extent::Milliseconds(ms) => line.push_str(&format!(" --ms {ms}")),
            Extent::Connections(count) => line.push_str(&format!(" --connections {count}")),
        }
        format!("{line} --repeat {repeat}")
    }

    /// A short name for people: what is done, on what.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}: {} {}", self.library, workload_name(self.workload), self.suite)
    }

    /// How long a measurement takes, about: for progress, and for what a plan comes to.
    #[must_use]
    pub fn expected(&self, extent: Extent) -> Duration {
        let (start, slower) = match (self.tool, self.locks) {
            (Tool::Callgrind, _) => (CALLGRIND_START, 60.0),
            (Tool::Host, Locks::Count) => (START, 2.0),
            (Tool::Host, _) => (START, 1.0),
        };
        let run = match (extent, self.workload) {
            (_, Workload::Footprint { connections }) => {
                self.one_connection() * u32::try_from(connections).unwrap_or(u32::MAX)
            }
            (Extent::Milliseconds(ms), _) => Duration::from_millis(ms).mul_f64(WARMED),
            (Extent::Connections(count), Workload::Bulk { .. }) => {
                Duration::from_micros(30) * u32::try_from(count).unwrap_or(u32::MAX)
            }
            (Extent::Connections(count), _) => {
                self.one_connection() * u32::try_from(count).unwrap_or(u32::MAX)
            }
        };
        let warming = if self.is_kept() { Duration::ZERO } else { self.warming() };
        start + warming + run.mul_f64(slower)
    }

    /// What is before the first measurement of this point, about, beside what each takes.
    #[must_use]
    pub(crate) fn expected_once(&self) -> Duration {
        if self.is_kept() { self.warming() } else { Duration::ZERO }
    }

    fn warming(&self) -> Duration {
        self.runtimes().map(programs::Runtime::start).max().unwrap_or_default()
    }

    /// Whether its server serves all repeats.
    pub(crate) fn is_kept(&self) -> bool {
        programs::keeps(&self.library, &self.client)
    }

    /// The runtimes of either side.
    fn runtimes(&self) -> impl Iterator<Item = &'static programs::Runtime> {
        [&self.library, &self.client].into_iter().filter_map(|name| programs::runtime(name))
    }

    /// Connections before the measured time that a runtime on either side wants.
    #[must_use]
    pub(crate) fn warm_up(&self) -> Option<u32> {
        self.runtimes().map(|runtime| runtime.warm_up).max()
    }

    /// Both sides of one connection, about, by the slower libraries.
    fn one_connection(&self) -> Duration {
        let signature = match (self.workload, self.suite.key) {
            (Workload::Resume | Workload::Chain { .. }, _) => 0,
            (_, Key::Rsa2048) => 900,
            (_, Key::Rsa4096) => 5_500,
            (_, Key::EcdsaP256) => 200,
        };
        let hops = match self.workload {
            Workload::Chain { proxies } => u32::try_from(proxies).unwrap_or(u32::MAX),
            _ => 1,
        };
        Duration::from_micros(500 + signature) * hops
    }
}

/// A process that starts, loads the libraries and ends.
const START: Duration = Duration::from_millis(60);
/// The same under callgrind.
const CALLGRIND_START: Duration = Duration::from_millis(6_000);
/// A tenth of the time goes before, for warming up.
const WARMED: f64 = 1.1;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tls_drivers::{Cipher, Group, Version};

    pub(crate) fn point(library: &str) -> Point {
        Point {
            sweep: "cost".to_owned(),
            library: library.to_owned(),
            client: library.to_owned(),
            workload: Workload::Full,
            wire: Wire::Memory,
            suite: Suite {
                version: Version::Tls13,
                key: Key::EcdsaP256,
                group: Group::X25519,
                cipher: Cipher::Aes128Gcm,
            },
            threads: 1,
            tickets: 1,
            contexts: Contexts::Shared,
            locks: Locks::Pthread,
            tool: Tool::Host,
        }
    }

    #[test]
    fn axes_name_the_point_and_nothing_else_does() {
        let mut one = point("openssl-3.5.5");
        assert_eq!(Point::of_axes(&one.axes()), Some(one.clone()));
        one.workload = Workload::Chain { proxies: 3 };
        one.tool = Tool::Callgrind;
        one.tickets = 2;
        assert_eq!(Point::of_axes(&one.axes()), Some(one.clone()));
        let mut axes = one.axes();
        axes.remove("threads");
        assert_eq!(Point::of_axes(&axes), None);
    }

    #[test]
    fn workloads_are_read_as_they_are_written() {
        for name in ["full", "resume", "chain:3", "bulk:1350", "footprint:50"] {
            assert_eq!(workload_name(parse_workload(name).unwrap()), name);
        }
        assert_eq!(parse_workload("chain").unwrap(), Workload::Chain { proxies: 10 });
        for wrong in ["half", "full:1", "chain:0", "bulk:16385", "chain:x", ""] {
            let error = parse_workload(wrong).unwrap_err().to_string();
            assert!(error.contains("footprint[:CONNECTIONS"), "{error}");
        }
    }

    #[test]
    fn a_command_holds_every_axis() {
        let line = point("openssl-3.5.5").command(Extent::Milliseconds(200), 3);
        for part in ["--libraries openssl-3.5.5", "--version tls1.3", "--ms 200 --repeat 3"] {
            assert!(line.contains(part), "{line}");
        }
    }
}
