//! Daemons of networks inside the lab's nodes: access points ([`hostapd`]), stations and MACsec's key agreement
//! ([`supplicant`]), DHCP ([`dnsmasq`], [`dhcpcd`]), IKE ([`charon`]); and the kernel's own words ([`kernel`]).
//!
//! Each is configured by a typed value, which becomes a file in the program's own `/run`; no secret stands in a command
//! line. A [`Daemon`] dies with its node. What it writes is read as it comes, and understood by small functions of a
//! line ([`handoff::What`]).
#![forbid(unsafe_code)]

pub mod charon;
mod control;
mod daemon;
pub mod dhcpcd;
pub mod dnsmasq;
mod error;
pub mod hostapd;
pub mod kernel;
mod protection;
pub mod supplicant;
mod vici;

pub use control::Control;
pub use daemon::{Daemon, Seen};
pub use error::Error;
pub use protection::{Certificates, Passphrase, Protection};
