//! TLS of runtimes that cannot be loaded into a process of ours: Go's crypto/tls and Java's JSSE.
//!
//! A small program for each ([`Runtime`]) is compiled by the toolchain that is on the machine
//! ([`Toolchain::build`]) and run as a server ([`Program::serve`]) or as a client that makes load
//! ([`Program::connect`]). It gets its job on standard input and answers in JSON lines; what it says is
//! checked and bounded, and a program that crashes, hangs or talks rubbish is an [`enum@Error`] by name.
//!
//! What a runtime cannot pin (Go the suites of TLS 1.3, both the signature scheme in places) it says in
//! [`Described::notes`]; a connection that agreed on something else counts as failed.
//!
//! A connection is resumed where the server's first flight shows it (RFC 8446 §4.2.11: the ServerHello
//! takes a pre-shared key; RFC 5246 §7.3: keys change before any certificate came). Each program reads
//! that flight off its own connections, as a client what comes in, as a server what goes out. Go's
//! `ConnectionState.DidResume` is held against it; Java's JSSE says nothing of its own.
#![forbid(unsafe_code)]

mod about;
mod child;
mod peer;
mod toolchain;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::named;

pub use about::Fact;
pub use peer::{Measured, Moment, Program, Serving, measure};
pub use toolchain::Toolchain;

named! {
    /// A runtime with a TLS library of its own.
    pub enum Runtime: "runtime" {
        /// Go, with its crypto/tls.
        Go = "go",
        /// Java, with its JSSE.
        Java = "java",
    }
}

/// What went wrong, by the runtime's name.
#[derive(Debug, Error)]
pub enum Error {
    /// The environment's: the toolchain is not on the machine.
    #[error("{runtime} is not here: {why}")]
    NotHere {
        /// The runtime that it is about.
        runtime: Runtime,
        /// What was looked for.
        why: String,
        /// What to do.
        hint: &'static str,
    },
    /// The toolchain's: it did not compile our program.
    #[error("{runtime}: its program was not built: {output}")]
    Build {
        /// The runtime that it is about.
        runtime: Runtime,
        /// The compiler's last words.
        output: String,
    },
    /// The runtime cannot do what was asked for.
    #[error("{runtime} cannot do this: {why}")]
    Unsupported {
        /// The runtime that it is about.
        runtime: Runtime,
        /// In its own words.
        why: String,
    },
    /// The program gave up, and said why.
    #[error("{runtime} failed: {why}")]
    Failed {
        /// The runtime that it is about.
        runtime: Runtime,
        /// In its own words.
        why: String,
    },
    /// The program ended before its time.
    #[error("{runtime} exited early ({status}): {stderr}")]
    Crashed {
        /// The runtime that it is about.
        runtime: Runtime,
        /// How it ended.
        status: String,
        /// The last of what it wrote to standard error.
        stderr: String,
    },
    /// The program said nothing for too long, and was killed.
    #[error("{runtime} did not answer for {} s and was killed", after.as_secs_f64())]
    Hung {
        /// The runtime that it is about.
        runtime: Runtime,
        /// How long it was waited for.
        after: Duration,
    },
    /// The program was ended, since the user stops.
    #[error("{runtime} was ended: you stopped")]
    Stopped {
        /// The runtime that it is about.
        runtime: Runtime,
    },
    /// The program said something that it must not.
    #[error("{runtime} printed an unexpected line: {line}")]
    Rubbish {
        /// The runtime that it is about.
        runtime: Runtime,
        /// The line, cut.
        line: String,
    },
    /// The environment's: a file or a process.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NotHere { .. } | Error::Build { .. } | Error::Io { .. } => Fault::Machine,
            Error::Unsupported { .. }
            | Error::Failed { .. }
            | Error::Crashed { .. }
            | Error::Hung { .. }
            | Error::Stopped { .. }
            | Error::Rubbish { .. } => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::NotHere { hint, .. } => Some((*hint).into()),
            _ => None,
        }
    }
}

/// What a connection must agree on, by IANA's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pins {
    /// 0x0303 or 0x0304.
    pub version: u16,
    /// The cipher suite.
    pub cipher: u16,
    /// The group: 23, 29 or 0x11ec.
    pub group: u16,
    /// The signature scheme: 0x0403 or 0x0804.
    pub signature: u16,
}

impl Pins {
    /// The group of the certificate's key, or 0 where it has none.
    #[must_use]
    pub const fn certificate_group(self) -> u16 {
        if self.signature == 0x0403 { 23 } else { 0 }
    }
}

/// A server's identity in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// Certificates, leaf first.
    pub chain: String,
    /// The leaf's key, PKCS #8.
    pub key: String,
    /// What clients trust.
    pub roots: String,
    /// The name in the leaf.
    pub name: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What connections are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A new session each.
    Full,
    /// Each resumes the session of the one before it.
    Resume,
}

/// What a server does.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// What is pinned.
    pub pins: Pins,
    /// Who it is.
    pub identity: Identity,
    /// Go: processors at once (GOMAXPROCS). Java: threads, each with one connection at a time.
    pub threads: usize,
    /// Whether it issues tickets, one per handshake.
    pub tickets: bool,
    /// Bytes of its answer's body, 16 MiB at most.
    pub body: usize,
}

/// What a client does.
#[derive(Debug, Clone)]
pub struct ClientPlan {
    /// What is pinned.
    pub pins: Pins,
    /// Whom it trusts and asks for; chain and key are not used.
    pub identity: Identity,
    /// Go: processors at once (GOMAXPROCS). Java: of no effect, each connection at once has a thread.
    pub threads: usize,
    /// Connections at once, each in a closed loop: connect, request, whole answer, close, again.
    pub at_once: usize,
    /// Full handshakes or resumed ones.
    pub workload: Workload,
    /// Connections before what is measured, over all of those at once, at least: for compilers at run
    /// time. The first connection of each, which gets a ticket, is before it in any case.
    pub warm: u32,
    /// For how long, or how many connections.
    pub extent: Extent,
}

/// How long a client goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// For this time.
    Time(Duration),
    /// Until so many connections have ended, well or not.
    Connections(u32),
}

/// What a runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The library's family, as tables call it.
    pub library: String,
    /// Its own version string.
    pub version: String,
    /// How the program was built or is run.
    pub build_flags: String,
    /// CPU features in use; empty where it does not tell.
    pub cpu_features: String,
    /// Bits of `enum wt_function`.
    pub functions: u64,
    /// What it cannot pin or tell.
    pub notes: Vec<String>,
}

/// What a program counted in a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Connections that ended well: the whole answer, and an end in order.
    pub done: u64,
    /// Connections that failed, or agreed on something else.
    pub failed: u64,
    /// The first failure; empty without one.
    pub failure: String,
    /// Connections that the wire shows to be resumed.
    pub resumed: u64,
    /// Connections of which the runtime says other than the wire shows; 0 for one that says nothing.
    pub misreported: u64,
    /// CPU time of the whole process, garbage collection and compilation with it, in nanoseconds.
    pub cpu_ns: u64,
    /// Wall time, in nanoseconds.
    pub wall_ns: u64,
}
