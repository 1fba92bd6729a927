//! Nodes of secured links on wall time: frames from port to port through their data planes.
//!
//! ```text
//! tester --ring--> node 0 --link--> node 1 --link--> … node n --sendmmsg--> tester
//!                  hop              hop                hop
//! ```
//!
//! A [`Chain`] is nodes in a row ([`seclink::plane`]) with a link between each two of them: veth interfaces or TAP
//! devices ([`Link::Ports`]), over which frames really go, or none at all ([`Link::InThread`]), where one node hands
//! the frame to the next in place. So a hop of a microsecond can be measured as such: a veth adds its own time.
//!
//! One thread does all of it by default, or one each direction ([`Threads`]). It takes up to
//! [`packet::BATCH`] frames from a ring at a time, works on each in place, and sends what came of them by one system
//! call. Where a processor is left over it spins, since a wake-up takes some tens of microseconds; else it blocks
//! ([`Wait`]).
//!
//! Call order: [`packet::OpenPort::open`] in each node's namespace with [`Options::ports`], [`seclink::plane::nodes`],
//! [`start`]; then [`Handle`] to read counters, which takes no lock and does not disturb the engine, and
//! [`Handle::stop`].
//!
//! # What it costs
//! Per frame two copies (ring to buffer, buffer to the kernel), no allocation, no lock; receiving takes no system
//! call, sending one for up to 64 frames. The kernel's work to send a frame includes that of the receiving
//! interface, which runs in the sender's context.
//!
//! # Memory
//! [`Options::buffers`] x 2.2 KiB a thread, touched as it is used, and [`Options::ring_frames`] x 2.1 KiB of
//! kernel memory for each AF_PACKET port.
#![forbid(unsafe_code)]

mod board;
mod chain;
mod error;
mod handle;
mod options;
mod segment;
mod stats;
mod worker;

pub use chain::{Chain, Link};
pub use error::Error;
pub use handle::{Handle, start};
pub use options::{Options, Threads, Wait};
pub use stats::{Mode, NodeStats, Passed, SegmentStats, Stats};
