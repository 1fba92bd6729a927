//! TLS libraries as drivers, and the harness that measures them.
//!
//! A driver is a shared object with one symbol (`drivers/include/wiretax_driver.h`). Each measurement
//! runs in a host process of its own, so that a library that crashes or hangs takes nothing with it:
//! [`Supervisor`] starts hosts, [`host`] is what runs in them. [`Catalog`] knows which drivers there
//! are, [`builder`] builds them.

mod abi;
pub mod builder;
mod built_in;
mod catalog;
mod driver;
mod ech;
mod error;
pub mod function;
pub mod host;
pub mod hosts;
mod job;
mod key;
mod null;
mod suite;
mod supervise;
mod workload;

use serde::{Deserialize, Serialize};

pub use ::host::HostError;
pub use built_in::BUILT_IN;
pub use catalog::{Catalog, Driver, Fact, Folders, State, check_cache};
pub use driver::{Conn, Context, EchAnswer, EchConfig, Io, Library, Session, Step, Transport};
pub use ech::{EchClient, EchHello, EchJob, EchReply, EchServer};
pub use error::{DriverError, Error};
pub use job::{
    Contexts, Described, Extent, Identity, Job, Locks, Outcome, Reply, Sessions, Side, Wire,
    Workload,
};
pub use locks::Counts as LockCounts;
pub use null::NULL;
pub use suite::{Cipher, Group, Key, Suite, Version};
pub use supervise::{KeptDrivers, Supervisor, SupervisorOptions, question, reply};

/// What a library says that was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// As on the wire.
    pub version: u32,
    /// IANA's number of the cipher suite.
    pub cipher_suite: u32,
    /// IANA's number; 0 where the library does not tell.
    pub group: u32,
    /// Whether a session was resumed.
    pub resumed: bool,
}

/// Memory of a connection on one side: bytes on the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// When the side has sent its first flight and waits.
    pub handshaking_bytes: u64,
    /// When the handshake is over, 100 bytes went each way, and nothing moves.
    pub idle_bytes: u64,
}
