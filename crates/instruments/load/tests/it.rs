//! The load generator against servers in this process.

mod addresses;
mod certificates;
mod failing;
mod http2;
mod judging;
mod serving;
mod support;
