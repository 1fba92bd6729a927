//! SSLmTCP without sockets: carriers joined in memory, and endpoints in virtual time.

mod common;
mod memory;
