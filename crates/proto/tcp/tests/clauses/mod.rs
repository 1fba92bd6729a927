//! Clause by clause: one endpoint against segments made by hand, at virtual times.

mod harness;

mod closing;
mod cookies;
mod device;
mod handshake;
mod icmp;
mod interface;
mod memory;
mod options;
mod orphans;
mod resets;
mod syn_data;
mod time_wait;
mod timing;
mod windows;
