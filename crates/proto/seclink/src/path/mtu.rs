//! The longest packet that a path carries in an encapsulation: computed from the formats.

use std::borrow::Cow;

use fault::{Explain, Fault};
use serde::Serialize;
use thiserror::Error;
use units::named;

use super::{Carrier, Cipher, IpVersion, Layer, Protection};

named! {
    /// An encapsulation of packets, protected or not.
    pub enum Encapsulation: "protocol" {
        /// None.
        Plain = "plain",
        /// MACsec (IEEE 802.1AE), between stations of one Ethernet.
        MacSec = "macsec",
        /// ESP in tunnel mode (RFC 4303 §3.1.2).
        Esp = "esp" | "esp-tunnel",
        /// ESP in transport mode (RFC 4303 §3.1.1), between two hosts.
        EspTransport = "esp-transport",
        /// WireGuard.
        WireGuard = "wireguard",
        /// VXLAN (RFC 7348).
        Vxlan = "vxlan",
        /// MACsec frames in VXLAN.
        MacSecVxlan = "macsec-vxlan",
        /// Ethernet in L2TPv3 over UDP (RFC 3931, RFC 4719).
        L2tp = "l2tp",
        /// The same, in ESP in transport mode (RFC 3193).
        L2tpEsp = "l2tp-esp",
        /// Ethernet in an MPLS pseudowire with one label (RFC 4448).
        Pseudowire = "mpls-pseudowire" | "vpws",
    }
}

impl Encapsulation {
    /// Whether it can use this cipher.
    #[must_use]
    pub const fn can(self, cipher: Cipher) -> bool {
        match self {
            Encapsulation::MacSec | Encapsulation::MacSecVxlan => cipher.macsec().is_some(),
            Encapsulation::Esp | Encapsulation::EspTransport | Encapsulation::L2tpEsp => {
                cipher.esp().is_some()
            }
            Encapsulation::WireGuard => matches!(cipher, Cipher::ChaCha20Poly1305),
            _ => matches!(cipher, Cipher::Null),
        }
    }

    /// Whether it carries whole Ethernet frames.
    #[must_use]
    pub const fn carries_ethernet(self) -> bool {
        !matches!(
            self,
            Encapsulation::Plain
                | Encapsulation::Esp
                | Encapsulation::EspTransport
                | Encapsulation::WireGuard
        )
    }

    /// Whether it has IP headers around the packets, or is one with them.
    #[must_use]
    pub const fn has_outer_ip(self) -> bool {
        !matches!(self, Encapsulation::Plain | Encapsulation::MacSec | Encapsulation::Pseudowire)
    }

    /// Whether it is ESP, which NATs need in UDP.
    #[must_use]
    pub const fn has_esp(self) -> bool {
        matches!(self, Encapsulation::Esp | Encapsulation::EspTransport | Encapsulation::L2tpEsp)
    }

    /// Whether PPPoE can carry it: IP packets alone.
    #[must_use]
    pub const fn fits_pppoe(self) -> bool {
        !matches!(self, Encapsulation::MacSec | Encapsulation::Pseudowire)
    }
}

impl From<Protection> for Encapsulation {
    fn from(protection: Protection) -> Self {
        match protection {
            Protection::Plain => Encapsulation::Plain,
            Protection::MacSec => Encapsulation::MacSec,
            Protection::Esp => Encapsulation::Esp,
            Protection::L2tp => Encapsulation::L2tpEsp,
            Protection::WireGuard => Encapsulation::WireGuard,
            Protection::MacSecVxlan => Encapsulation::MacSecVxlan,
        }
    }
}

/// The headers and trailers around a packet: an encapsulation, its cipher, and the network that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapping {
    encapsulation: Encapsulation,
    cipher: Cipher,
    carrier: Carrier,
}

/// The longest packet on a path, all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// The longest IP packet inside: the MTU to set.
    pub mtu: usize,
    /// The path's MTU less the MTU inside: headers, trailers, and padding that cannot be used.
    pub overhead: usize,
    /// The largest TCP segment over IPv4, without options: the MSS to clamp to. `None` where IPv6 alone is carried.
    pub mss_ipv4: Option<usize>,
    /// The same over IPv6. `None` where IPv4 alone is carried, or the MTU is less than IPv6's least, 1280.
    pub mss_ipv6: Option<usize>,
    /// The MTU that the path needs to carry packets of 1500 bytes.
    pub path_mtu_for_1500: usize,
}

