//! Servers, clients, tickets and captures on the lab's nodes, and three views of each connection.
//!
//! A [`Testbed`] has one server node and a node for each kind of client, joined to it by a link of its
//! own. A study says by a type of its own, the variant, what sets two servers apart: [`Testbed::serve`]
//! starts the server of a variant, [`Testbed::reach`] says how a client reaches it, [`Testbed::prime`]
//! fetches the tickets and Fast Open cookies that later connections need. A [`Capture`] at either end
//! gives the records of the connections that passed; [`Views`] holds what the client, the server and the
//! capture say of one connection against each other.
#![forbid(unsafe_code)]

mod bed;
mod beside;
mod capture;
mod endpoints;
mod error;
mod prime;
mod shown;
mod views;
mod way;
mod wire_view;

pub use bed::Testbed;
pub use beside::Download;
pub use capture::Capture;
pub use endpoints::Endpoints;
pub use error::Error;
pub use shown::{Carrier, Counted, ShowOptions, Showing, Shown, count};
pub use views::Views;
pub use way::Way;
pub use wire_view::WireView;

/// The name that the servers' certificates carry.
pub const SERVER_NAME: &str = "server.wiretax.test";
/// Early data that a server takes, in bytes: far more than the one byte of a request.
pub const MAX_EARLY_DATA: u32 = 16_384;
