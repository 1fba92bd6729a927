//! A browser over real connections, and the lab that it loads pages in.
//!
//! [`page::Load`] decides what to fetch, when and on which connection; [`Browser`] does it: it asks a
//! [`names::Resolver`], opens connections by [`web::Client`], sends requests and tells the load what
//! happened. [`Bed`] has the other side: lanes, each a client and a server joined by a link of its
//! own, where the server answers for every host of a page at an address of its own and says by DNS
//! where that is. [`Setting::chromium`] has a real browser load in the place of ours, from the same server
//! over the same link.
#![forbid(unsafe_code)]

mod bed;
mod cross;
mod drive;
mod error;
mod fast_open;
mod kept;
pub mod names;
mod pushed;
mod setting;
mod site;
mod user_tcp;
mod watch;

pub use bed::{Bed, Before, Lane};
pub use cross::Crossed;
pub use drive::Browser;
pub use error::Error;
pub use kept::{Keeping, Kept, Side};
pub use setting::{Carrier, CrossTraffic, Early, ServerPush, Setting, Tcp, Windows};
pub use site::PageSite;
pub use watch::{AboveTls, Seen, TcpStalls, Upload};
