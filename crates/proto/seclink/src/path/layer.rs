//! Headers and trailers around a packet, and their bytes.

use super::IpVersion;
use crate::esp;

/// A header, with the trailer and the padding that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Ethernet's header without VLAN tag and frame check sequence (IEEE 802.3 §3.1.1): 14 bytes.
    Ethernet,
    /// MACsec's `SecTAG` with SCI, EtherType included, and ICV (IEEE 802.1AE-2018 §9.3): 32 bytes.
    MacSec,
    /// VXLAN's header (RFC 7348 §5): 8 bytes.
    Vxlan,
    /// L2TPv3's data header over UDP, without cookie or sublayer (RFC 3931 §4.1.2.1): 8 bytes.
    L2tp,
    /// UDP's header: 8 bytes.
    Udp,
    /// An IP header without options or extension headers: 20 or 40 bytes.
    Ip(IpVersion),
    /// PPPoE's header and PPP's protocol (RFC 2516 §4): 8 bytes.
    Pppoe,
    /// ESP's header, initialisation vector, padding, trailer and ICV (RFC 4303 §2).
    Esp(esp::Suite),
    /// WireGuard's padding to 16 bytes (the WireGuard paper §5.4.6).
    WireGuardPadding,
    /// WireGuard's transport header and tag (the WireGuard paper §5.4.6): 32 bytes.
    WireGuard,
    /// An MPLS label (RFC 3032 §2.1): 4 bytes.
    MplsLabel,
    /// A pseudowire's control word (RFC 4448 §4.6): 4 bytes.
    ControlWord,
}

impl Layer {
    /// Bytes of the layer with so many bytes inside.
    #[must_use]
    pub fn around(self, inside: usize) -> usize {
        inside.saturating_add(match self {
            Layer::Ethernet => wire::ethernet::HEADER_LEN,
            Layer::MacSec => wire::macsec::LONG_LEN + 2 + crate::macsec::ICV_LEN,
            Layer::Vxlan => wire::vxlan::HEADER_LEN,
            Layer::L2tp => wire::l2tpv3::HEADER_LEN,
            Layer::Udp => wire::udp::HEADER_LEN,
            Layer::Ip(version) => version.header_len(),
            Layer::Pppoe => wire::pppoe::HEADER_LEN,
            Layer::Esp(suite) => esp::overhead(suite, inside),
            Layer::WireGuardPadding => inside.wrapping_neg() % wire::wireguard::BLOCK_LEN,
            Layer::WireGuard => wire::wireguard::DATA_HEADER_LEN + wire::wireguard::TAG_LEN,
            Layer::MplsLabel | Layer::ControlWord => wire::mpls::HEADER_LEN,
        })
    }

    /// Its name: `ipv4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Ethernet => "ethernet",
            Layer::MacSec => "macsec",
            Layer::Vxlan => "vxlan",
            Layer::L2tp => "l2tpv3",
            Layer::Udp => "udp",
            Layer::Ip(version) => version.name(),
            Layer::Pppoe => "pppoe",
            Layer::Esp(_) => "esp",
            Layer::WireGuardPadding => "wireguard-padding",
            Layer::WireGuard => "wireguard",
            Layer::MplsLabel => "mpls-label",
            Layer::ControlWord => "control-word",
        }
    }
}

impl IpVersion {
    /// Bytes of its header, without options and extension headers.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            IpVersion::V4 => wire::ipv4::HEADER_LEN,
            IpVersion::V6 => wire::ipv6::HEADER_LEN,
        }
    }
}
