//! How labs, nodes and links are made.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};

use crate::address::{Addresses, Prefix};
use crate::{Error, MTU};

/// What carries frames between nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// [`Backend::Tap`] where it may be used, else [`Backend::Veth`].
    #[default]
    Auto,
    /// The link pump on veth pairs. Works for every user.
    Veth,
    /// The link pump on TAP devices: less CPU time a frame, but /dev/net/tun is root's on most
    /// systems.
    Tap,
    /// The kernel's sch_netem on a veth pair between the nodes.
    Netem,
    /// A veth pair between the nodes and nothing else: what a link costs that emulates nothing.
    /// Only the perfect path can be had of it.
    Direct,
}

const BACKENDS: [(Backend, &str); 5] = [
    (Backend::Auto, "auto"),
    (Backend::Veth, "veth"),
    (Backend::Tap, "tap"),
    (Backend::Netem, "netem"),
    (Backend::Direct, "direct"),
];

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = BACKENDS.iter().find(|(backend, _)| backend == self).map_or("", |(_, n)| n);
        f.write_str(name)
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        let found = BACKENDS.iter().find(|(_, name)| *name == text);
        found.map(|(backend, _)| *backend).ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// A text that names no backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a backend")]
pub struct UnknownBackend(String);

impl Explain for UnknownBackend {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write auto, veth, tap, netem or direct".into())
    }
}

/// How a lab is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabOptions {
    /// The seed from which every link's is derived, by its number.
    pub seed: u64,
    /// What carries frames, on links that do not say it themselves.
    pub backend: Backend,
    /// How links are pumped.
    pub pump: pump::Options,
    /// The processor that nodes stay on which do not say it themselves, so that the pump has another
    /// to itself; any if not given.
    pub node_cpu: Option<usize>,
}

/// How a node is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeOptions {
    /// The processor that it stays on, and what it runs; the lab's if not given.
    pub cpu: Option<usize>,
}

/// The least MTU of a link (RFC 791 §3.2).
const LEAST_MTU: u32 = 68;
/// The least MTU of a link with IPv6 (RFC 8200 §5).
const LEAST_MTU_IPV6: u32 = 1280;

/// How a link is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOptions {
    /// What carries its frames: what the lab's do if [`Backend::Auto`].
    pub backend: Backend,
    /// Bytes of the longest IP packet: from 68 to 65,535, on a TAP device to 65,521. A link of less
    /// than 1280 has no IPv6. Captures keep 1,522 bytes of a frame unless their ring has more.
    pub mtu: u32,
    /// Whether neighbours are found by ARP and neighbour discovery. If not, each end knows the
    /// other's Ethernet address from the start, and the link carries the experiment's frames alone.
    pub arp: bool,
    /// Whether IPv6 addresses are probed for duplicates before they are used (RFC 4862 §5.4), which
    /// takes one to two seconds. Needs `arp`.
    pub dad: bool,
    /// The ends' addresses.
    pub addresses: Addresses,
    /// The ends' Ethernet addresses; by the link's number if not given.
    pub macs: Option<[[u8; 6]; 2]>,
}

impl Default for LinkOptions {
    fn default() -> Self {
        let addresses = Addresses::default();
        LinkOptions {
            backend: Backend::Auto,
            mtu: MTU,
            arp: false,
            dad: false,
            addresses,
            macs: None,
        }
    }
}

