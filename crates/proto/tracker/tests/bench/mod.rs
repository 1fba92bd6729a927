//! How fast packets are taken.

pub mod established;
pub mod handle_packet;
