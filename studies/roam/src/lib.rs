//! The roam study: how long a moving host is cut off under IPsec, MACsec and WireGuard, and where the time goes; after
//! Ahn and Shin, "Performance Evaluation of MACSec for Host Mobility" (2019), its result 4.
//!
//! | module | what |
//! |---|---|
//! | `point`, `files`, `plan` | what is varied, scenarios of files, and what is measured of them |
//! | `job`, `measure` | a bed in a guest, runs in it |
//! | `sample`, `summary` | a run as a sample; what samples come to |
//! | `present`, `advice`, `tables`, `pictures`, `published` | the answer, its evidence, the paper's figures beside ours |
#![forbid(unsafe_code)]

mod advice;
mod files;
mod job;
mod means;
mod measure;
mod pictures;
mod plan;
mod point;
mod present;
mod published;
mod sample;
mod study;
mod summary;
mod tables;

pub use files::{Files, OfFile};
pub use job::workers;
pub use plan::{LeftOut, Plan, Round};
pub use point::{Chosen, Name, PacketRate, Point};
pub use study::RoamStudy;
