//! The stacks study: which TLS library should I build on?
//!
//! [`Plan`] says what to measure, [`Bench`] measures it by [`Hosts`], [`summarise`] says what came
//! out, [`Findings`] puts it into a report. [`scaling`] is the scaling law, pure.

mod about;
mod advice;
mod bound;
mod convert;
mod error;
mod hosts;
mod machines;
mod measure;
mod plan;
mod point;
mod present;
mod programs;
mod published;
mod roster;
mod sample;
pub mod scaling;
#[cfg(test)]
mod scaling_tests;
mod summary;
#[cfg(test)]
mod tests;

pub use about::{About, Machine};
pub use advice::{Change, Kind, MODERN, best, changes};
pub use bound::{Bound, Counts, bound};
pub use error::StudyError;
pub use hosts::{Contended, Counted, HostFailure, Hosts};
pub use machines::{BUSY, Need, need};
pub use measure::{Bench, End, Ended, Watcher};
pub use plan::{Cell, Expanded, Plan, PlanError, Sweep};
pub use point::{Point, Tool, UnknownValue, parse_workload, workload_name};
pub use present::{Findings, LOAD, LibraryBound};
pub use programs::{LOAD_CLIENT, ProgramJob, RUNTIMES, Runtime, runtime};
pub use published::{Published, SOURCE, Trial, outside, published, trial};
pub use roster::{Build, Fact, Library, NULL, Roster, UnknownLibrary};
pub use sample::{STUDY, label, value};
pub use summary::{Cell as Measured, Summary, Want, summarise};
