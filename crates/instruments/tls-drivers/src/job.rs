//! One measurement: what a host process is asked for, and what it answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use units::named;

use crate::{Footprint, LockCounts, Suite, function};

named! {
    /// The transport between the two sides.
    pub enum Wire: "way" {
        /// Through memory: the libraries alone.
        Memory = "memory",
        /// Over TCP on loopback: with the kernel, epoll and SO_REUSEPORT.
        Loopback = "loopback",
    }
}

named! {
    /// Who uses a context.
    pub enum Contexts: "contexts" {
        /// One for all threads, as servers usually have it.
        Shared = "shared",
        /// One per thread.
        PerThread = "per-thread",
    }
}

named! {
    /// What stands under the libraries' locks.
    pub enum Locks: "locks" {
        /// The C library's, as built.
        Pthread = "pthread",
        /// Our small ones in their place.
        Light = "light",
        /// The C library's, counted. What is timed then means nothing.
        Count = "count",
    }
}

named! {
    /// By what a server resumes sessions (`enum wt_sessions`).
    #[derive(Default)]
    pub enum Sessions: "way to resume" {
        /// By tickets: it keeps nothing.
        #[default]
        Tickets = "tickets",
        /// By session IDs, from the library's own cache. TLS 1.2 only.
        Cache = "cache",
        /// By session IDs, from a store outside the library that its callbacks ask. TLS 1.2 only.
        External = "external",
    }
}

impl Sessions {
    /// Its number in the drivers' interface.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Sessions::Tickets => 0,
            Sessions::Cache => 1,
            Sessions::External => 2,
        }
    }

    /// What a driver whose server is to do it has among its functions, and what the driver of its client has one
    /// of; 0 for what all can do.
    pub(crate) const fn functions(self) -> [u64; 2] {
        let either = function::SESSION_CACHE | function::SESSION_STORE;
        match self {
            Sessions::Tickets => [0, 0],
            Sessions::Cache => [function::SESSION_CACHE, either],
            Sessions::External => [function::SESSION_STORE, either],
        }
    }

    /// For people: what sessions are resumed by.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Sessions::Tickets => "tickets",
            Sessions::Cache => "session IDs, the library's own cache",
            Sessions::External => "session IDs, an external store",
        }
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// New connections, one request, close; never resumed.
    Full,
    /// The same, each resumed: by a ticket, or by [`Job::sessions`].
    Resume,
    /// This many proxies in one process, each with TLS on both sides, resumed on both; a connection
    /// counts when it has gone through all (HAProxy 2025's second scenario).
    Chain {
        /// Proxies in a row.
        proxies: usize,
    },
    /// Records one way on an open connection.
    Bulk {
        /// Bytes that one write takes; a record holds 16,384 at most (RFC 8446 §5.1).
        record: usize,
    },
    /// This many connections at once, held: their memory.
    Footprint {
        /// How many connections are held.
        connections: usize,
    },
}

/// How long it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Wall time in milliseconds, after a tenth of it for warming up.
    Milliseconds(u64),
    /// This many connections (or records) a thread, after one that primes tickets: exact counts.
    Connections(u64),
}

/// A job for a host process. Written as one line of JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// The shared object of the server's library.
    pub server: PathBuf,
    /// The shared object of the client's library; may be the same.
    pub client: PathBuf,
    /// What is done.
    pub workload: Workload,
    /// What is between the two sides.
    pub wire: Wire,
    /// What is pinned.
    pub suite: Suite,
    /// Threads; over loopback as many for the server as for the client.
    pub threads: usize,
    /// Tickets that the server issues in a handshake of TLS 1.3.
    pub tickets: u32,
    /// By what sessions are resumed.
    pub sessions: Sessions,
    /// Who uses a context.
    pub contexts: Contexts,
    /// What stands under the locks.
    pub locks: Locks,
    /// For how long, or how many connections.
    pub extent: Extent,
    /// The server's chain, its key and the client's roots, in PEM.
    pub identity: Identity,
}

/// A server's identity in PEM.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Certificates, leaf first.
    pub chain: String,
    /// The leaf's key, PKCS #8. Made for one run and never kept.
    pub key: String,
    /// What clients trust.
    pub roots: String,
    /// The name in the leaf.
    pub name: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a driver says of its library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The library's family: `OpenSSL`.
    pub library: String,
    /// Its own version string.
    pub version: String,
    /// Flags that it was built with.
    pub build_flags: String,
    /// CPU features in use.
    pub cpu_features: String,
    /// Bits of `enum wt_function`.
    pub functions: u64,
}

/// One side's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// What it ran.
    pub described: Described,
    /// CPU time of its threads inside the library, in nanoseconds (over loopback: of its threads, the
    /// kernel's part of them with it).
    pub cpu_ns: u64,
    /// Locks taken inside the library, when they were counted.
    pub locks: Option<LockCounts>,
    /// Memory of its connections, when it was asked for.
    pub footprint: Option<Footprint>,
}

/// What came of a job. One line of JSON on the host's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Connections that ended well (bulk: records) in the measured time.
    pub done: u64,
    /// Connections that failed, and why the first did.
    pub failed: u64,
    /// The first failure.
    pub failure: Option<String>,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
    /// Wall time of all threads together, in nanoseconds, in which they could have run and did not: other
    /// programs, or the hypervisor, had the processor. Of workloads whose threads never wait only.
    pub waited_ns: Option<u64>,
    /// Connections that the wire shows to be resumed; of a chain, legs: the client's and those behind
    /// each proxy.
    pub resumed: u64,
    /// Legs behind a proxy that were full handshakes in the measured time; 0 but for a chain.
    pub full_legs: u64,
    /// Connections where a library said other than the wire did.
    pub misreported: u64,
    /// Payload bytes, bulk only.
    pub bytes: u64,
    /// The server's part.
    pub server: Side,
    /// The client's part.
    pub client: Side,
}

/// A host's last word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It was measured.
    Done(Box<Outcome>),
    /// The library cannot do this.
    Unsupported(String),
    /// It failed: whose fault, and what.
    Failed(String),
}