/// An encapsulation that cannot be, or a path without room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MtuError {
    /// The encapsulation has no such cipher.
    #[error("{0} cannot use {1}")]
    Cipher(Encapsulation, Cipher),
    /// PPPoE carries IP packets only.
    #[error("{0} does not fit PPPoE, which carries IP packets only")]
    NotInPppoe(Encapsulation),
    /// The path has no room for the headers and an IPv4 packet of 68 bytes, the least (RFC 791 §3.2).
    #[error("a path MTU of {mtu} leaves no room in {encapsulation}")]
    NoRoom {
        /// Bytes of the path's MTU.
        mtu: usize,
        /// The encapsulation that does not fit.
        encapsulation: Encapsulation,
    },
}

impl Explain for MtuError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            MtuError::Cipher(encapsulation, _) => {
                let can = Cipher::ALL.iter().filter(|cipher| encapsulation.can(**cipher));
                let names: Vec<&str> = can.map(|cipher| cipher.name()).collect();
                Some(format!("choose from {}", names.join(", ")).into())
            }
            MtuError::NotInPppoe(_) => None,
            MtuError::NoRoom { .. } => Some("give a larger --path-mtu".into()),
        }
    }
}

/// The least MTU of IPv4 (RFC 791 §3.2) and of IPv6 (RFC 8200 §5).
const LEAST_IPV4: usize = 68;
const LEAST_IPV6: usize = 1280;
/// TCP's header without options.
const TCP: usize = 20;
/// The MTU of hosts on Ethernet.
const USUAL: usize = 1500;

impl Wrapping {
    /// The layers of an encapsulation. Without an outer IP header the carrier's IP version means nothing, without ESP
    /// its NAT traversal.
    ///
    /// # Errors
    /// The encapsulation has no such cipher, or does not fit PPPoE.
    pub fn new(
        encapsulation: Encapsulation,
        cipher: Cipher,
        carrier: Carrier,
    ) -> Result<Wrapping, MtuError> {
        if !encapsulation.can(cipher) {
            return Err(MtuError::Cipher(encapsulation, cipher));
        }
        if carrier.pppoe && !encapsulation.fits_pppoe() {
            return Err(MtuError::NotInPppoe(encapsulation));
        }
        Ok(Wrapping { encapsulation, cipher, carrier })
    }

    /// The layers around a packet, the innermost first. Of ESP in transport mode, around the packet's payload.
    ///
    /// The header of the outermost Ethernet is not among them: MTUs do not count it. WireGuard's padding is not
    /// either: its interface pads no packet beyond its MTU.
    #[must_use]
    pub fn layers(&self) -> Vec<Layer> {
        let Carrier { ip, pppoe, nat_traversal } = self.carrier;
        let suite = self.cipher.esp().unwrap_or_default();
        let mut layers = match self.encapsulation {
            Encapsulation::Plain => vec![],
            Encapsulation::MacSec => vec![Layer::MacSec],
            Encapsulation::Esp | Encapsulation::EspTransport => vec![Layer::Esp(suite)],
            Encapsulation::WireGuard => vec![Layer::WireGuard, Layer::Udp],
            Encapsulation::Vxlan => vec![Layer::Ethernet, Layer::Vxlan, Layer::Udp],
            Encapsulation::MacSecVxlan => {
                vec![Layer::Ethernet, Layer::MacSec, Layer::Vxlan, Layer::Udp]
            }
            Encapsulation::L2tp => vec![Layer::Ethernet, Layer::L2tp, Layer::Udp],
            Encapsulation::L2tpEsp => {
                vec![Layer::Ethernet, Layer::L2tp, Layer::Udp, Layer::Esp(suite)]
            }
            Encapsulation::Pseudowire => {
                vec![Layer::Ethernet, Layer::ControlWord, Layer::MplsLabel]
            }
        };
        if nat_traversal && self.encapsulation.has_esp() {
            layers.push(Layer::Udp);
        }
        if self.encapsulation.has_outer_ip() {
            layers.push(Layer::Ip(ip));
        }
        if pppoe {
            layers.push(Layer::Pppoe);
        }
        layers
    }

