//! Connections on loopback, timed.

mod common;
mod failures;
mod fast_open;
mod names;
mod probe;
mod quic;
mod servers;
mod tcp;
