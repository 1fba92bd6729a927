//! Secured links as pure data planes: frames in, frames out, in place, without allocation.
//!
//! | module | what | source |
//! |---|---|---|
//! | [`macsec`] | MACsec: secure channels and associations, replay protection, the standard's counters | IEEE 802.1AE-2018 |
//! | [`mka`] | MACsec's key agreement with a pre-shared key | IEEE 802.1X-2020 §9 |
//! | [`esp`] | ESP: sequence numbers of 32 and 64 bits, anti-replay | RFC 4303 |
//! | [`wireguard`] | WireGuard's transport data | the WireGuard paper §5.4.6 |
//! | [`path`] | a path of such links: nodes, what protects, where; how long frames become | the MACsec paper |
//!
//! A frame lies in a buffer with room before and behind it ([`Slot`]). Sealing makes it longer at both ends;
//! opening makes it shorter.
//!
//! **A nonce is never used twice with a key.** Whoever seals owns key and numbers, can neither be
//! cloned nor be set back, and each seal uses up one number ([`numbers::Numbers`]); after the last one
//! there is no further. Keys come as a [`Secret`], which is used up too. What a caller must see to is that the
//! same bytes are not made a second secret for sealing.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod aead;
mod error;
pub mod esp;
pub mod fuzz;
pub mod macsec;
pub mod mka;
pub mod numbers;
pub mod path;
pub mod replay;
mod secret;
mod slot;
pub mod wireguard;

pub use error::{KeyError, SealError};
pub use secret::Secret;
pub use slot::Slot;
