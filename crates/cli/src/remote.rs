//! Services of the program that are for this machine.

use std::net::SocketAddr;

use fault::{Fault, Problem};

/// Refuses an address that others can come to, unless that was `allowed` by `--allow-remote`.
pub fn only_local(option: &str, address: SocketAddr, allowed: bool) -> Result<(), Problem> {
    if address.ip().is_loopback() || allowed {
        return Ok(());
    }
    let what = format!("{option} {address}: other machines could come there");
    Err(Problem::new(Fault::Caller, what).with_remedy("write 127.0.0.1, or add --allow-remote"))
}
