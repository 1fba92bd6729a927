//! The observe study: how long do real clients take to set up TLS, by version, as the packets at the
//! server show it?
//!
//! [`Digest`] takes the records of `observe` one at a time, in bounded memory; [`findings()`] says what
//! they say together, [`Findings::report`] and [`Findings::text`] put it before people.
//! [`Lab`] is the study: it makes connections in the lab with known ground truth, and compares.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod before_after;
mod change;
mod claims;
pub mod difference;
mod digest;
mod findings;
pub mod modes;
mod present;
mod published;
pub mod reading;
mod reasons;
#[cfg(test)]
mod replay;
pub mod tickets;
pub mod truth;

pub use change::Change;
pub use digest::{
    CrossNames, Digest, Fate, Frames, Kind, Less, Offers, Options, OptionsError, Twice,
};
pub use findings::{
    Binned, ClassRow, Count, Curve, FallbackRow, Findings, Group, Groups, ModesOf, Names, Reason,
    Reported, Stretch, findings, findings_on,
};
pub use truth::Lab;
