//! Captures as files and streams.

mod ahead;
mod common;
mod formats;
mod hostile;
mod merge;
