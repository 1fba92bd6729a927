//! MACsec's key agreement (IEEE 802.1X-2020 §9) with a pre-shared CAK: who is there, who makes keys, which key
//! is in use.
//!
//! A [`Participant`] takes packets and the time, and gives packets to be sent and [`Action`]s for
//! [`macsec`](crate::macsec). In-service upgrades, suspension and groups of several CAKs are not here.
//!
//! **No key is used twice for sending under a CAK.** A peer is live by a fresh proof alone: it names a packet
//! that this side sent within the last six seconds. A key is taken only from the live key server, and only if that names
//! this member as live: so a member that restarts never gets a key of its earlier life. Each key is entered in a
//! ledger, which gives the right to its first use and has no other. Replays, delays and restarts therefore cost a fresh
//! key, never a nonce. This rests on [`Randomness`]: a member identifier that comes twice would bring an earlier
//! life's keys back.

mod frame;
mod identity;
mod keys;
mod ledger;
mod participant;
mod peers;
mod rejected;
mod sak;

pub use keys::Cak;
pub use participant::{Participant, Settings};
pub use rejected::Rejected;
pub use sak::Action;

/// Bytes that nobody can foretell, as the system's generator gives them. Member identifiers and keys are made of them:
/// each [`Participant`] needs other ones, after a restart too.
pub trait Randomness {
    /// Fills `bytes` with such.
    fn fill(&mut self, bytes: &mut [u8]);
}
