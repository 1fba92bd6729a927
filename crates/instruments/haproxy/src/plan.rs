//! What is measured: scenarios, variants, sizes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tls::{Group, KeyType, Version};

use crate::Error;

/// Defines an enumeration whose members have a name that people write.
macro_rules! named {
    ($(#[$about:meta])* $type:ident, $what:literal { $($(#[$doc:meta])* $member:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type { $($(#[$doc])* #[serde(rename = $name)] $member,)+ }

        impl $type {
            /// All that there are.
            pub const ALL: &[Self] = &[$(Self::$member),+];

            /// The name that people write.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $name),+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or_else(|| Error::Unknown {
                    what: $what,
                    given: text.to_owned(),
                    known: Self::ALL.iter().map(|one| one.name().to_owned()).collect(),
                })
            }
        }
    };
}

named! {
    /// What HAProxy does.
    Scenario, "scenario" {
        /// A full handshake, one request that the proxy answers itself, close.
        Full = "full",
        /// Proxies in a row in one process, TLS on both sides of each, tickets resumed on both.
        Chain = "chain",
    }
}

named! {
    /// What stands under the library's reader-writer locks.
    Locks, "kind of locks" {
        /// The C library's.
        Pthread = "pthread",
        /// HAProxy's own light ones (USE_PTHREAD_EMULATION).
        Light = "light",
    }
}

/// What is measured. The same plan and seed measure the same cells in the same order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// HAProxy's release.
    pub release: String,
    /// The libraries, by their drivers' names.
    pub libraries: Vec<String>,
    /// Locks, each with each library.
    pub locks: Vec<Locks>,
    /// Scenarios.
    pub scenarios: Vec<Scenario>,
    /// HAProxy's threads.
    pub threads: Vec<usize>,
    /// TLS versions.
    pub versions: Vec<Version>,
    /// The key of all certificates.
    pub key: KeyType,
    /// The group of the key exchange.
    pub group: Group,
    /// Proxies in a row.
    pub proxies: usize,
    /// Runs of each cell.
    pub repeat: u32,
    /// How long each run is measured, in milliseconds.
    pub milliseconds: u64,
    /// Connections of the load generator at once.
    pub connections: usize,
    /// Threads of the load generator.
    pub load_threads: usize,
}

/// Seconds that a run takes beside its measured time: HAProxy's start and end, warming up.
const AROUND: Duration = Duration::from_millis(1200);
/// The part of a run's time for which it is loaded before: tickets are there, ports open, memory taken.
pub(crate) const WARM_UP: u32 = 4;

impl Plan {
    /// The plan that runs in some minutes.
    #[must_use]
    pub fn new(libraries: Vec<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            release: crate::RELEASES.first().map_or("", |release| release.version).to_owned(),
            libraries,
            locks: vec![Locks::Pthread],
            scenarios: Scenario::ALL.to_vec(),
            threads: thread_counts(cores),
            versions: vec![Version::Tls13],
            key: KeyType::Rsa2048,
            group: Group::X25519,
            proxies: 10,
            repeat: 3,
            milliseconds: 2000,
            connections: 32,
            load_threads: cores,
        }
    }

    /// # Errors
    /// [`Error::Plan`] for what cannot be measured.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Plan(text.to_owned()));
        let release = crate::Release::find(&self.release)?;
        if self.libraries.is_empty() {
            return wrong("no library to measure; hint: `wiretax drivers build` makes some");
        }
        if self.locks.contains(&Locks::Light) && !release.has_light_locks() {
            return wrong("this release of HAProxy has no light locks; hint: --locks pthread");
        }
        let empty =
            [self.locks.len(), self.scenarios.len(), self.threads.len(), self.versions.len()];
        if empty.contains(&0) {
            return wrong("an axis has no value, so there is nothing to measure");
        }
        if !self.threads.iter().all(|threads| (1..=256).contains(threads)) {
            return wrong("HAProxy takes 1 to 256 threads");
        }
        if !(1..=100).contains(&self.proxies) {
            return wrong("1 to 100 proxies can stand in a row");
        }
        if !(1..=10_000).contains(&self.connections) || !(1..=256).contains(&self.load_threads) {
            return wrong("the load generator takes 1 to 10000 connections and 1 to 256 threads");
        }
        if !(1..=1000).contains(&self.repeat) || !(100..=600_000).contains(&self.milliseconds) {
            return wrong("a cell is run 1 to 1000 times, for 0.1 to 600 seconds each");
        }
        if self.group == Group::X25519MlKem768 && self.versions.contains(&Version::Tls12) {
            return wrong("x25519mlkem768 is for TLS 1.3 only; hint: --tls tls1.3");
        }
        Ok(())
    }

    /// Every run in its order. Builds are innermost, forwards and backwards in turn (A B B A), so that
    /// what drifts falls on all of them alike.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let places = self.scenarios.iter().flat_map(|&scenario| {
            let versions = self.versions.iter();
            versions.flat_map(move |&version| {
                self.threads.iter().map(move |&threads| (scenario, version, threads))
            })
        });
        for (scenario, version, threads) in places {
            for repeat in 0..self.repeat {
                let libraries = self.libraries.iter();
                let builds =
                    libraries.flat_map(|library| self.locks.iter().map(move |l| (library, *l)));
                let mut builds: Vec<_> = builds.collect();
                if repeat % 2 == 1 {
                    builds.reverse();
                }
                runs.extend(builds.into_iter().map(|(library, locks)| Run {
                    cell: Cell { scenario, version, threads, library: library.clone(), locks },
                    repeat,
                }));
            }
        }
        runs
    }

    /// About how long one run takes.
    #[must_use]
    pub fn expected_run(&self) -> Duration {
        let measured = Duration::from_millis(self.milliseconds);
        measured + measured / WARM_UP + AROUND
    }
}

