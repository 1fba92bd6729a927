//! Work as data: a job as JSON, done by a thread or by a process, under a supervisor.
//!
//! A [`Worker`] does jobs of one kind. While it works, it streams events, samples and attachments; in
//! the end it gives an answer, or says why there is none. Who has a job done chooses its [`Place`]: a
//! thread of this process, or a host process of its own, so that a library that crashes, hangs or
//! writes rubbish takes nothing with it. What is asked and answered is the same.
//!
//! ```text
//! Host::run ── job ──> Place::Thread  ── Worker of the registry
//!     ^           └──> Place::Process ── frames on stdin ── serve ── Worker of the registry
//!     └── messages as they arise, then the answer ────────────┘
//! ```
//!
//! A host process answers by calling [`serve_stdio`] with the same registry, one job after another
//! until its standard input ends. [`Host`] gives it one job; a [`KeptHost`] stays for more. Its frames are read with
//! bounded memory, one at a time: a host that writes faster than its messages are taken waits.
#![forbid(unsafe_code)]

mod error;
mod frame;
mod kept;
mod message;
mod process;
mod run;
mod serve;
mod thread;
mod worker;

pub use error::HostError;
pub use frame::{FrameError, LONGEST_FRAME};
pub use kept::KeptHost;
pub use message::{Attachment, Message};
pub use process::Launch;
pub use run::{Host, Place};
pub use serve::{answer_in, question, serve, serve_stdio};
pub use worker::{Gone, Outlet, Registry, Worker};
