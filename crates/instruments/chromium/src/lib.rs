//! Chromium's headless shell as a page loader: a real browser beside `browser`'s.
//!
//! [`find()`] looks for the program, [`Chromium::start`] runs it on a node of the lab, with a folder of its
//! own that is gone with it, and [`Load`] loads a page once for each visit, by DevTools over a
//! WebSocket on the node's thread. A page is served as [`page::content`] has it. What comes out is a
//! [`Visit`]: [`page::Loaded`], as our own loader gives it, with the protocol of each object and the time
//! of the load event beside.
//!
//! [`View`] shows a page of one's own, a report, and looks at it.
//!
//! The headless shell, not the whole browser: it opens no connections ahead of the first request, which
//! would hide a part of what is measured. A first visit is a new browser context, of which everything
//! is new: cache, names, connections, tickets.
//!
//! Everything that the browser says is taken for a stranger's: messages, events and times are bounded.
#![forbid(unsafe_code)]

mod devtools;
mod error;
mod find;
mod load;
mod message;
mod process;
mod recording;
mod view;

pub use error::Error;
pub use find::{NotInstalled, PACKAGE, find};
pub use load::{Address, Load, Wanted};
pub use process::{Chromium, Http, Setting};
pub use recording::{Fetched, Visit};
pub use view::View;
