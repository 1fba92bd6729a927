//! What a scenario cannot be.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;
use units::Probability;

use crate::{
    Access, Address, Attachment, Domain, Keying, Scenario, Trigger, Tunnel, TunnelEnd, WifiSecurity,
};

/// Bytes of a network's name at most (IEEE 802.11-2020 §9.4.2.2).
const LONGEST_SSID: usize = 32;
/// Characters of a scenario's name at most.
const LONGEST_NAME: usize = 48;
/// Stations in a cell at most: each is a radio that hears all frames, which the guest's one processor pays for.
pub const MOST_STATIONS: u16 = 16;
/// Frames lost on the radio at most: above it nobody gets attached.
const MOST_LOSS: f64 = 0.5;
/// The longest delay of the core, in seconds.
const LONGEST_DELAY: u64 = 1;

/// What in a scenario contradicts what else is in it, or cannot be had. The caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Its name cannot stand in results.
    #[error("the name of a scenario has 1 to 48 small letters, digits and hyphens")]
    Name,
    /// A host moves from one place to another.
    #[error("a scenario has two attachments")]
    Attachments,
    /// A radio needs a network that can be named.
    #[error(
        "the name of a Wi-Fi network has 1 to 32 letters, digits, hyphens, underscores, dots and spaces"
    )]
    Ssid,
    /// A radio needs a channel.
    #[error("the channel of an access point is 1 to 13")]
    Channel,
    /// What a cable does not have.
    #[error("a cable has no network name and no channel")]
    Cable,
    /// Who is cut off or fades must be a radio.
    #[error("the trigger is a radio's, and the first attachment is a cable")]
    TriggerNeedsRadio,
    /// A cable is pulled, or put in.
    #[error("the trigger `cable` needs an attachment by cable")]
    TriggerNeedsCable,
    /// An attachment by cable has one trigger.
    #[error("an attachment by cable needs the trigger `cable`")]
    CableNeedsTrigger,
    /// The station leaves its network for another.
    #[error("the trigger `reconnect` needs two networks, and both attachments are of one")]
    ReconnectWithin,
    /// The station roams within a network.
    #[error("the trigger `forced` needs one network with two access points")]
    ForcedBetween,
    /// 802.11r between two networks.
    #[error("fast transition needs one network with two access points")]
    FastTransitionBetween,
    /// 802.11r needs keys.
    #[error("fast transition needs a network with keys, and this one is open")]
    FastTransitionOpen,
    /// A tunnel that is none has no end.
    #[error("the tunnel ends at the host, and there is none")]
    NoTunnel,
    /// MACsec is between the edges.
    #[error("MACsec on the moving host is not part of this")]
    MacSecAtHost,
    /// Edges do not move.
    #[error("MOBIKE changes nothing where the tunnel ends at edges, which do not move")]
    MobikeAtEdge,
    /// Keying is MACsec's.
    #[error("`keying` is of MACsec, and the tunnel is another")]
    Keying,
    /// MACsec carries Ethernet.
    #[error("MACsec between the edges joins both sites to one layer-2 domain")]
    MacSecDomain,
    /// ESP in tunnel mode and WireGuard carry IP.
    #[error("this tunnel between the edges carries IP: each site has a subnet of its own")]
    IpDomain,
    /// An address of one subnet in another.
    #[error("an address cannot be kept in another subnet")]
    KeptAddress,
    /// A router answers for its own address, which is all that the host asks for.
    #[error(
        "proxy ARP changes nothing where the host's neighbour is its router, which answers for itself"
    )]
    ProxyArpRouted,
    /// An open network has no keys.
    #[error("an open network has no keys to reuse")]
    NothingToReuse,
    /// A pre-shared key is the pairwise master key itself (IEEE 802.11-2020 §12.7.1.3): there is no PMKSA to cache.
    #[error("WPA2-PSK has no keys to reuse: the passphrase gives the master key, without a frame")]
    NothingSaved,
    /// An open network has no keys at all.
    #[error("an open network has no keys that could have extended identifiers")]
    NoKeys,
    /// Without a radio nothing is scanned.
    #[error("there is no radio that could scan")]
    NothingToScan,
    /// The number of stations.
    #[error("a cell has 1 to {} stations", MOST_STATIONS)]
    Stations,
    /// Loss on the radio.
    #[error("a radio loses at most half of its frames")]
    RadioLoss,
    /// Delay of the core.
    #[error("the core delays by 1 s at most")]
    CoreDelay,
}

