//! Pages and loads from outside.

mod exact;
mod fuzz_entries;
mod har;
mod net;
mod policy;
mod properties;
mod visits;
