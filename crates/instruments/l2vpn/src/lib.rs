//! Paths of secured links over an MPLS pseudowire, in the lab.
//!
//! A [`Topology`](seclink::path::Topology) is stood up between two testers' nodes: [`Standing::of_own`] out of our
//! engine, [`Standing::of_kernel`] out of what the Linux kernel has (macsec, xfrm, wireguard, l2tp, vxlan, mpls and
//! tc). Both have the same nodes, links, addresses and labels: those of [`ends`], which are functions of the
//! topology alone.
//!
//! ```text
//! tester1 --link 0-- node 0 --link 1-- node 1 -- … -- node n --link n+1-- tester2
//! ```
//!
//! Keys are made of a seed ([`keys()`]), so that a path can be made again; they protect nothing but a measurement.
//! They are not printed and stand in no command line.
#![forbid(unsafe_code)]

pub mod ends;
mod error;
pub mod kernel;
mod keys;
mod own;
mod stage;
mod standing;

pub use ends::{Direction, Side, Span};
pub use error::Error;
pub use kernel::KernelOptions;
pub use keys::{Key, keys};
pub use own::{Between, OwnOptions};
pub use standing::{Counted, End, Standing};
