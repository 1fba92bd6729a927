//! Raw samples as JSON Lines with a manifest, written as each run ends.
//!
//! A results folder holds
//!
//! | file | what |
//! |---|---|
//! | `manifest.json` | what was measured, where, by which build: [`Manifest`]; replaced atomically |
//! | `samples.jsonl` | one [`Sample`] a line, only ever appended to |
//! | `attachments/` | what samples and plans have beside their numbers: [`Attachment`], a file each |
//! | `lock` | whom to blame while a process writes: [`Recorder`] holds a `flock` on it |
//!
//! A folder may come from a stranger: all of it is reached through [`Folder`].
//!
//! # What survives what
//! Each sample is one `write` of a whole line as its run ends, so **every recorded sample survives
//! the death of the process**, kill -9 included. The file is synced to the disk every
//! [`Recorder::SYNC_INTERVAL`] while samples come, at [`Recorder::finish`] and when the recorder is
//! dropped: a **power loss** costs the samples of that interval at most, and those written right
//! before a longer pause until the kernel writes them back by itself (about 30 s). A line that a
//! kill, a power loss or a full disk cut short has no line feed: it is recognised by that, reported
//! as a [`TornLine`], left out by readers and cut off by [`Recorder::resume`].
//!
//! # Schema
//! Version [`Schema::CURRENT`]. A newer minor version may add fields: they are ignored. A newer
//! major version is refused. Samples that failed or timed out are data: they are kept, and count as
//! done for a resumed run.
#![forbid(unsafe_code)]

mod attachment;
mod environment;
mod error;
mod export;
mod finished;
mod folder;
mod line;
mod manifest;
mod plan;
mod recorder;
mod run;
mod sample;
mod source;
mod value;

pub use attachment::{Attachment, AttachmentKind, MAX_ATTACHMENT, PlanFiles, content_name};
pub use environment::{Environment, Touches, Warning};
pub use error::{Error, LineProblem, Problem};
pub use export::export_csv;
pub use finished::Finished;
pub use folder::{Folder, MAX_MANIFEST};
pub use line::{MAX_LINE, parse_line};
pub use manifest::{Manifest, Schema, Session, Tool, command_line, parse_manifest};
pub use plan::{Difference, plan_hash};
pub use recorder::{Recorder, Resumed};
pub use run::{MAX_POINTS, Run, Samples, TornLine, hold};
pub use sample::{Outcome, Sample};
pub use source::{Untraceable, short_commit};
pub use value::{Better, Clock, ValueKind};
