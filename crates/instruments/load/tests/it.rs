//! The load generator against servers that behave and that do not.

mod failing;
mod serving;
mod support;
