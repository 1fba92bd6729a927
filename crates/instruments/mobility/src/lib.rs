//! A host that moves between two sites of an L2VPN, in the lab of a guest ([`guest()`]).
//!
//! ```text
//!              ce1 --1-- pe1 --3--+
//! sta ((radio))                   p --5-- pe3 ==6,7== ce3 --8-- peer
//!              ce2 --2-- pe2 --4--+
//! ```
//!
//! Each site's customer edge has an access point of its own (a radio that the kernel simulates, and hostapd). Two
//! pseudowires by MPLS and tc join the sites to ce3, behind which the host's peer is. Frames are protected between the
//! edges (MACsec, ESP, WireGuard), or between the host and ce3.
//!
//! [`Bed::stand`] stands it up for one scenario; [`Bed::run`] attaches the host to the first place, sends numbered
//! frames both ways, has the host move in the middle of it, and says what was seen.
//!
//! What there is not, and why:
//!
//! - Mobile IP: Debian has the kernel's part of Mobile IPv6 and no daemon for it, nor one for Mobile IPv4.
//! - MACsec on the host: a station's frames reach its access point as 802.11 frames, which its keys protect.
//! - Frames that a radio repeats: the simulated radios lose none. [`handoff::Scenario::radio_loss`] is what is left
//!   after that, lost once and for all.
//! - Bridges that wait for the host to speak: access points announce a station to the bridge as soon as it is
//!   authorized, so that all bridges know its place within a millisecond.
#![forbid(unsafe_code)]

mod bed;
mod certificates;
mod error;
mod events;
mod holds;
mod layout;
mod mover;
mod place;
mod radio;
mod sites;
mod stream;
mod tcp;
mod traffic;
mod tunnel;
mod wait;
mod wiring;

pub use bed::Bed;
pub use error::Error;
pub use place::guest;
