//! Libraries of runtimes that no process of ours can load: what the study knows of them.

use std::time::Duration;

use tls_drivers::hosts::LOAD_CLIENT;
use tls_drivers::{Contexts, Locks, Sessions, Version, Wire, Workload};

use crate::point::{Point, Tool};

/// A runtime with a TLS library of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runtime {
    /// Its name in the roster.
    pub name: &'static str,
    /// Connections before the measured time, at least. A compiler at run time makes code faster as it
    /// is used: what is measured before it has is the start of a program, not its service.
    pub warm_up: u32,
    /// What they take together with the start of the process, about.
    start: Duration,
    /// Whether a server of it, once warm, serves every repeat of a point: its warming takes longer than
    /// all that is measured.
    pub kept: bool,
}

/// All that there are.
pub const RUNTIMES: [Runtime; 2] = [
    // Compiled ahead: only caches and the heap's size are to settle.
    Runtime { name: "go", warm_up: 200, start: Duration::from_millis(350), kept: false },
    // Cold a connection takes five times what it takes after these; it gets cheaper still for some
    // thousands more, by a fifth or so.
    Runtime { name: "java", warm_up: 5_000, start: Duration::from_secs(15), kept: true },
];

/// The runtime of this name in the roster.
#[must_use]
pub fn runtime(name: &str) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|runtime| runtime.name == name)
}

impl Runtime {
    /// What a process of it takes before anything is measured, about.
    pub(crate) fn start(&self) -> Duration {
        self.start
    }
}

/// Whether a server is kept from one measurement to the next: its client then is one that needs no
/// warming itself.
pub(crate) fn keeps(server: &str, client: &str) -> bool {
    client == LOAD_CLIENT && runtime(server).is_some_and(|runtime| runtime.kept)
}

/// Why a runtime cannot be measured at a point; `None` where it can.
#[must_use]
pub(crate) fn lacks(point: &Point) -> Option<&'static str> {
    let tickets = point.tickets == 1 || point.suite.version == Version::Tls12;
    Some(match point {
        Point { wire: Wire::Memory, .. } => "it brings its own connections: only over loopback",
        Point { tool: Tool::Callgrind, .. } | Point { locks: Locks::Count | Locks::Light, .. } => {
            "its locks are futexes of the runtime, which no interposer sees"
        }
        Point { sessions: Sessions::Cache | Sessions::External, .. } => {
            "its program resumes by tickets"
        }
        Point { contexts: Contexts::PerThread, .. } => "its program has one configuration",
        Point { workload: Workload::Full | Workload::Resume, .. } if tickets => return None,
        Point { workload: Workload::Full | Workload::Resume, .. } => "it issues one ticket",
        Point { .. } => "its program serves, and does nothing else",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::tests::point;

    #[test]
    fn a_runtime_serves_over_loopback_and_that_is_all() {
        let good = Point { wire: Wire::Loopback, ..point("go") };
        assert_eq!(lacks(&good), None);
        assert_eq!(lacks(&Point { workload: Workload::Resume, ..good.clone() }), None);
        for wrong in [
            Point { wire: Wire::Memory, ..good.clone() },
            Point { locks: Locks::Count, ..good.clone() },
            Point { locks: Locks::Light, ..good.clone() },
            Point { tool: Tool::Callgrind, ..good.clone() },
            Point { contexts: Contexts::PerThread, ..good.clone() },
            Point { tickets: 2, ..good.clone() },
            Point { sessions: Sessions::Cache, ..good.clone() },
            Point { workload: Workload::Chain { proxies: 2 }, ..good.clone() },
            Point { workload: Workload::Bulk { record: 1024 }, ..good.clone() },
            Point { workload: Workload::Footprint { connections: 9 }, ..good.clone() },
        ] {
            assert!(lacks(&wrong).is_some(), "{wrong:?}");
        }
    }
}
