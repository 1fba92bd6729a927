//! What a web page is, and what a browser does to load it: no clock, no sockets, no randomness but
//! that of a seed.
//!
//! [`Page`] is a tree of objects: which host each comes from, how large it is, what tells of it and
//! when. It is read from TOML or JSON ([`Page::from_toml`]), from what a browser saves ([`har`]) or from
//! files ([`listing`]), or made with the SPDY paper's counts ([`paper`]).
//!
//! [`Load`] is a browser with a [`Policy`] that loads one page, by HTTP/1.1, SPDY, HTTP/2 and HTTP/3
//! alike: the caller owns resolver, connections and time, does what it asks for and tells it what
//! happened. [`Memory`] is what it keeps from one load to the next: its [`Cache`], names, tickets and
//! open connections. What a load gives is [`Loaded`], a timeline for each object, which [`har::write`]
//! writes as HAR.
//!
//! [`Ahead`] says what a server pushes or names with a document before it is asked for; a load takes a
//! push that is of use, and refuses others.
//!
//! [`content`] has bodies for a page, by which a browser that is not ours finds the same objects.
//!
//! ```
//! use page::{Action, Browser, Carries, Certificate, Event, Load, Memory, Policy, Ready, paper};
//! use units::Time;
//!
//! let page = paper::page("google-play", 1)?;
//! let policy = Policy::of(Browser::Chromium);
//! let memory = Memory::new(&policy);
//! let mut now = Time::ZERO;
//! let mut load = Load::new(&page, policy, memory, now);
//! while !load.is_done() {
//!     let event = match load.poll() {
//!         // This network takes no time at all.
//!         Some(Action::Resolve { host }) => {
//!             Event::Resolved { host, addresses: vec![[10, 0, 0, 1].into()], valid_for: None }
//!         }
//!         Some(Action::Open { connection, .. }) => {
//!             let (carries, certificate) = (Carries::Many { limit: 100 }, Certificate::default());
//!             let ready =
//!                 Ready { tcp: None, carries, address: None, certificate, resumed: false };
//!             Event::Ready { connection, ready }
//!         }
//!         Some(Action::Send { object, .. }) => Event::Complete { object, reusable: true },
//!         // Nothing is pushed here.
//!         Some(Action::Close { .. } | Action::Take { .. } | Action::Refuse { .. }) => continue,
//!         None => {
//!             now = load.wakeup().expect("nothing is under way");
//!             Event::Wake
//!         }
//!     };
//!     load.handle(event, now);
//! }
//! let (loaded, memory) = load.finish(now);
//! assert!(loaded.is_complete());
//! assert_eq!(loaded.requests(), 52);
//! assert_eq!(memory.connections().count(), 17);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does not model: layout and what depends on it (images in view, lazy loading), scripts that
//! run longer than their children's delay says, redirects that a server decides on at load time, service
//! workers, range requests, HTTP/1.1 pipelining (both browsers have it off).
//! Memory is bounded whatever the events are: by the page's bounds, and by 2^20 entries of progress.
#![forbid(unsafe_code)]

mod ahead;
mod cache;
mod check;
pub mod content;
mod error;
pub mod fuzz;
pub mod har;
mod load;
mod memory;
mod page;
mod policy;
mod share;
mod source;
mod text;

pub use ahead::{Ahead, preload, preloads};
pub use cache::{Cache, Lookup, Storage, Validator};
pub use error::PageError;
pub use load::{
    Action, Arrival, ConnectionTimeline, Event, Failure, Load, Loaded, Opening, Outcome, Phases,
    PushId, Ready, Span, Timeline,
};
pub use memory::{Carries, Certificate, ConnectionId, Memory};
pub use page::{Caching, Found, HostId, Kind, Object, ObjectId, Page, Urgency};
pub use policy::{Browser, Hold, Policy, Treatment, Treatments};
pub use share::Share;
pub use source::{listing, paper};
pub use text::TextError;
