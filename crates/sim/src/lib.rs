//! Virtual time: nodes joined by model links, seeded and exact.
//!
//! A [`Node`] is a protocol machine without clock, sockets or randomness of its own. [`Sim`] joins
//! nodes by [`linkmodel::Path`]s and calls them in a fixed order, so that the same seed always gives
//! the same run, to the nanosecond:
//!
//! ```text
//!   events are ordered by   1. time
//!                           2. node (by number)
//!                           3. within a node: frames in the order in which they were sent
//!                              (anywhere in the simulation), then the timeout
//! ```
//!
//! After its events of an instant a node is asked for frames to transmit until it has none. A frame
//! that arrives in the same instant, over a link without delay, is an event of another round of that
//! instant.
//!
//! [`replay()`] and [`replay_link`] send a schedule of frames through the model alone; a driver on wall
//! time compares itself with the result.
#![forbid(unsafe_code)]

mod capture;
mod node;
mod replay;
mod world;

pub use capture::{Capture, Captured, What};
pub use node::{Node, NodeId};
pub use replay::{Fate, Fates, replay, replay_link};
pub use world::{Connection, Limits, LinkId, Outcome, Sim, Stopped};
