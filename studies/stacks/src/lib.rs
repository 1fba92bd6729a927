//! The stacks study: which TLS library should I build on?
//!
//! [`Stacks`] is the study as the program sees it. [`Plan`] says what to measure, [`Bench`] measures it
//! by [`tls_drivers::hosts`], [`summarise`] says what came out, [`Findings`] puts it into a report.
//! [`scaling`] is the scaling law and [`queue`] that of one lock, held against [`simulated`] threads; all pure.
#![forbid(unsafe_code)]

mod about;
mod advice;
mod contention;
mod convert;
mod frame;
mod machines;
mod measure;
mod plan;
mod point;
mod present;
mod profile;
mod programs;
mod published;
mod purpose;
pub mod queue;
mod roster;
mod sample;
pub mod scaling;
#[cfg(test)]
mod scaling_tests;
pub mod simulated;
mod summary;
#[cfg(test)]
mod tests;

pub use about::{About, Machine};
pub use advice::{Change, Kind, MODERN, best, changes};
pub use contention::{Contention, Counts, contention};
pub use frame::{Stacks, parse_load};
pub use machines::{BUSY, Need, need};
pub use measure::{Bench, Ended};
pub use plan::{Cell, Expanded, Plan};
pub use point::{AXES, Point, Tool};
pub use present::{Findings, LOAD, LibraryContention};
pub use profile::{FrameOf, Profile, Share};
pub use programs::{RUNTIMES, Runtime, runtime};
pub use published::{Trial, outside, trial};
pub use purpose::{Line, OTHER, Purpose, RULE, by_purpose, purpose};
pub use roster::{Build, Fact, Library, NULL, Roster, UnknownLibrary};
pub use sample::{STUDY, label, value};
pub use summary::{Cell as Measured, Summary, WAITED_SHARE, Want, summarise};