/// 1, 2, 4 … to the cores, and one step past them.
#[must_use]
pub fn thread_counts(cores: usize) -> Vec<usize> {
    let cores = cores.clamp(1, 128);
    let mut counts: Vec<usize> =
        (0..).map(|power| 1usize << power).take_while(|&count| count < cores).collect();
    counts.extend([cores, cores * 2]);
    counts
}

/// A place in the plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// What HAProxy does.
    pub scenario: Scenario,
    /// The TLS version.
    pub version: Version,
    /// HAProxy's threads.
    pub threads: usize,
    /// The library.
    pub library: String,
    /// Its locks.
    pub locks: Locks,
}

/// One run of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Where.
    pub cell: Cell,
    /// Which, from 0.
    pub repeat: u32,
}

impl Cell {
    /// The axes of a sample.
    #[must_use]
    pub fn point(&self, plan: &Plan) -> BTreeMap<String, String> {
        let proxies = match self.scenario {
            Scenario::Full => 1,
            Scenario::Chain => plan.proxies,
        };
        let axes: [(&str, String); 9] = [
            ("scenario", self.scenario.to_string()),
            ("library", self.library.clone()),
            ("locks", self.locks.to_string()),
            ("threads", self.threads.to_string()),
            ("tls", self.version.to_string()),
            ("key", plan.key.to_string()),
            ("group", plan.group.to_string()),
            ("proxies", proxies.to_string()),
            ("haproxy", plan.release.clone()),
        ];
        axes.into_iter().map(|(axis, value)| (axis.to_owned(), value)).collect()
    }

    /// The cell of a sample; none of a sample that is of something else.
    #[must_use]
    pub fn of_point(point: &BTreeMap<String, String>) -> Option<Self> {
        let axis = |name: &str| point.get(name).map(String::as_str);
        Some(Self {
            scenario: axis("scenario")?.parse().ok()?,
            version: axis("tls")?.parse().ok()?,
            threads: axis("threads")?.parse().ok()?,
            library: axis("library")?.to_owned(),
            locks: axis("locks")?.parse().ok()?,
        })
    }

    /// The command that measures this cell alone.
    #[must_use]
    pub fn command(&self, plan: &Plan) -> String {
        let Self { scenario, version, threads, library, locks } = self;
        format!(
            "wiretax stacks haproxy --haproxy {} --library {library} --locks {locks} --scenario \
             {scenario} --tls {version} --threads {threads} --key {} --group {} --proxies {} --repeat \
             {} --duration {}ms --connections {} --load-threads {}",
            plan.release,
            plan.key,
            plan.group,
            plan.proxies,
            plan.repeat,
            plan.milliseconds,
            plan.connections,
            plan.load_threads
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = Plan::new(vec!["openssl-1.1.1w".into(), "openssl-3.0.2".into()]);
        plan.locks = Locks::ALL.to_vec();
        plan.threads = vec![1, 2];
        plan
    }

    #[test]
    fn threads_go_to_the_cores_and_past_them() {
        assert_eq!(thread_counts(1), [1, 2]);
        assert_eq!(thread_counts(2), [1, 2, 4]);
        assert_eq!(thread_counts(6), [1, 2, 4, 6, 12]);
        assert_eq!(thread_counts(64), [1, 2, 4, 8, 16, 32, 64, 128]);
        assert_eq!(thread_counts(1000).last(), Some(&256));
    }

    #[test]
    fn builds_alternate_and_every_cell_is_run_as_often_as_asked() {
        let plan = plan();
        let runs = plan.runs();
        assert_eq!(runs.len(), 2 * 2 * 4 * 3);
        let names = |runs: &[Run]| -> Vec<String> {
            runs.iter().map(|run| format!("{} {}", run.cell.library, run.cell.locks)).collect()
        };
        let (first, second) = (names(&runs[..4]), names(&runs[4..8]));
        assert_eq!(first.iter().rev().collect::<Vec<_>>(), second.iter().collect::<Vec<_>>());
        let mut cells: Vec<_> = runs.iter().map(|run| (run.cell.clone(), run.repeat)).collect();
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), runs.len());
    }

    #[test]
    fn a_cell_is_read_back_from_its_sample() {
        let plan = plan();
        for run in plan.runs() {
            assert_eq!(Cell::of_point(&run.cell.point(&plan)), Some(run.cell));
        }
        assert_eq!(Cell::of_point(&BTreeMap::new()), None);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        plan().check().unwrap();
        let wrong: [fn(&mut Plan); 8] = [
            |p| p.libraries.clear(),
            |p| p.release = "2.6.12".into(),
            |p| p.threads = vec![0],
            |p| p.proxies = 0,
            |p| p.connections = 0,
            |p| p.milliseconds = 1,
            |p| p.scenarios.clear(),
            |p| {
                p.group = Group::X25519MlKem768;
                p.versions = vec![Version::Tls12];
            },
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut plan = plan();
            change(&mut plan);
            assert!(matches!(plan.check(), Err(Error::Plan(_))), "{number}");
        }
        let unknown = "open-ssl".parse::<Scenario>().unwrap_err().to_string();
        assert!(unknown.contains("full, chain"), "{unknown}");
    }
}
