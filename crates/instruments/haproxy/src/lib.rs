//! HAProxy on each TLS library: built from Debian's source, configured, run and asked.
//!
//! [`Builder`] builds a pinned [`Release`] on a [`Library`] (headers and static archives that a driver
//! left in the cache), with the C library's locks and with HAProxy's light ones. [`Process`] runs what
//! was built by a [`Config`], and says what it counted. The study `haproxy-study` measures with it.
#![forbid(unsafe_code)]

mod build;
mod command;
mod config;
mod counters;
mod error;
mod library;
mod locks;
mod process;
mod recipe;
mod release;
mod source;

pub use build::{Builder, Built};
pub use config::{Config, Role};
pub use counters::{Counted, MAX_ANSWER, Side, parse_counted, parse_info};
pub use error::Error;
pub use library::{Kind, Library, Quic};
pub use locks::Locks;
pub use packet::privileges::identity_after;
pub use process::{Cpu, Process, in_folder};
pub use release::{RELEASES, Release, SourceFile};