impl Explain for Contradiction {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(self.what_to_do().into())
    }
}

impl Contradiction {
    const fn what_to_do(self) -> &'static str {
        match self {
            Contradiction::Name => "as `ipsec-two-sites`",
            Contradiction::Attachments => "write two [[attachments]], the one that is left first",
            Contradiction::Ssid => "write ssid = \"office\"",
            Contradiction::Channel => "write channel = 1, and 6 or 11 for the other",
            Contradiction::Cable => "leave out ssid and channel, or write access = \"wifi\"",
            Contradiction::TriggerNeedsRadio | Contradiction::CableNeedsTrigger => {
                "write trigger = \"cable\""
            }
            Contradiction::TriggerNeedsCable => "write access = \"lan\" into an attachment",
            Contradiction::ReconnectWithin => {
                "give the second another ssid, or take the trigger cut-deauth, cut-silent, signal or forced"
            }
            Contradiction::ForcedBetween => {
                "give both attachments the same ssid, or take the trigger reconnect"
            }
            Contradiction::FastTransitionBetween => {
                "give both attachments the same ssid, or leave out fast-transition"
            }
            Contradiction::FastTransitionOpen => "write security = \"wpa2-psk\"",
            Contradiction::NoTunnel => "name a tunnel: ipsec, ipsec-mobike, wireguard",
            Contradiction::MacSecAtHost => "write tunnel-end = \"edge\", or another tunnel",
            Contradiction::MobikeAtEdge => "write tunnel-end = \"host\", or tunnel = \"ipsec\"",
            Contradiction::Keying => "leave it out, or write tunnel = \"macsec\"",
            Contradiction::MacSecDomain => "write domain = \"one\", or another tunnel",
            Contradiction::IpDomain => "write domain = \"each\", or tunnel-end = \"host\"",
            Contradiction::ProxyArpRouted => {
                "leave this measure out, or write domain = \"one\" and tunnel-end = \"edge\""
            }
            Contradiction::KeptAddress => "write address = \"dhcp\", or domain = \"one\"",
            Contradiction::NothingSaved => {
                "write security = \"wpa3-sae\" or \"wpa2-eap-tls\" (--security), or leave this measure out"
            }
            Contradiction::NothingToReuse
            | Contradiction::NoKeys
            | Contradiction::NothingToScan => "leave this measure out",
            Contradiction::Stations => "take fewer stations",
            Contradiction::RadioLoss => "write radio-loss = \"5%\"",
            Contradiction::CoreDelay => "write core-delay = \"20ms\"",
        }
    }
}

impl Scenario {
    /// Whether it can be.
    ///
    /// # Errors
    /// The first [`Contradiction`] in it.
    pub fn check(&self) -> Result<(), Contradiction> {
        self.check_name()?;
        let [first, second] = self.attachments.as_slice() else {
            return Err(Contradiction::Attachments);
        };
        check_attachment(first)?;
        check_attachment(second)?;
        self.check_trigger(first, second)?;
        self.check_radio(first, second)?;
        self.check_tunnel()?;
        self.check_address()?;
        self.check_limits()
    }

    /// Whether both attachments are access points of one network.
    #[must_use]
    pub fn is_one_network(&self) -> bool {
        matches!(self.attachments.as_slice(), [first, second]
            if is_radio(first) && is_radio(second) && first.ssid == second.ssid)
    }

