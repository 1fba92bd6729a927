//! Names, addresses and labels of a bed, as functions of its scenario alone.

use std::net::Ipv4Addr;

use handoff::{
    Access, Address, Domain, MOST_STATIONS, Scenario, Trigger, Tunnel, TunnelEnd, WifiSecurity,
};

use crate::Error;

/// A place where the host can be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    First,
    Second,
}

impl Site {
    pub(crate) const ALL: [Site; 2] = [Site::First, Site::Second];

    /// 1 or 2: in names, addresses, labels and links.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Site::First => 1,
            Site::Second => 2,
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Site::First => 0,
            Site::Second => 1,
        }
    }
}

/// Links by their numbers in the lab, which are part of their interfaces' names.
pub(crate) mod link {
    use super::Site;

    /// From a site's customer edge to its provider edge.
    pub(crate) const fn customer(site: Site) -> u8 {
        site.number()
    }

    /// From a site's provider edge to the provider.
    pub(crate) const fn provider(site: Site) -> u8 {
        2 + site.number()
    }

    /// From the provider to the far provider edge.
    pub(crate) const CORE: u8 = 5;

    /// From the far provider edge to the far customer edge: one for the pseudowire of each site.
    pub(crate) const fn far(site: Site) -> u8 {
        5 + site.number()
    }

    /// From the far customer edge to the peer.
    pub(crate) const PEER: u8 = 8;

    /// From a site's customer edge to the host: a cable.
    pub(crate) const fn cable(site: Site) -> u8 {
        8 + site.number()
    }

    /// The name of a link's interfaces.
    pub(crate) fn name(number: u8) -> String {
        format!("link{number}")
    }
}

/// The labels of a site's pseudowire.
pub(crate) mod label {
    use super::Site;

    /// On the site's own link to the provider, towards the far edge and back.
    pub(crate) const fn near(site: Site) -> (u32, u32) {
        (100 + site.number() as u32, 200 + site.number() as u32)
    }

    /// On the far edge's link to the provider, towards the far edge and back.
    pub(crate) const fn far(site: Site) -> (u32, u32) {
        (110 + site.number() as u32, 210 + site.number() as u32)
    }
}

/// The bridge of a site, or of both and the peer.
pub(crate) const BRIDGE: &str = "site";
/// The device of WireGuard on the host.
pub(crate) const HOST_TUNNEL: &str = "wg0";
/// WireGuard's port on the host's tunnel.
pub(crate) const HOST_PORT: u16 = 51_820;

/// Where the host's peer is, and which networks there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Both sites are in one layer-2 domain.
    pub(crate) one: bool,
    /// The tunnel ends on the host.
    pub(crate) host: bool,
}

impl Layout {
    pub(crate) fn of(scenario: &Scenario) -> Layout {
        Layout { one: scenario.domain == Domain::One, host: scenario.tunnels_from_host() }
    }

    /// Whether the peer is in the host's own network.
    pub(crate) const fn is_flat(self) -> bool {
        self.one && !self.host
    }

    /// An address in the network where the host is attached, of 24 bits.
    pub(crate) const fn lan(self, site: Site, host: u8) -> Ipv4Addr {
        let number = if self.one { 0 } else { site.number() };
        Ipv4Addr::new(10, 50, number, host)
    }

    pub(crate) const fn gateway(self, site: Site) -> Ipv4Addr {
        self.lan(site, 1)
    }

    /// The address that the host keeps where nobody gives it one.
    pub(crate) const fn kept(self) -> Ipv4Addr {
        self.lan(Site::First, 50)
    }

    /// The first and last address that a site's server gives.
    pub(crate) const fn pool(self, site: Site) -> (Ipv4Addr, Ipv4Addr) {
        (self.lan(site, 100), self.lan(site, 199))
    }

    /// The address that a server keeps for one of the host's interfaces, by its number from 0: of those in the pool.
    pub(crate) const fn reserved(self, site: Site, interface: u8) -> Ipv4Addr {
        self.lan(site, 101_u8.saturating_add(interface))
    }

    /// The far edge's address in the peer's network, of 24 bits.
    pub(crate) const fn far_gateway(self) -> Ipv4Addr {
        if self.is_flat() { self.lan(Site::First, 1) } else { Ipv4Addr::new(10, 52, 0, 1) }
    }

    pub(crate) const fn peer(self) -> Ipv4Addr {
        if self.is_flat() { self.lan(Site::First, 2) } else { Ipv4Addr::new(10, 52, 0, 2) }
    }

    /// The neighbour that the host sends through at a site.
    pub(crate) const fn next_hop(self, site: Site) -> Ipv4Addr {
        if self.is_flat() { self.peer() } else { self.gateway(site) }
    }

    /// Addresses of the pipe between a site and the far edge: the site's, and the far edge's.
    pub(crate) const fn pipe(self, site: Site) -> (Ipv4Addr, Ipv4Addr) {
        let number = site.number();
        (Ipv4Addr::new(10, 51, number, 1), Ipv4Addr::new(10, 51, number, 2))
    }

