//! A cluster of Ballista on loopback: what its scheduler, its executors and the test that starts
//! them share.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::runtime::Runtime;

/// Where everything listens: on loopback and nowhere else.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Bytes of stack of each thread: plans are trees, and walked by recursion.
const STACK: usize = 16 << 20;

/// A port of loopback.
#[must_use]
pub const fn at(port: u16) -> SocketAddr {
    SocketAddr::new(LOOPBACK, port)
}

/// Makes this process end with the one that started it, however that ends.
///
/// # Errors
/// The kernel refuses.
pub fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// A runtime whose threads have room for plans.
///
/// # Errors
/// The system starts no threads.
pub fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(STACK)
        .enable_all()
        .build()
}
