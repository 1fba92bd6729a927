//! What all threads of a measurement share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::memory::timed;
use super::proof::Shown;
use crate::driver::{Context, Library, Session};
use crate::job::{Contexts, Described, Extent, Job, Sessions, Workload};
use crate::{DriverError, LockCounts, Negotiated, Version};

/// The libraries and the job.
pub(crate) struct Setup {
    pub(crate) job: Job,
    pub(crate) server: Library,
    pub(crate) client: Library,
    pub(crate) counter: Option<locks::Counter>,
    /// Locks that were counted before the measured time, client first.
    pub(crate) before: Mutex<Option<[LockCounts; 2]>>,
    /// Legs behind proxies that were full handshakes so far, those that prime tickets among them.
    pub(crate) full_legs: AtomicU64,
}

/// The contexts that a thread uses: its own, or everybody's.
#[derive(Clone)]
pub(crate) struct ThreadContexts {
    pub(crate) server: Context,
    pub(crate) client: Context,
}

/// What became of a connection that ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) resumed: bool,
    pub(crate) misreported: bool,
}

/// Refuses what a job asks of sessions where it cannot be, before anything is made: session IDs resume in
/// TLS 1.2, and a driver has to say that it knows them.
pub(crate) fn refuse(job: &Job, [server, client]: [&Described; 2]) -> Result<(), DriverError> {
    let unsupported = |what: String| Err(DriverError::Unsupported { what });
    if job.sessions == Sessions::Tickets {
        return Ok(());
    }
    if (job.workload, job.suite.version) != (Workload::Resume, Version::Tls12) {
        return unsupported("session IDs are for resumed handshakes of TLS 1.2".to_owned());
    }
    let [of_server, of_client] = job.sessions.functions();
    if server.functions & of_server == 0 {
        let what =
            format!("{}: its driver does not resume by {}", server.library, job.sessions.text());
        return unsupported(what);
    }
    if client.functions & of_client == 0 {
        return unsupported(format!("{}: its driver's client has no session IDs", client.library));
    }
    Ok(())
}

impl Setup {
    /// Whether connections are resumed.
    pub(crate) fn resumes(&self) -> bool {
        matches!(self.job.workload, Workload::Resume | Workload::Chain { .. })
    }

    /// Contexts for so many threads.
    pub(crate) fn contexts(&self, threads: usize) -> Result<Vec<ThreadContexts>, DriverError> {
        let make = || -> Result<ThreadContexts, DriverError> {
            // Kept whether they are used or not, as clients have it.
            let Job { suite, identity, tickets, sessions, .. } = &self.job;
            Ok(ThreadContexts {
                server: Context::server(&self.server, *suite, identity, *tickets, *sessions)?,
                client: Context::client(&self.client, *suite, identity, *tickets, *sessions)?,
            })
        };
        match self.job.contexts {
            Contexts::Shared => Ok(vec![make()?; threads]),
            Contexts::PerThread => (0..threads).map(|_| make()).collect(),
        }
    }

    /// Runs a part that is the client's; its CPU time.
    pub(crate) fn on_client(&self, mut work: impl FnMut()) -> Duration {
        self.counted(locks::Side::Client, || wiretax_client_turns(&mut work))
    }

    /// Runs a part that is the server's; its CPU time.
    pub(crate) fn on_server(&self, mut work: impl FnMut()) -> Duration {
        self.counted(locks::Side::Server, || wiretax_server_turns(&mut work))
    }

    fn counted(&self, side: locks::Side, work: impl FnOnce()) -> Duration {
        match &self.counter {
            None => timed(work),
            Some(counter) => {
                counter.side(side);
                let took = timed(work);
                counter.side(locks::Side::None);
                took
            }
        }
    }

    /// The session that the next connection may resume: what came, or in TLS 1.2, whose servers need not
    /// renew a ticket (RFC 5077 §3.3), what was resumed. In TLS 1.3 none is used twice (RFC 8446 §C.4).
    pub(crate) fn next_session(
        &self,
        came: Option<Session>,
        resumed: Option<Session>,
    ) -> Option<Session> {
        came.or_else(|| resumed.filter(|_| self.job.suite.version == Version::Tls12))
    }

