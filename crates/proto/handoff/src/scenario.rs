//! What a handoff is to be like.

use serde::{Deserialize, Serialize};
use units::{Delay, Probability, named};

named! {
    /// How a station proves itself to an access point.
    #[derive(Default)]
    pub enum WifiSecurity: "Wi-Fi security" {
        /// No authentication, and frames in clear.
        Open = "open",
        /// WPA2 with a pre-shared key (IEEE 802.11-2020 §12.7).
        #[default]
        Wpa2Psk = "wpa2-psk",
        /// WPA3: simultaneous authentication of equals (IEEE 802.11-2020 §12.4).
        Wpa3Sae = "wpa3-sae",
        /// WPA2-Enterprise with EAP-TLS (RFC 5216).
        Wpa2EapTls = "wpa2-eap-tls",
    }
}

named! {
    /// What protects the frames between the sites, or from the host to its peer.
    #[derive(Default)]
    pub enum Tunnel: "tunnel" {
        /// Nothing: frames go in clear.
        None = "none",
        /// MACsec between the customer edges.
        #[default]
        MacSec = "macsec",
        /// ESP in tunnel mode, keys by IKEv2 (RFC 7296).
        Ipsec = "ipsec",
        /// The same with MOBIKE (RFC 4555).
        IpsecMobike = "ipsec-mobike",
        /// WireGuard, whose keys come of its own handshake.
        WireGuard = "wireguard",
    }
}

named! {
    /// Where the tunnel ends.
    #[derive(Default)]
    pub enum TunnelEnd: "tunnel end" {
        /// At the customer edges, which do not move: the paper's.
        #[default]
        Edge = "edge",
        /// On the moving host.
        Host = "host",
    }
}

named! {
    /// Where the keys of MACsec come from.
    #[derive(Default)]
    pub enum Keying: "keying" {
        /// The MACsec key agreement (IEEE 802.1X-2020 §9) with a pre-shared key.
        #[default]
        Mka = "mka",
        /// Fixed keys, and no key agreement.
        Static = "static",
    }
}

named! {
    /// How far a layer-2 domain reaches.
    #[derive(Default)]
    pub enum Domain: "domain" {
        /// Both places of attachment are in one layer-2 domain: the address stays valid.
        #[default]
        One = "one",
        /// Each place has a subnet of its own behind a router.
        Each = "each",
    }
}

named! {
    /// What makes the host move.
    #[derive(Default)]
    pub enum Trigger: "trigger" {
        /// The station is told to leave its network and to connect to the other; its scan results are flushed.
        #[default]
        Reconnect = "reconnect",
        /// The first access point's radio is cut after it has said goodbye to its stations (deauthentication).
        CutDeauth = "cut-deauth",
        /// The first access point's radio falls silent.
        CutSilent = "cut-silent",
        /// The first access point's signal fades below the station's threshold (background scans).
        Signal = "signal",
        /// The station is told to roam to the other access point of its network.
        Forced = "forced",
        /// The cable is pulled, or put in again (LAN to Wi-Fi and back).
        Cable = "cable",
    }
}

named! {
    /// How the host has its address.
    #[derive(Default)]
    pub enum Address: "address" {
        /// DHCP at each attachment (RFC 2131).
        #[default]
        Dhcp = "dhcp",
        /// DHCP with rapid commit (RFC 4039).
        DhcpRapidCommit = "dhcp-rapid-commit",
        /// The address stays, and nobody is asked.
        Kept = "kept",
    }
}

named! {
    /// By what the host is attached.
    #[derive(Default)]
    pub enum Access: "access" {
        /// A radio, IEEE 802.11.
        #[default]
        Wifi = "wifi",
        /// A cable, Ethernet.
        Lan = "lan",
    }
}

/// A place where the host can be attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Attachment {
    /// By radio or by cable.
    #[serde(default)]
    pub access: Access,
    /// The network's name; empty for a cable.
    #[serde(default)]
    pub ssid: String,
    /// The channel in the 2.4 GHz band, 1 to 13; 0 for a cable.
    #[serde(default)]
    pub channel: u8,
}

/// What is changed to shorten the outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Measures {
    /// The station looks only on the channels of its networks, not on all.
    pub scan_list: bool,
    /// Neighbours are known for good: no ARP.
    pub fixed_neighbours: bool,
    /// Whoever gets an address says so at once (gratuitous ARP).
    pub announce: bool,
    /// Keys from an earlier visit are kept (PMKSA caching): WPA3-SAE's and EAP's.
    pub key_reuse: bool,
    /// No duplicate address detection (RFC 5227).
    pub no_duplicate_detection: bool,
    /// The bridge of the sites forgets or learns again at once when the host has moved.
    pub bridge_learning: bool,
    /// A second radio is attached before the first leaves.
    pub make_before_break: bool,
    /// The edge of a site answers ARP for who is behind the core (proxy ARP, RFC 1027; as in RFC 7432 §10).
    pub proxy_arp: bool,
    /// A station takes frames by its new key before it answers for it (IEEE 802.11-2020 §9.4.2.24.4: extended key IDs).
    pub extended_key_ids: bool,
    /// Access points ask for no block acknowledgements: frames are not aggregated.
    pub no_aggregation: bool,
    /// The host's TCP stream has a path over each attachment (RFC 8684).
    pub mptcp: bool,
}

/// A handoff as it is asked for. Two runs of one scenario with the same seed are the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Its name: `ipsec-different-ssid`.
    pub name: String,
    /// The places of attachment; the host moves from the first to the second.
    pub attachments: Vec<Attachment>,
    /// How the station proves itself.
    #[serde(default)]
    pub security: WifiSecurity,
    /// Fast BSS transition (IEEE 802.11-2020 §13).
    #[serde(default)]
    pub fast_transition: bool,
    /// What protects the frames.
    #[serde(default)]
    pub tunnel: Tunnel,
    /// Where the tunnel ends.
    #[serde(default)]
    pub tunnel_end: TunnelEnd,
    /// Where MACsec's keys come from.
    #[serde(default)]
    pub keying: Keying,
    /// Whether both places are in one layer-2 domain.
    #[serde(default)]
    pub domain: Domain,
    /// What makes the host move.
    #[serde(default)]
    pub trigger: Trigger,
    /// How the host has its address.
    #[serde(default)]
    pub address: Address,
    /// What is changed to shorten the outage.
    #[serde(default)]
    pub measures: Measures,
    /// Stations in the first cell, the one that moves among them.
    #[serde(default = "one")]
    pub stations: u16,
    /// Share of frames lost on the radio.
    #[serde(default)]
    pub radio_loss: Probability,
    /// Delay of the L2VPN's core, one way.
    #[serde(default)]
    pub core_delay: Delay,
}

const fn one() -> u16 {
    1
}

impl Scenario {
    /// Whether the host checks a new address for duplicates before it uses it (RFC 5227): for seconds.
    #[must_use]
    pub fn detects_duplicates(&self) -> bool {
        self.address != Address::Kept && !self.measures.no_duplicate_detection
    }
}
