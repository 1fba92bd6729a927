//! HAProxy on each TLS library: built from Debian's source, run and measured in the two scenarios of
//! "The State of SSL Stacks" (HAProxy Technologies, 2025).
//!
//! [`Builder`] builds a pinned [`Release`] on a [`Library`] (headers and static archives that a driver
//! left in the cache), with the C library's locks and with HAProxy's light ones. [`measure()`] runs what
//! was built on loopback under our load generator and records samples; [`Summary`] says what they
//! come to, and [`section`] shows it.

mod build;
mod command;
mod config;
mod counters;
mod error;
mod library;
mod measure;
mod plan;
mod present;
mod process;
mod published;
mod recipe;
mod release;
mod source;
mod summary;

pub use build::{Builder, Built};
pub use config::{Config, Role};
pub use counters::{Handshakes, MAX_ANSWER, Side, parse_handshakes, parse_info};
pub use error::Error;
pub use library::{Kind, Library};
pub use measure::{End, NAME, STUDY, Watcher, label, measure, value};
pub use plan::{Cell, Locks, Plan, Run, Scenario, thread_counts};
pub use present::{section, table};
pub use process::{Cpu, Process};
pub use published::{Published, published};
pub use release::{RELEASES, Release, SourceFile};
pub use summary::{Program, Row, Summary};
