//! The crate from outside, on loopback.

mod common;
mod early;
mod exchange;
mod flow;
mod hostile;
mod judges;
mod push;
mod spdy_session;
