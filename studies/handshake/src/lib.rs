//! The handshake study: what does setting up a secure connection cost at my users' RTT, and what
//! would I save by TLS 1.3, resumption, 0-RTT, TCP Fast Open or QUIC?
//!
//! [`Handshake`] is the study as the program knows it. [`Plan`] says what to measure, [`Bench`] measures
//! it, [`summarise`] says what came out, [`changes`] what to change, [`Findings`] puts it into a report.
#![forbid(unsafe_code)]

mod actual;
mod advice;
mod clients;
mod embedded;
mod handshake;
mod job;
mod lab_delay;
mod measure;
mod mode;
mod plan;
mod point;
mod present;
mod sample;
mod savings;
mod so_far;
mod spec;
mod summary;
mod variant;

pub use advice::{Ingredient, Setting};
pub use clients::{Clients, ClientsError};
pub use embedded::{Embedded, Model, Saved, embedded};
pub use handshake::Handshake;
#[doc(hidden)]
pub use job::Fault;
pub use job::workers;
pub use lab_delay::LabDelay;
pub use measure::Bench;
pub use mode::{Mode, Security, Transport, UnknownMode};
pub use plan::{Cell as PlanCell, Plan};
pub use point::{Peer, Point, Visit};
pub use present::Findings;
pub use savings::{Change, Saving, Weighed, WeighedAt, changes};
pub use spec::{RoundTrips, Sizes, round_trips};
pub use summary::{Cell, FellBack, N_TOLERANCE, Row, RowKey, Summary, label, summarise, value};
