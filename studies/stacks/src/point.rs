//! One combination of what is varied: where a library is measured.

use std::collections::BTreeMap;
use std::time::Duration;

use study::{Axes, axis};
use tls_drivers::{
    Cipher, Contexts, Extent, Group, Key, Locks, Sessions, Suite, Version, Wire, Workload,
};

use crate::programs;
use crate::roster::NULL;

units::named! {
    /// What counts and times.
    #[derive(Default)]
    pub enum Tool: "tool" {
        /// The host process: clocks, and locks where they are asked for.
        #[default]
        Host = "host",
        /// The host process under callgrind: instructions and atomic operations.
        Callgrind = "callgrind",
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
    /// What is between the two sides.
    pub wire: Wire,
    /// What is pinned.
    pub suite: Suite,
    /// How many threads work at once.
    pub threads: usize,
    /// Tickets that the server issues in a handshake of TLS 1.3.
    pub tickets: u32,
    /// By what sessions are resumed.
    pub sessions: Sessions,
    /// Who uses a context.
    pub contexts: Contexts,
    /// What stands under the locks.
    pub locks: Locks,
    /// What counts and times.
    pub tool: Tool,
}

/// The axes, in the order in which they are crossed; points that differ in what stands behind `threads`
/// only take turns.
pub const AXES: Axes<Point> = Axes {
    axes: &[
        axis!(
            "workload",
            workload,
            "full,resume",
            "NAMES",
            "Workloads: full, resume, chain:PROXIES, bulk:BYTES of a record, footprint:CONNECTIONS; numbers \
             may be left out"
        ),
        axis!(
            "wire",
            wire,
            "memory",
            "WAYS",
            "Transport: memory, loopback; a chain always goes over loopback"
        ),
        axis!("version", suite.version, "tls1.3", "VERSIONS", "Versions of TLS: tls1.2, tls1.3"),
        axis!("key", suite.key, "ecdsa-p256", "KEYS", "Keys: rsa-2048, rsa-4096, ecdsa-p256"),
        axis!(
            "group",
            suite.group,
            "x25519",
            "GROUPS",
            "Groups: x25519, secp256r1, x25519mlkem768"
        ),
        axis!(
            "cipher",
            suite.cipher,
            "aes-128-gcm",
            "CIPHERS",
            "Record ciphers: aes-128-gcm, aes-256-gcm, chacha20-poly1305"
        ),
        axis!(
            "threads",
            threads,
            "1",
            "COUNTS",
            "Threads: numbers, `cores`, `2xcores`, or `powers` (1, 2, 4 ... and the cores)"
        ),
        axis!(
            "tickets",
            tickets,
            "1",
            "COUNTS",
            "Tickets that the server issues in a handshake of TLS 1.3"
        ),
        axis!(
            "sessions",
            sessions,
            "tickets",
            "WAYS",
            "What sessions are resumed by, of `--workload resume --version tls1.2`: tickets; session IDs from \
             the library's own cache (cache) or from a store outside (external)",
            unnamed "tickets"
        ),
        axis!(
            "contexts",
            contexts,
            "shared",
            "KINDS",
            "One context for all threads, or one per thread: shared, per-thread"
        ),
        axis!(
            "locks",
            locks,
            "pthread",
            "KINDS",
            "Lock implementation: pthread, light, count (counts locks; nothing is timed)"
        ),
        axis!(
            "client",
            client,
            "same",
            "NAMES",
            "The client's library: same, reference (the same for all, with few locks; for go and java the \
             load generator), or a name"
        ),
        axis!(
            "library",
            library,
            "default",
            "NAMES",
            "Libraries: names, patterns such as openssl-*, `default`, `built`, `all`, or the path of your \
             own driver; given alone, the rest of the plan stays"
        ),
        axis!(
            "tool",
            tool,
            "host",
            "NAMES",
            "Measuring tool: host (clocks), callgrind (instructions and atomic operations)"
        ),
    ],
    canonical,
    impossible,
};

/// A chain's proxies are joined by TCP; TLS 1.2 has one ticket; with one thread a context of its own is
/// the shared one.
fn canonical(mut point: Point) -> Point {
    if matches!(point.workload, Workload::Chain { .. }) {
        point.wire = Wire::Loopback;
    }
    if point.suite.version == Version::Tls12 {
        point.tickets = 1;
    }
    if point.threads == 1 {
        point.contexts = Contexts::Shared;
    }
    point
}

fn impossible(point: &Point) -> Option<&'static str> {
    if !point.suite.exists() {
        return Some("x25519mlkem768 came with TLS 1.3");
    }
    if point.sessions != Sessions::Tickets {
        if point.suite.version != Version::Tls12 {
            return Some("session IDs resume nothing in TLS 1.3");
        }
        if point.workload != Workload::Resume {
            return Some("session IDs are measured with the workload `resume` only");
        }
    }
    let usual = point.locks == Locks::Pthread && point.tool == Tool::Host;
    match point.library.as_str() {
        NULL if !usual => Some("without cryptography there is nothing to count or replace"),
        library if programs::runtime(library).is_some() => programs::lacks(point),
        _ => None,
    }
}

impl Point {
    /// A point of a sweep, of which the axes are still to be set.
    #[must_use]
    pub fn of_sweep(sweep: &str) -> Point {
        Point {
            sweep: sweep.to_owned(),
            library: String::new(),
            client: String::new(),
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
            sessions: Sessions::Tickets,
            contexts: Contexts::Shared,
            locks: Locks::Pthread,
            tool: Tool::Host,
        }
    }

