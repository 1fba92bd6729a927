//! Connections on loopback, timed.

mod client_certificates;
mod common;
mod failures;
mod fast_open;
mod fronts;
mod names;
mod opening;
mod probe;
mod quic;
mod servers;
mod tcp;
