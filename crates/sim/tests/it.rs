//! Virtual time.

mod transcripts;
mod transfer;
