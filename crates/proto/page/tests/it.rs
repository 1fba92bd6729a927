//! Pages and loads from outside.

mod exact;
mod har;
mod net;
mod policy;
mod properties;
mod visits;
