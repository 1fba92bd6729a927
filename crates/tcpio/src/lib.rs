//! Our TCP on a link or a TUN device, as tokio streams.
//!
//! A [`Stack`] has IP addresses of its own, which the kernel does not own: on an Ethernet interface
//! by AF_PACKET, where it answers ARP and neighbour solicitations, or behind a TUN device. TCP
//! itself is crate `tcp`, which knows no sockets and no clock; here are the device, the neighbours,
//! the task that drives it ([`Stack::open`] spawns it) and the streams.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tcpio::{DeviceOptions, Stack, StackOptions};
//! use tokio::io::AsyncWriteExt;
//!
//! let device = DeviceOptions::Interface { name: "eth0".into(), vnet_header: false };
//! let stack = Stack::open(StackOptions::new(device, vec!["192.0.2.7/24".parse()?]))?;
//! let mut stream = stack.connect("192.0.2.1:80".parse()?, tcp::ConnectOptions::default())?;
//! stream.connected().await?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
//! stack.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | have addresses of one's own | [`Stack`], [`StackOptions`] |
//! | connect | [`Stack::connect`], [`TcpStream`] |
//! | be connected to | [`Stack::listen`], [`TcpListener`] |
//!
//! What it does not do: duplicate address detection, router discovery, IGMP and MLD, IP fragments,
//! ICMP echo, UDP, and connections of a stack to itself or to the kernel of its own host.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod device;
mod discovery;
mod driver;
mod engine;
mod error;
mod filter;
mod interface;
mod listener;
mod neighbours;
mod options;
mod outbox;
mod rings;
mod routes;
mod shared;
mod stack;
mod stream;
mod waiters;

pub use engine::StackCounters;
pub use error::Error;
pub use listener::TcpListener;
pub use options::{DeviceOptions, MacAddr, StackOptions};
pub use routes::InterfaceAddress;
pub use stack::{Stack, StackInfo};
pub use stream::TcpStream;
