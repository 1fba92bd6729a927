//! Raw frames: AF_PACKET rings, TAP and TUN devices, offloads and clocks.
//!
//! Everything acts in the network namespace of the calling thread at the moment of opening; an
//! open descriptor may then be used anywhere. Nothing here waits: descriptors are non-blocking,
//! and the caller polls them.
//!
//! | to | use |
//! |---|---|
//! | receive many frames, with the kernel's time of arrival | [`RxRing`] |
//! | observe an interface, some milliseconds late | [`BlockRing`] |
//! | give up the rights that opening needed | [`privileges`] |
//! | keep them in another process, for one piece of work | [`Keeper`] |
//! | send many frames by one system call | [`SendBatch`] on a [`PacketSocket`] |
//! | carry frames from port to port without allocation | [`OpenPort`], [`Outlet`], [`Pool`] |
//! | be the far end of an interface (root) | [`Tap`], [`receive`], [`send`] |
//! | be all that lies behind an interface, by IP packets | [`Tun`], [`receive`], [`send`] |
//! | make a node's frames leave as on a wire | [`offload::disable`] |
//! | have the kernel take ESP out of UDP | [`decapsulate_esp`] |
//! | tell the time | [`clock`] |
//! | be scheduled in time | [`thread`], in a user namespace too: [`realtime`] |

mod batch;
mod block_ring;
pub mod capture;
pub mod clock;
mod error;
mod esp_in_udp;
mod keeper;
pub mod memory;
pub mod offload;
mod poller;
mod pool;
mod port;
pub mod privileges;
pub mod realtime;
mod ring;
mod socket;
mod stamp;
mod sys;
mod tap;
pub mod thread;
mod tun;
pub mod vnet;

pub use batch::{SendBatch, receive, send};
pub use block_ring::{BlockFrame, BlockFrames, BlockRing, BlockRingOptions, FilterInstruction};
pub use error::Error;
pub use esp_in_udp::decapsulate_esp;
pub use keeper::Keeper;
pub use poller::{Poller, Readiness};
pub use pool::{Buffer, Pool, PoolOptions};
pub use port::{BATCH, OpenPort, Outlet, Port, PortCounters, PortOptions, Sent, Sink, Taken};
pub use ring::{RingOptions, RingStatistics, RxFrame, RxRing};
pub use socket::{Fanout, PacketSocket, SocketOptions};
pub use sys::interface_index;
pub use tap::{Tap, has_vnet_header};
pub use tun::Tun;
