//! Pages and loads from outside.

mod ahead;
mod content;
mod exact;
mod fuzz_entries;
mod har;
mod net;
mod policy;
mod properties;
mod visits;
