//! Secured links as pure data planes: frames in, frames out, in place, without allocation.
//!
//! | module | what | source |
//! |---|---|---|
//! | [`macsec`] | MACsec: secure channels and associations, replay protection, the standard's counters | IEEE 802.1AE-2018 |
//! | [`mka`] | MACsec's key agreement with a pre-shared key | IEEE 802.1X-2020 §9 |
//! | [`esp`] | ESP: sequence numbers of 32 and 64 bits, anti-replay | RFC 4303 |
//! | [`wireguard`] | WireGuard's transport data | the WireGuard paper §5.4.6 |
//! | [`vpws`] | Ethernet frames across an MPLS network: a pseudowire's two ends and what swaps labels | RFC 4448, 3032 |
//! | [`vxlan`], [`l2tp`] | Ethernet frames across an IP network | RFC 7348, 3931 |
//! | [`underlay`] | the headers of that network around them: IPv4 and IPv6, UDP, PPPoE | RFC 791, 8200, 768, 2516 |
//! | [`plane`] | what each node of a path does with a frame | the MACsec paper |
//! | [`path`] | a path of such links: nodes, what protects, where; how long frames become, and which MTU is left | the MACsec paper |
//!
//! A frame lies in a buffer with room before and behind it ([`Slot`]). Sealing makes it longer at both ends;
//! opening makes it shorter.
//!
//! **A nonce is never used twice with a key.** Whoever seals owns key and numbers, can neither be
//! cloned nor be set back, and each seal uses up one number ([`numbers::Numbers`]); after the last one
//! there is no further. Keys come as a [`Secret`], which is used up too. [`mka`] makes each of its keys an
//! association to send with once under a CAK, whatever is replayed to it. Who makes a [`Secret`] by other means sees
//! to it that the same bytes do not become a second one for sealing.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod aead;
mod error;
pub mod esp;
pub mod fuzz;
pub mod l2tp;
pub mod macsec;
pub mod mka;
pub mod numbers;
pub mod path;
pub mod plane;
pub mod replay;
mod secret;
mod slot;
pub mod underlay;
pub mod vpws;
pub mod vxlan;
pub mod wireguard;

pub use error::{KeyError, SealError};
pub use secret::Secret;
pub use slot::Slot;

/// The length that an IP packet says of itself; `None` if it is none or longer than what there is.
fn ip_packet_len(bytes: &[u8]) -> Option<usize> {
    if let Ok(packet) = wire::ipv4::Packet::new_checked(bytes) {
        let header = wire::ipv4::HEADER_LEN.saturating_add(packet.options().len());
        return Some(packet.payload_len().saturating_add(header));
    }
    let packet = wire::ipv6::Packet::new_checked(bytes).ok()?;
    Some(packet.payload_len().saturating_add(wire::ipv6::HEADER_LEN))
}
