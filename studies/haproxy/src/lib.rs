//! The HAProxy study: how many connections does HAProxy take on each TLS library, and what does each
//! cost? In the two scenarios of "The State of SSL Stacks" (HAProxy Technologies, 2025).
//!
//! [`Haproxy`] is the study as the program sees it. [`Plan`] says what to measure; each run has a HAProxy
//! of its own on loopback, under our load generator (over QUIC, under a client of quinn's); [`Summary`] says
//! what the samples come to.
#![forbid(unsafe_code)]

mod builds;
mod claims;
mod frame;
mod markdown;
mod measure;
mod plan;
mod point;
mod present;
mod published;
mod quic;
mod run;
mod sample;
mod summary;

pub use builds::{Builds, Sources};
pub use frame::Haproxy;
pub use measure::measure;
pub use plan::{Plan, Run};
pub use point::{AXES, Point, Scenario};
pub use present::{Findings, section, table};
pub use sample::{STUDY, label, value};
pub use summary::{Program, PublishedRatio, Row, Summary};
