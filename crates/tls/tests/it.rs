//! TLS libraries behind one interface.

mod beliefs;
mod certificates;
mod chains;
mod client_certificates;
mod common;
mod ech;
mod faults;
mod handshakes;
mod hostile;
mod key_log;
mod names;
mod offers;
mod quic;
mod refusals;
