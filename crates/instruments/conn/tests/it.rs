//! Connections on loopback, timed.

mod common;
mod failures;
mod fast_open;
mod probe;
mod quic;
mod tcp;