impl LinkOptions {
    /// Checks that a link can be so, on this backend.
    pub(crate) fn check(&self, backend: Backend) -> Result<(), Error> {
        let most = match backend {
            // The kernel's limit for a device with an Ethernet header of its own.
            Backend::Tap => 65_535 - 14,
            _ => 65_535,
        };
        if !(LEAST_MTU..=most).contains(&self.mtu) {
            return Err(Error::Mtu { mtu: self.mtu, backend, least: LEAST_MTU, most });
        }
        let wrong = |problem| Err(Error::LinkOptions { problem });
        if self.dad && !self.arp {
            return wrong("duplicate addresses are detected only where neighbours are discovered");
        }
        let Addresses::Given([first, second]) = &self.addresses else { return Ok(()) };
        let all: Vec<IpAddr> = first.iter().chain(second).map(|prefix| prefix.address()).collect();
        if all.iter().enumerate().any(|(n, address)| all.iter().skip(n + 1).any(|a| a == address)) {
            return wrong("the same address is given twice");
        }
        if self.mtu < LEAST_MTU_IPV6 && all.iter().any(IpAddr::is_ipv6) {
            return wrong("IPv6 needs an MTU of 1280 at least");
        }
        Ok(())
    }

    /// The addresses of end `side` (1 or 2) of link `number` on a node.
    pub(crate) fn addresses_of(&self, number: u8, side: u8, ipv6: bool) -> Vec<Prefix> {
        let ipv6 = ipv6 && self.mtu >= LEAST_MTU_IPV6;
        match (&self.addresses, side) {
            (Addresses::Numbered, _) => {
                let defaults = Prefix::defaults(number, side).into_iter();
                defaults.filter(|prefix| ipv6 || prefix.address().is_ipv4()).collect()
            }
            (Addresses::Given([first, _]), 1) => first.clone(),
            (Addresses::Given([_, second]), _) => second.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read_as_they_are_printed() {
        for (backend, name) in BACKENDS {
            assert_eq!(backend.to_string(), name);
            assert_eq!(name.parse(), Ok(backend));
        }
        assert!("Veth".parse::<Backend>().unwrap_err().in_one_text().contains("write auto"));
    }

    fn link(mtu: u32, addresses: [&[&str]; 2]) -> LinkOptions {
        let parse = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        let addresses = Addresses::Given(addresses.map(parse));
        LinkOptions { mtu, addresses, ..LinkOptions::default() }
    }

    #[test]
    fn what_no_link_can_be_is_refused() {
        let usual = LinkOptions::default();
        assert!(usual.check(Backend::Veth).is_ok());
        for (mtu, backend, fits) in [
            (67, Backend::Veth, false),
            (68, Backend::Netem, true),
            (65_535, Backend::Veth, true),
            (65_536, Backend::Direct, false),
            (65_521, Backend::Tap, true),
            (65_522, Backend::Tap, false),
        ] {
            let checked = LinkOptions { mtu, ..usual.clone() }.check(backend);
            assert_eq!(checked.is_ok(), fits, "{mtu} on {backend}");
            assert!(fits || matches!(checked, Err(Error::Mtu { .. })));
        }
        for wrong in [
            LinkOptions { dad: true, ..usual },
            link(1500, [&["10.0.0.1/24", "10.0.0.1/8"], &[]]),
            link(1500, [&["fd00::1/64"], &["fd00::1/64"]]),
            link(1279, [&["fd00::1/64"], &[]]),
        ] {
            assert!(matches!(wrong.check(Backend::Veth), Err(Error::LinkOptions { .. })));
        }
    }

    #[test]
    fn ends_have_the_addresses_that_were_asked_for() {
        let texts = |options: &LinkOptions, side, ipv6| {
            let addresses = options.addresses_of(3, side, ipv6);
            addresses.iter().map(Prefix::to_string).collect::<Vec<_>>()
        };
        let usual = LinkOptions::default();
        assert_eq!(texts(&usual, 1, true), ["10.77.3.1/24", "fd77:3::1/64"]);
        assert_eq!(texts(&usual, 2, false), ["10.77.3.2/24"]);
        assert_eq!(texts(&LinkOptions { mtu: 1279, ..usual }, 2, true), ["10.77.3.2/24"]);
        let given = link(1500, [&["192.0.2.1/31"], &[]]);
        assert_eq!(texts(&given, 1, true), ["192.0.2.1/31"]);
        assert!(texts(&given, 2, true).is_empty());
    }
}
