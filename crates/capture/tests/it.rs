//! Captures as files and streams.

mod common;
mod formats;
mod hostile;
mod merge;
