//! Other implementations judge ours: npm's `spdy` as server and as client, tshark's dissector.

// The library has no sockets, processes and environment; its judges are reached by them.
#![allow(clippy::disallowed_methods)]

mod carrier;
mod npm;
mod tshark;
