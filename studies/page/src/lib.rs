//! The page study: which version of HTTP loads a page fastest on this network, is flow control in the
//! way, and what to change first?
//!
//! [`PageStudy`] is the study as the program knows it. [`Plan`] says what to measure, a job of `host`
//! loads the pages on `browser`'s lanes, [`Summary`] says what came out, [`Findings`] puts it into a
//! report.
#![forbid(unsafe_code)]

mod beside;
mod cells;
mod change;
mod claims;
mod costs;
mod direction;
mod flow;
mod folder;
mod job;
mod link;
mod loads;
mod means;
mod measure;
mod moving;
mod pages;
mod passed;
mod plan;
mod point;
mod present;
mod published;
mod push;
mod row;
mod sample;
mod stalled;
mod study;
mod summary;
mod trace;
mod waits;
mod waterfall;
mod window;

pub use self::study::PageStudy;
pub use beside::{Beside, Verdict};
pub use job::workers;
pub use link::{LinkName, UnknownLink};
pub use pages::{PageName, Pages};
pub use passed::Passed;
pub use plan::{Cell, Plan};
pub use point::{Loader, Point, Tls, Visit, Waiting};
pub use present::Findings;
pub use row::Row;
pub use sample::value;
pub use summary::{Group, Summary};
pub use trace::TraceFile;
pub use window::{BadInitialWindow, InitialWindow, Window};
