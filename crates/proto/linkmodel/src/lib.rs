//! A pure model of one direction of a link: no clock, no IO, no randomness but that of a seed.
//!
//! A frame passes these stages in this order:
//!
//! ```text
//!   handle_frame(now)
//!       |
//!     middlebox -------> dropped: Middlebox     a SYN with data, which it may also strip of it
//!       |
//!     loss ------------> dropped: Loss          Bernoulli, Gilbert-Elliott
//!       |
//!     corruption                                one bit inverted
//!       |
//!     duplication                               the frame twice
//!       |
//!     queue -----------> dropped: QueueFull     drop-tail in packets or bytes, unlimited, CoDel
//!       |   `----------> dropped: Codel
//!     rate                                      fixed, or a capacity trace; none: at once
//!       |
//!     outage ----------> dropped: Outage        frames wait before the rate, or are lost after it
//!       |
//!     delay + jitter --> dropped: DelayLineFull
//!       |
//!     reorder                                   a frame may be sent ahead; else order is kept
//!       |
//!   poll(now)
//! ```
//!
//! [`Link`] is the machine, [`LinkConfig`] what it is made from, [`Path`] both directions.
//! [`profiles`] are named paths with their sources, a [`Drive`] draws the capacity of a mobile link. All configurations are read from and written to
//! text by serde.
//!
//! ```
//! use linkmodel::{Link, LinkConfig, Output};
//! use units::Time;
//!
//! let config: LinkConfig = toml::from_str(r#"
//!     delay = "20ms"
//!     loss = { burst = { loss = "1%", length = 4 } }
//!     jitter = { normal = "2ms" }
//!     rate = "10mbit/ip"
//!     queue = { packets = 1000 }
//! "#)?;
//! let mut link = Link::new(config, 7)?;
//! let refused = link.handle_frame(Time::ZERO, vec![0u8; 1514]);
//! assert!(refused.is_ok());
//! while let Some(at) = link.next_event() {
//!     while let Some(output) = link.poll(at) {
//!         let Output::Deliver { due, .. } = output else { continue };
//!         // 1500 bytes at 10 Mbit/s take 1.2 ms.
//!         assert!(due >= Time::from_micros(21_200));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it does not model: ECN marking, several queues, links that share a medium, a rate that
//! depends on the frames. A reordered or corrupted frame is not sent again by the link.
//!
//! Memory is bounded: [`DELAY_LINE_FRAMES`] and [`DELAY_LINE_BYTES`] limit what is on its way and,
//! apart from that, what waits. After it has grown to its load the model allocates nothing per frame.
#![forbid(unsafe_code)]

mod codel;
mod config;
mod counters;
mod delay_line;
mod drive;
mod error;
mod frame;
pub mod fuzz;
mod jitter;
mod link;
mod loss;
mod middlebox;
mod path;
mod profile;
pub mod script;
mod seed;
mod text;
mod trace;
mod transmitter;
mod validate;

pub use config::{
    Codel, DELAY_LINE_BYTES, DELAY_LINE_FRAMES, LinkConfig, MAX_DELAY, Outage, OutageFrames, Queue,
    RateSource, Reorder,
};
pub use counters::{Counters, DropTallies, Tally};
pub use drive::{Capacity, Drive, Handover, Level, State, Stretch};
pub use error::ConfigError;
pub use frame::{DropCause, Dropped, Frame, Output};
pub use jitter::{DelayTable, Jitter, Normal, Pareto};
pub use link::Link;
pub use loss::{GilbertElliott, Loss};
pub use middlebox::Middlebox;
pub use path::Path;
pub use profile::{Profile, ProfileError, UnknownProfile, profile, profiles};
pub use seed::mix;
pub use trace::{Trace, TraceError};