    /// Whether a tunnel ends on the moving host.
    #[must_use]
    pub fn tunnels_from_host(&self) -> bool {
        self.tunnel_end == TunnelEnd::Host && self.tunnel != Tunnel::None
    }

    fn check_name(&self) -> Result<(), Contradiction> {
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let fits = (1..=LONGEST_NAME).contains(&self.name.len());
        if fits && self.name.bytes().all(is_good) { Ok(()) } else { Err(Contradiction::Name) }
    }

    fn check_trigger(&self, first: &Attachment, second: &Attachment) -> Result<(), Contradiction> {
        let has_cable = !is_radio(first) || !is_radio(second);
        match self.trigger {
            Trigger::Cable if !has_cable => Err(Contradiction::TriggerNeedsCable),
            Trigger::Cable => Ok(()),
            _ if !is_radio(first) => Err(Contradiction::TriggerNeedsRadio),
            _ if has_cable => Err(Contradiction::CableNeedsTrigger),
            Trigger::Reconnect if self.is_one_network() => Err(Contradiction::ReconnectWithin),
            Trigger::Forced if !self.is_one_network() => Err(Contradiction::ForcedBetween),
            _ => Ok(()),
        }
    }

    fn check_radio(&self, first: &Attachment, second: &Attachment) -> Result<(), Contradiction> {
        let is_open = self.security == WifiSecurity::Open;
        if self.fast_transition && !self.is_one_network() {
            return Err(Contradiction::FastTransitionBetween);
        }
        if self.fast_transition && is_open {
            return Err(Contradiction::FastTransitionOpen);
        }
        if self.measures.key_reuse && is_open {
            return Err(Contradiction::NothingToReuse);
        }
        if self.measures.key_reuse && self.security == WifiSecurity::Wpa2Psk {
            return Err(Contradiction::NothingSaved);
        }
        if self.measures.extended_key_ids && is_open {
            return Err(Contradiction::NoKeys);
        }
        if self.measures.scan_list && !is_radio(first) && !is_radio(second) {
            return Err(Contradiction::NothingToScan);
        }
        Ok(())
    }

    fn check_tunnel(&self) -> Result<(), Contradiction> {
        if self.keying != Keying::default() && self.tunnel != Tunnel::MacSec {
            return Err(Contradiction::Keying);
        }
        match (self.tunnel, self.tunnel_end, self.domain) {
            (Tunnel::None, TunnelEnd::Host, _) => Err(Contradiction::NoTunnel),
            (Tunnel::MacSec, TunnelEnd::Host, _) => Err(Contradiction::MacSecAtHost),
            (Tunnel::IpsecMobike, TunnelEnd::Edge, _) => Err(Contradiction::MobikeAtEdge),
            (Tunnel::MacSec, TunnelEnd::Edge, Domain::Each) => Err(Contradiction::MacSecDomain),
            (Tunnel::Ipsec | Tunnel::WireGuard, TunnelEnd::Edge, Domain::One) => {
                Err(Contradiction::IpDomain)
            }
            _ => Ok(()),
        }
    }

    fn check_address(&self) -> Result<(), Contradiction> {
        let is_flat = self.domain == Domain::One && !self.tunnels_from_host();
        if self.measures.proxy_arp && !is_flat {
            return Err(Contradiction::ProxyArpRouted);
        }
        match (self.address, self.domain) {
            (Address::Kept, Domain::Each) => Err(Contradiction::KeptAddress),
            _ => Ok(()),
        }
    }

    fn check_limits(&self) -> Result<(), Contradiction> {
        if !(1..=MOST_STATIONS).contains(&self.stations) {
            return Err(Contradiction::Stations);
        }
        if self.radio_loss > Probability::new(MOST_LOSS).unwrap_or_default() {
            return Err(Contradiction::RadioLoss);
        }
        if self.core_delay.duration() > std::time::Duration::from_secs(LONGEST_DELAY) {
            return Err(Contradiction::CoreDelay);
        }
        Ok(())
    }
}