    /// Bytes on the path, behind its Ethernet header, of an IP packet of so many bytes inside.
    #[must_use]
    pub fn outer_len(&self, packet: usize) -> usize {
        self.around(&self.layers(), packet)
    }

    fn around(&self, layers: &[Layer], packet: usize) -> usize {
        // In transport mode the packet's own header is the outer one.
        let kept = match self.encapsulation {
            Encapsulation::EspTransport => self.carrier.ip.header_len(),
            _ => 0,
        };
        let inside = packet.saturating_sub(kept);
        layers.iter().fold(inside, |inside, layer| layer.around(inside))
    }

    /// The longest packet that fits a path of this MTU: bytes behind Ethernet's header, PPPoE's included.
    ///
    /// # Errors
    /// [`MtuError::NoRoom`].
    pub fn fit(&self, path_mtu: usize) -> Result<Fit, MtuError> {
        let layers = self.layers();
        let fits = |packet: &usize| self.around(&layers, *packet) <= path_mtu;
        let no_room = MtuError::NoRoom { mtu: path_mtu, encapsulation: self.encapsulation };
        let mtu = (LEAST_IPV4..=path_mtu).rev().find(fits).ok_or(no_room)?;
        let carries = |version: IpVersion| {
            self.encapsulation != Encapsulation::EspTransport || self.carrier.ip == version
        };
        let segment = |version: IpVersion, least: usize| {
            let segment = mtu.saturating_sub(version.header_len() + TCP);
            (carries(version) && mtu >= least).then_some(segment)
        };
        Ok(Fit {
            mtu,
            overhead: path_mtu.saturating_sub(mtu),
            mss_ipv4: segment(IpVersion::V4, LEAST_IPV4),
            mss_ipv6: segment(IpVersion::V6, LEAST_IPV6),
            path_mtu_for_1500: self.around(&layers, USUAL),
        })
    }

    /// The encapsulation.
    #[must_use]
    pub const fn encapsulation(&self) -> Encapsulation {
        self.encapsulation
    }

    /// The cipher.
    #[must_use]
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The network that carries the packets.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        self.carrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrapping(encapsulation: Encapsulation, carrier: Carrier) -> Wrapping {
        let cipher = *Cipher::ALL.iter().find(|cipher| encapsulation.can(**cipher)).unwrap();
        Wrapping::new(encapsulation, cipher, carrier).unwrap()
    }

    fn over(ip: IpVersion) -> Carrier {
        Carrier { ip, ..Carrier::default() }
    }

    /// Values that vendors and specifications publish, at a path of 1500 bytes.
    #[test]
    fn published_mtus_come_out() {
        use Encapsulation as E;
        let (v4, v6) = (over(IpVersion::V4), over(IpVersion::V6));
        let pppoe = |carrier: Carrier| Carrier { pppoe: true, ..carrier };
        let nat = |carrier: Carrier| Carrier { nat_traversal: true, ..carrier };
        for (encapsulation, carrier, mtu) in [
            // RFC 2516 §7: the MRU of PPPoE.
            (E::Plain, pppoe(v4), 1492),
            // Donenfeld, "MTU", WireGuard mailing list, 2016-12-18: 1420, and 1440 over IPv4. Over PPPoE 8 less.
            (E::WireGuard, v6, 1420),
            (E::WireGuard, v4, 1440),
            (E::WireGuard, pppoe(v6), 1412),
            (E::WireGuard, pppoe(v4), 1432),
            // RFC 7348 §4.3: 50 bytes; Linux's VXLAN_HEADROOM and VXLAN6_HEADROOM.
            (E::Vxlan, v4, 1450),
            (E::Vxlan, v6, 1430),
            // Linux's macsec.c: 16 of SecTAG with SCI and EtherType, 16 of ICV.
            (E::MacSec, v4, 1468),
            // Linux's xfrm_state_mtu, as below.
            (E::Esp, v4, 1446),
            (E::Esp, nat(v4), 1438),
        ] {
            let fit = wrapping(encapsulation, carrier).fit(1500).unwrap();
            assert_eq!(fit.mtu, mtu, "{encapsulation} {carrier:?}");
            assert_eq!(fit.overhead, 1500 - mtu);
        }
    }

