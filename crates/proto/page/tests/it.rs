//! Pages and loads from outside.

mod content;
mod exact;
mod fuzz_entries;
mod har;
mod net;
mod policy;
mod properties;
mod visits;