fn is_radio(attachment: &Attachment) -> bool {
    attachment.access == Access::Wifi
}

/// Names go into the configuration of programs: nothing in them may end a line or a text.
fn check_attachment(attachment: &Attachment) -> Result<(), Contradiction> {
    if !is_radio(attachment) {
        let is_bare = attachment.ssid.is_empty() && attachment.channel == 0;
        return if is_bare { Ok(()) } else { Err(Contradiction::Cable) };
    }
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_. ".contains(&byte);
    let ssid = &attachment.ssid;
    if !(1..=LONGEST_SSID).contains(&ssid.len()) || !ssid.bytes().all(is_good) {
        return Err(Contradiction::Ssid);
    }
    if (1..=13).contains(&attachment.channel) { Ok(()) } else { Err(Contradiction::Channel) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(name: &str, change: impl FnOnce(&mut Scenario)) -> Result<(), Contradiction> {
        let mut scenario = Scenario::named(name).unwrap();
        change(&mut scenario);
        scenario.check()
    }

    #[test]
    fn contradictions_are_found_and_say_what_to_do() {
        use Contradiction as No;
        let same = "macsec-same-ssid";
        let (macsec, ipsec) = ("macsec-different-ssid", "ipsec-different-ssid");
        let cases = [
            (changed(same, |s| s.name = "My case".to_owned()), No::Name),
            (changed(same, |s| s.attachments.truncate(1)), No::Attachments),
            (changed(same, |s| s.attachments[0].ssid = "a\nb".to_owned()), No::Ssid),
            (changed(same, |s| s.attachments[1].channel = 14), No::Channel),
            (changed("lan-to-wifi", |s| s.attachments[0].channel = 1), No::Cable),
            (changed("lan-to-wifi", |s| s.trigger = Trigger::Forced), No::TriggerNeedsRadio),
            (changed("wifi-to-lan", |s| s.trigger = Trigger::Reconnect), No::CableNeedsTrigger),
            (changed(same, |s| s.trigger = Trigger::Cable), No::TriggerNeedsCable),
            (changed(same, |s| s.trigger = Trigger::Reconnect), No::ReconnectWithin),
            (changed(macsec, |s| s.trigger = Trigger::Forced), No::ForcedBetween),
            (changed(macsec, |s| s.fast_transition = true), No::FastTransitionBetween),
            (
                changed(same, |s| {
                    s.fast_transition = true;
                    s.security = WifiSecurity::Open;
                }),
                No::FastTransitionOpen,
            ),
            (
                changed(same, |s| {
                    s.measures.extended_key_ids = true;
                    s.security = WifiSecurity::Open;
                }),
                No::NoKeys,
            ),
            (changed(same, |s| s.measures.key_reuse = true), No::NothingSaved),
            (changed(ipsec, |s| s.measures.proxy_arp = true), No::ProxyArpRouted),
            (changed(macsec, |s| s.tunnel_end = TunnelEnd::Host), No::MacSecAtHost),
            (changed(macsec, |s| s.tunnel = Tunnel::IpsecMobike), No::MobikeAtEdge),
            (changed(ipsec, |s| s.keying = Keying::Static), No::Keying),
            (changed(macsec, |s| s.domain = Domain::Each), No::MacSecDomain),
            (changed(ipsec, |s| s.domain = Domain::One), No::IpDomain),
            (changed(ipsec, |s| s.address = Address::Kept), No::KeptAddress),
            (changed(same, |s| s.stations = 0), No::Stations),
            (changed(same, |s| s.stations = MOST_STATIONS + 1), No::Stations),
            (changed(same, |s| s.radio_loss = "60%".parse().unwrap()), No::RadioLoss),
            (changed(same, |s| s.core_delay = "2s".parse().unwrap()), No::CoreDelay),
        ];
        for (found, expected) in cases {
            assert_eq!(found, Err(expected));
            assert_eq!(expected.fault(), Fault::Caller);
            assert!(!expected.what_to_do().is_empty());
        }
    }
}