    /// Linux's xfrm_state_mtu (net/xfrm/xfrm_state.c).
    fn linux_esp_mtu(
        path: usize,
        suite: crate::esp::Suite,
        carrier: Carrier,
        tunnel: bool,
    ) -> usize {
        let block = suite.block_len();
        let ip = carrier.ip.header_len();
        let udp = if carrier.nat_traversal { 8 } else { 0 };
        let pppoe = if carrier.pppoe { 8 } else { 0 };
        let header = wire::esp::HEADER_LEN + suite.iv_len() + udp + if tunnel { ip } else { 0 };
        let adjusted = if tunnel { 0 } else { ip };
        let room = path - pppoe - header - suite.icv_len() - adjusted;
        (room & !(block - 1)) + adjusted - 2
    }

    fn any_carrier() -> impl Strategy<Value = Carrier> {
        (prop::sample::select(IpVersion::ALL), any::<bool>(), any::<bool>())
            .prop_map(|(ip, pppoe, nat_traversal)| Carrier { ip, pppoe, nat_traversal })
    }

    proptest! {
        #[test]
        fn esp_is_as_linux_computes_it(
            cipher in prop::sample::select(Cipher::ALL), carrier in any_carrier(), path in 600usize..9200,
        ) {
            prop_assume!(cipher.esp().is_some());
            let suite = cipher.esp().unwrap_or_default();
            for (encapsulation, tunnel) in
                [(Encapsulation::Esp, true), (Encapsulation::EspTransport, false)]
            {
                let fit = Wrapping::new(encapsulation, cipher, carrier).unwrap().fit(path).unwrap();
                prop_assert_eq!(fit.mtu, linux_esp_mtu(path, suite, carrier, tunnel));
            }
        }

        #[test]
        fn one_byte_more_does_not_fit(
            encapsulation in prop::sample::select(Encapsulation::ALL), carrier in any_carrier(),
            cipher in prop::sample::select(Cipher::ALL), path in 600usize..65_000,
        ) {
            let Ok(wrapping) = Wrapping::new(encapsulation, cipher, carrier) else { return Ok(()) };
            let fit = wrapping.fit(path).unwrap();
            prop_assert!(wrapping.outer_len(fit.mtu) <= path);
            prop_assert!(wrapping.outer_len(fit.mtu + 1) > path);
            // And 1500 fit the path that is named for them.
            prop_assert!(wrapping.fit(fit.path_mtu_for_1500).unwrap().mtu >= 1500);
        }
    }

    #[test]
    fn segments_are_of_what_is_carried() {
        let fit = wrapping(Encapsulation::WireGuard, over(IpVersion::V6)).fit(1500).unwrap();
        assert_eq!((fit.mss_ipv4, fit.mss_ipv6), (Some(1380), Some(1360)));
        let fit = wrapping(Encapsulation::EspTransport, over(IpVersion::V6)).fit(1500).unwrap();
        assert_eq!((fit.mss_ipv4.is_some(), fit.mss_ipv6.is_some()), (false, true));
        // IPv6 needs 1280.
        let fit = wrapping(Encapsulation::WireGuard, over(IpVersion::V4)).fit(1300).unwrap();
        assert_eq!((fit.mtu, fit.mss_ipv6), (1240, None));
    }

    #[test]
    fn what_cannot_be_says_why() {
        let pppoe = Carrier { pppoe: true, ..Carrier::default() };
        let error = Wrapping::new(Encapsulation::MacSec, Cipher::AesGcm128, pppoe).unwrap_err();
        assert!(error.to_string().starts_with("macsec does not fit PPPoE"), "{error}");
        let error = Wrapping::new(Encapsulation::WireGuard, Cipher::AesGcm128, pppoe).unwrap_err();
        assert_eq!(error.remedy().unwrap(), "choose from chacha20-poly1305");
        let small = wrapping(Encapsulation::L2tpEsp, pppoe).fit(100).unwrap_err();
        assert!(small.to_string().contains("leaves no room in l2tp-esp"), "{small}");
    }
}
