//! MACsec's key agreement (IEEE 802.1X-2020 §9) with a pre-shared CAK: who is there, who makes keys, which key
//! is in use.
//!
//! A [`Participant`] takes packets and the time, and gives packets to be sent and [`Action`]s for
//! [`macsec`](crate::macsec). In-service upgrades, suspension and groups of several CAKs are not here.

mod frame;
mod keys;
mod participant;
mod peers;
mod sak;

pub use keys::Cak;
pub use participant::{Participant, Rejected, Settings};
pub use sak::Action;

/// Bytes that nobody can foretell, as the system's generator gives them: member identifiers and keys are made of
/// them.
pub trait Randomness {
    /// Fills `bytes` with such.
    fn fill(&mut self, bytes: &mut [u8]);
}
