//! Nodes in network namespaces, emulated links between them, captures at any node.
//!
//! ```no_run
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     lab::enter(&lab::EnterOptions::new())?; // first thing, before any thread
//!     let mut lab = lab::Lab::new(lab::LabOptions { seed: 7, ..Default::default() })?;
//!     let client = lab.add_node("client")?;
//!     let server = lab.add_node("server")?;
//!     let path = linkmodel::Path::symmetric("20ms".parse()?);
//!     lab.connect(&client, &server, &path)?;
//!     let address = server.addr4()?;
//!     server.spawn(move || async move { /* listen on address */ }).join()?;
//!     Ok(())
//! }
//! ```
//!
//! A node is a thread in a network namespace; a link is the link model, pumped in real time
//! between two of them. As an ordinary user all of it lives in a user namespace. Nothing survives
//! the process: no namespace has a name, and all processes are in a process namespace that ends
//! with it, whatever ends it.

mod address;
mod calibrate;
mod capture;
mod comments;
mod device;
mod doctor;
mod download;
mod enter;
mod error;
mod join;
#[allow(clippy::module_inception)]
mod lab;
mod link;
mod netem;
mod netlink;
mod node;
mod options;
mod outside;
mod pcapng;
mod program;
mod setting;
mod steer;
mod tcp;
mod wiring;

pub use address::{Addresses, NotPrefix, Prefix};
pub use calibrate::calibrate;
pub use capture::{Capture, CaptureOptions, CaptureStats, OwnedFrame};
pub use device::{Device, DeviceKind};
pub use doctor::{Fact, doctor};
pub use download::{Download, Offer};
pub use enter::{Denied, EnterError, EnterOptions, Entered, alone, enter, entered, inside};
pub use error::Error;
pub use join::JoinHandle;
pub use lab::Lab;
pub use link::{End, Link};
pub use node::Node;
pub use options::{Backend, LabOptions, LinkOptions, NodeOptions, UnknownBackend};
pub use outside::Outside;
pub use packet::capture::{Captured, Direction};
pub use program::{Event, HeldSignals, Program, Ready, Running, Stream};
pub use tcp::TcpSocket;
pub use wiring::netem_available;

/// The MTU of a link that does not say its own: what the Internet's paths have.
pub const MTU: u32 = 1500;