    /// The far edge's address as the tunnel of a host has it: one that does not move. The peer's network is what is
    /// protected, so that it is another one.
    pub(crate) const fn tunnel_gateway(self) -> Ipv4Addr {
        if self.one { self.lan(Site::First, 1) } else { Ipv4Addr::new(10, 53, 0, 1) }
    }

    /// The host's address inside its tunnel.
    pub(crate) const fn inner(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 60, 0, 2)
    }
}

/// The middle of a channel in the 2.4 GHz band, in MHz.
pub(crate) const fn frequency(channel: u8) -> u32 {
    2407 + 5 * channel as u32
}

/// Channels that a station of the 2.4 GHz band looks on where nobody tells it better.
pub(crate) const CHANNELS: u8 = 11;

/// Whether there can be such a bed.
pub(crate) fn check(scenario: &Scenario) -> Result<(), Error> {
    let wrong =
        |problem, instead| Err(Error::Scenario { name: scenario.name.clone(), problem, instead });
    let [first, second] = scenario.attachments.as_slice() else {
        return wrong("it has not two places of attachment", "give two, from and to");
    };
    for place in [first, second] {
        let wifi = place.access == Access::Wifi;
        if wifi
            && (place.ssid.is_empty()
                || place.ssid.len() > 32
                || place.ssid.contains(['"', '\n', '\\']))
        {
            return wrong("a network's name is none", "write 1 to 32 letters");
        }
        if wifi && !(1..=CHANNELS).contains(&place.channel) {
            return wrong("a channel is none of the 2.4 GHz band", "write 1 to 11");
        }
    }
    let wifi = [first, second].map(|place| place.access == Access::Wifi);
    if wifi == [true, true] && first.channel == second.channel {
        return wrong("both access points share a channel", "choose 1, 6 or 11 for each");
    }
    let same = first.ssid == second.ssid;
    match scenario.trigger {
        Trigger::Cable if wifi == [true, true] => {
            return wrong("there is no cable to pull", "make one attachment `access = \"lan\"`");
        }
        Trigger::Cable => {}
        _ if wifi != [true, true] => {
            return wrong("a place without a radio", "use the trigger `cable`");
        }
        Trigger::Signal | Trigger::Forced if !same => {
            return wrong(
                "a station roams within one network only",
                "give both places one ssid, or use the trigger `reconnect`",
            );
        }
        _ => {}
    }
    let layer3 = matches!(scenario.tunnel, Tunnel::Ipsec | Tunnel::IpsecMobike | Tunnel::WireGuard);
    match scenario.tunnel_end {
        TunnelEnd::Edge if layer3 && scenario.domain == Domain::One => {
            return wrong(
                "gateways that carry packets do not make one layer-2 domain",
                "use `domain = \"each\"`, or MACsec",
            );
        }
        TunnelEnd::Edge if scenario.tunnel == Tunnel::IpsecMobike => {
            return wrong("MOBIKE at edges that do not move", "use `tunnel-end = \"host\"`");
        }
        TunnelEnd::Host if scenario.tunnel == Tunnel::MacSec => {
            return wrong(
                "MACsec goes no further than one link, and a station's MACsec ends at its access point",
                "use `tunnel-end = \"edge\"`",
            );
        }
        _ => {}
    }
    if scenario.address == Address::Kept && scenario.domain == Domain::Each {
        return wrong("an address is kept in one layer-2 domain only", "use `domain = \"one\"`");
    }
    if !(1..=MOST_STATIONS).contains(&scenario.stations) {
        return wrong("as many stations as there cannot be", "write fewer");
    }
    if scenario.fast_transition && scenario.security != WifiSecurity::Wpa2Psk {
        return wrong(
            "keys for fast transition are made of a pre-shared key alone here",
            "use `security = \"wpa2-psk\"`",
        );
    }
    if scenario.measures.mptcp && scenario.tunnel_end == TunnelEnd::Host {
        return wrong("a tunnel hides from MPTCP which paths there are", "leave one of them out");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_follow_the_domain_and_the_tunnels_end() {
        let flat = Layout { one: true, host: false };
        assert_eq!((flat.peer(), flat.next_hop(Site::Second)), (flat.peer(), flat.peer()));
        assert_eq!(flat.gateway(Site::First), flat.gateway(Site::Second));
        let each = Layout { one: false, host: false };
        assert_ne!(each.gateway(Site::First), each.gateway(Site::Second));
        assert_eq!(each.next_hop(Site::Second), Ipv4Addr::new(10, 50, 2, 1));
        assert_eq!(each.peer(), Ipv4Addr::new(10, 52, 0, 2));
        let host = Layout { one: true, host: true };
        assert_eq!(host.tunnel_gateway(), host.gateway(Site::First));
        assert_eq!(host.peer(), each.peer());
        assert_eq!(frequency(6), 2437);
    }
}