    /// As a sample has it.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = AXES.fields(self);
        fields.insert("sweep".to_owned(), self.sweep.clone());
        fields
    }

    /// The point that a sample's fields name; `None` for those that are not of this study's points.
    #[must_use]
    pub fn of_fields(fields: &BTreeMap<String, String>) -> Option<Point> {
        AXES.of_fields(fields, &Point::of_sweep(fields.get("sweep")?))
    }

    /// The command that measures this point again.
    #[must_use]
    pub fn command(&self, extent: Extent, repeat: u32) -> String {
        let axes = AXES.command_line(self).replace(" --library ", " --libraries ");
        let extent = match extent {
            Extent::Milliseconds(ms) => format!("--ms {ms}"),
            Extent::Connections(count) => format!("--connections {count}"),
        };
        format!("wiretax stacks{axes} {extent} --repeat {repeat}")
    }

    /// A short name for people: what is done, on what.
    #[must_use]
    pub fn title(&self) -> String {
        let by = match self.sessions {
            Sessions::Tickets => String::new(),
            other => format!(" by {}", other.text()),
        };
        format!("{}: {}{by} {}", self.library, self.workload, self.suite)
    }

    /// How long a measurement takes, about: for progress, and for what a plan comes to.
    #[must_use]
    pub fn expected(&self, extent: Extent) -> Duration {
        let (start, slower) = match (self.tool, self.locks) {
            (Tool::Callgrind, _) => (CALLGRIND_START, 60.0),
            (Tool::Host, Locks::Count) => (START, 2.0),
            (Tool::Host, _) if self.is_sliced(extent) => (SLICE_START + self.priming(), 1.0),
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
    pub(crate) fn expected_once(&self, extent: Extent) -> Duration {
        let warming = if self.is_kept() { self.warming() } else { Duration::ZERO };
        warming + if self.is_sliced(extent) { START } else { Duration::ZERO }
    }

    /// Whether its measurements are slices that one host process makes: what is timed, with drivers. What is
    /// counted or weighed has a process of its own each time.
    #[must_use]
    pub(crate) fn is_sliced(&self, extent: Extent) -> bool {
        matches!(extent, Extent::Milliseconds(_))
            && self.tool == Tool::Host
            && self.locks != Locks::Count
            && !matches!(self.workload, Workload::Footprint { .. })
            && self.runtimes().next().is_none()
    }

    /// Connections before each slice, for tickets and warm caches, about.
    fn priming(&self) -> Duration {
        let rounds = match (self.workload, self.wire) {
            (Workload::Bulk { .. } | Workload::Footprint { .. }, _) => return Duration::ZERO,
            (_, Wire::Memory) => 1,
            (_, Wire::Loopback) => 2,
        };
        (self.full_connection() + self.one_connection() * (rounds - 1)) * AT_ONCE
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
        let resumes = matches!(self.workload, Workload::Resume | Workload::Chain { .. });
        self.connection(resumes)
    }

    /// The same of one that is not resumed.
    fn full_connection(&self) -> Duration {
        self.connection(false)
    }

    fn connection(&self, resumed: bool) -> Duration {
        let signature = match self.suite.key {
            _ if resumed => 0,
            Key::Rsa2048 => 900,
            Key::Rsa4096 => 5_500,
            Key::EcdsaP256 => 200,
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
/// A slice of a process that is there: its threads start.
const SLICE_START: Duration = Duration::from_millis(3);
/// Connections that a thread has at once.
const AT_ONCE: u32 = 8;
/// The same under callgrind.
const CALLGRIND_START: Duration = Duration::from_millis(6_000);
/// A tenth of the time goes before, for warming up.
const WARMED: f64 = 1.1;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn point(library: &str) -> Point {
        let both = library.to_owned();
        Point { library: both.clone(), client: both, ..Point::of_sweep("cost") }
    }

    #[test]
    fn fields_name_the_point_and_nothing_else_does() {
        let mut one = point("openssl-3.5.5");
        assert_eq!(Point::of_fields(&one.fields()), Some(one.clone()));
        one.workload = Workload::Chain { proxies: 3 };
        one.tool = Tool::Callgrind;
        one.tickets = 2;
        assert_eq!(Point::of_fields(&one.fields()), Some(one.clone()));
        // Results from before there was a choice say nothing of it.
        assert!(!one.fields().contains_key("sessions"));
        one.sessions = Sessions::External;
        assert_eq!(Point::of_fields(&one.fields()), Some(one.clone()));
        assert!(one.command(Extent::Milliseconds(50), 1).contains(" --sessions external "));
        let mut fields = one.fields();
        fields.remove("threads");
        assert_eq!(Point::of_fields(&fields), None);
    }

    #[test]
    fn session_ids_are_for_resumption_in_tls_1_2() {
        let mut one = point("openssl-3.5.5");
        one.workload = Workload::Resume;
        assert_eq!(impossible(&one), None);
        for sessions in [Sessions::Cache, Sessions::External] {
            let by_id = Point { sessions, ..one.clone() };
            assert!(impossible(&by_id).unwrap().contains("TLS 1.3"));
            let mut tls12 = by_id.clone();
            tls12.suite.version = Version::Tls12;
            assert_eq!(impossible(&tls12), None);
            for workload in [Workload::Full, Workload::Chain { proxies: 2 }] {
                let other = Point { workload, ..tls12.clone() };
                assert!(impossible(&other).unwrap().contains("`resume`"));
            }
            let go = Point { library: "go".to_owned(), wire: Wire::Loopback, ..tls12.clone() };
            assert!(impossible(&go).unwrap().contains("tickets"));
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