    /// Holds what the wire showed against what was asked for and what the libraries say.
    pub(crate) fn judge(
        &self,
        shown: Option<Shown>,
        said: [Negotiated; 2],
        resume: bool,
    ) -> Result<Verdict, DriverError> {
        let suite = self.job.suite;
        let Some(shown) = shown else {
            return Err(DriverError::OnTheWire { shown: "no ServerHello", asked: "one" });
        };
        let pinned = |what: &dyn std::fmt::Display, got: u32| {
            Err(DriverError::NotAsPinned { what: what.to_string(), got: format!("{got:#06x}") })
        };
        if shown.version != u32::from(suite.version.id()) {
            return pinned(&suite.version, shown.version);
        }
        if shown.cipher_suite != u32::from(suite.cipher_suite()) {
            return pinned(&suite.cipher, shown.cipher_suite);
        }
        if let Some(group) = shown.group
            && group != u32::from(suite.group.id())
        {
            return pinned(&suite.group, group);
        }
        if self.job.sessions != Sessions::Tickets && (shown.ticket || !shown.session_id) {
            // A server says so in the full handshake before (RFC 5077 §3.2): whoever never had a
            // ticket cannot have resumed by one.
            let shown = if shown.ticket { "a ticket" } else { "no session ID" };
            return Err(DriverError::OnTheWire { shown, asked: "a session ID without a ticket" });
        }
        match (shown.resumed, resume) {
            (false, true) => {
                return Err(DriverError::OnTheWire {
                    shown: "a full handshake",
                    asked: "a resumed one",
                });
            }
            (true, false) => {
                return Err(DriverError::OnTheWire {
                    shown: "a resumed handshake",
                    asked: "a full one",
                });
            }
            _ => {}
        }
        let honest = |said: &Negotiated| {
            said.version == shown.version
                && said.cipher_suite == shown.cipher_suite
                && said.resumed == shown.resumed
        };
        Ok(Verdict { resumed: shown.resumed, misreported: !said.iter().all(honest) })
    }
}

/// The client's part of a measurement: tools that count instructions know it by this symbol.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
#[inline(never)]
fn wiretax_client_turns(work: &mut dyn FnMut()) {
    // Functions that are the same may be made one.
    std::hint::black_box(0);
    work();
}

/// The server's part.
// SAFETY: as above.
#[unsafe(no_mangle)]
#[inline(never)]
fn wiretax_server_turns(work: &mut dyn FnMut()) {
    std::hint::black_box(1);
    work();
}

/// Where threads wait for each other, and learn when to stop.
pub(crate) struct Gate {
    extent: Extent,
    barrier: Barrier,
    stop: AtomicBool,
    begun: AtomicBool,
    ends: Mutex<Option<Instant>>,
}

impl Gate {
    pub(crate) fn new(extent: Extent, threads: usize) -> Self {
        Self {
            extent,
            barrier: Barrier::new(threads),
            stop: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            ends: Mutex::new(None),
        }
    }

    /// A thread that cannot begin: the others are not to wait for it.
    pub(crate) fn give_up(&self, setup: &Setup) {
        self.stop.store(true, Ordering::Relaxed);
        self.begin(setup);
    }

    /// Warms up for a tenth of the time, by `step`, which tells its failures.
    pub(crate) fn enter(&self, _: &Setup, mut step: impl FnMut() -> u64) {
        if let Extent::Milliseconds(all) = self.extent {
            let until = Instant::now() + Duration::from_millis(all / 10);
            while Instant::now() < until && step() == 0 {}
        }
    }

    /// Waits for all; then the measured time begins.
    pub(crate) fn begin(&self, setup: &Setup) -> Instant {
        let leads = self.barrier.wait().is_leader();
        if let Some(counter) = &setup.counter {
            // Nobody counts between the two.
            if leads {
                let counted =
                    [locks::Side::Client, locks::Side::Server].map(|side| counter.read(side));
                *setup.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
            }
            self.barrier.wait();
        }
        let now = Instant::now();
        self.begun.store(true, Ordering::Relaxed);
        if let Extent::Milliseconds(all) = self.extent {
            let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.get_or_insert(now + Duration::from_millis(all));
        }
        now
    }

    /// Whether the measured time has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a thread that has made so many goes on. Read once a batch; written once.
    pub(crate) fn goes_on(&self, made: u64) -> bool {
        if self.stop.load(Ordering::Relaxed) {
            return false;
        }
        match self.extent {
            Extent::Connections(most) => made < most,
            Extent::Milliseconds(_) => {
                let ends = *self.ends.lock().unwrap_or_else(PoisonError::into_inner);
                let goes_on = ends.is_none_or(|ends| Instant::now() < ends);
                if !goes_on {
                    self.stop.store(true, Ordering::Relaxed);
                }
                goes_on
            }
        }
    }

    /// How many a thread that has made so many may still make.
    pub(crate) fn left(&self, made: u64) -> u64 {
        match self.extent {
            Extent::Connections(most) => most.saturating_sub(made),
            Extent::Milliseconds(_) => u64::MAX,
        }
    }
}
