//! A path of secured links: nodes in a row, what protects the frames, and where.
//!
//! ```text
//! tester -- node 0 ======= node 1 ======= … ======= node n -- tester
//!            CE1   link 1   PE1    link 2  P…  PE2    CE2
//! ```
//!
//! A path of `n` hops has `n` links between `n + 1` nodes; the tester's own links at both ends are never
//! protected. Encrypted on every hop, a frame is sealed and opened `n` times (`2n` operations); end to end, once
//! (2 operations). With a pseudowire, the first and the last node are customer edges (CE), their neighbours
//! provider edges (PE), and those between swap labels (P): four hops are the MACsec paper's CE-PE-P-PE-CE.

mod layer;
mod mtu;
mod size;

use std::borrow::Cow;

use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use units::{Rate, named};

use crate::{esp, macsec};

pub use layer::Layer;
pub use mtu::{Encapsulation, Fit, MtuError, Wrapping};
pub use size::{FrameSize, VPWS_BYTES, largest_frame, largest_segment};

named! {
    /// What protects the frames.
    #[derive(Default)]
    pub enum Protection: "protection" {
        /// Nothing: frames go in clear.
        #[default]
        Plain = "plain",
        /// MACsec (IEEE 802.1AE): the whole Ethernet frame after its addresses.
        MacSec = "macsec",
        /// IPsec: ESP in tunnel mode (RFC 4303). IP packets only; Ethernet's header stays behind.
        Esp = "esp",
        /// Ethernet frames in L2TPv3 over UDP (RFC 3931, RFC 4719), these in ESP in transport mode.
        L2tp = "l2tp-esp" | "l2tp",
        /// WireGuard's transport data. IP packets only.
        WireGuard = "wireguard",
        /// MACsec frames in VXLAN (RFC 7348), across an IP network.
        MacSecVxlan = "macsec-vxlan",
    }
}

named! {
    /// Where frames are protected.
    #[derive(Default)]
    pub enum Reach: "reach" {
        /// Sealed at the first node, opened at the last.
        #[default]
        EndToEnd = "end-to-end",
        /// Sealed and opened on every link.
        EveryHop = "every-hop",
    }
}

named! {
    /// With what they are protected.
    pub enum Cipher: "cipher" {
        /// None: of unprotected paths only.
        Null = "null" | "none",
        /// AES-128 in Galois counter mode.
        AesGcm128 = "aes-gcm-128" | "gcm-aes-128",
        /// AES-256 in the same.
        AesGcm256 = "aes-gcm-256" | "gcm-aes-256",
        /// AES-128 in the same, with MACsec's packet numbers of 64 bits.
        AesGcmXpn128 = "aes-gcm-xpn-128" | "gcm-aes-xpn-128",
        /// AES-256 in the same, with MACsec's packet numbers of 64 bits.
        AesGcmXpn256 = "aes-gcm-xpn-256" | "gcm-aes-xpn-256",
        /// ChaCha20-Poly1305 (RFC 8439), 256-bit keys.
        ChaCha20Poly1305 = "chacha20-poly1305",
        /// AES-128 in CBC mode with HMAC-SHA1-96: the IPsec of the MACsec paper.
        AesCbc128Sha1 = "aes-cbc-128-sha1",
    }
}

named! {
    /// The Internet Protocol of a tunnel's outer headers.
    #[derive(Default)]
    pub enum IpVersion: "IP version" {
        /// IPv4 (RFC 791): 20 bytes without options.
        #[default]
        V4 = "ipv4",
        /// IPv6 (RFC 8200): 40 bytes without extension headers.
        V6 = "ipv6",
    }
}

/// The network that carries the tunnels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carrier {
    /// The protocol of the outer headers.
    pub ip: IpVersion,
    /// Whether its packets go in PPPoE (RFC 2516), as on many access lines.
    pub pppoe: bool,
    /// Whether ESP goes in UDP, as behind a NAT (RFC 3948).
    pub nat_traversal: bool,
}

impl Cipher {
    /// MACsec's suite of it, if MACsec has it.
    #[must_use]
    pub const fn macsec(self) -> Option<macsec::Suite> {
        match self {
            Cipher::AesGcm128 => Some(macsec::Suite::GcmAes128),
            Cipher::AesGcm256 => Some(macsec::Suite::GcmAes256),
            Cipher::AesGcmXpn128 => Some(macsec::Suite::GcmAesXpn128),
            Cipher::AesGcmXpn256 => Some(macsec::Suite::GcmAesXpn256),
            Cipher::Null | Cipher::ChaCha20Poly1305 | Cipher::AesCbc128Sha1 => None,
        }
    }

    /// ESP's suite of it, if ESP has it here.
    #[must_use]
    pub const fn esp(self) -> Option<esp::Suite> {
        match self {
            Cipher::AesGcm128 => Some(esp::Suite::AesGcm128),
            Cipher::AesGcm256 => Some(esp::Suite::AesGcm256),
            Cipher::ChaCha20Poly1305 => Some(esp::Suite::ChaCha20Poly1305),
            Cipher::AesCbc128Sha1 => Some(esp::Suite::AesCbc128Sha1),
            Cipher::Null | Cipher::AesGcmXpn128 | Cipher::AesGcmXpn256 => None,
        }
    }
}

impl Protection {
    /// Whether it can use this cipher.
    #[must_use]
    pub const fn can(self, cipher: Cipher) -> bool {
        match self {
            Protection::Plain => matches!(cipher, Cipher::Null),
            Protection::MacSec | Protection::MacSecVxlan => cipher.macsec().is_some(),
            Protection::Esp | Protection::L2tp => cipher.esp().is_some(),
            Protection::WireGuard => matches!(cipher, Cipher::ChaCha20Poly1305),
        }
    }

    /// The cipher that is used if none is named: AES-128-GCM where it can be had.
    #[must_use]
    pub const fn usual_cipher(self) -> Cipher {
        match self {
            Protection::Plain => Cipher::Null,
            Protection::WireGuard => Cipher::ChaCha20Poly1305,
            _ => Cipher::AesGcm128,
        }
    }

    /// Whether it carries whole Ethernet frames, so that a layer-2 network goes on behind it.
    #[must_use]
    pub const fn carries_ethernet(self) -> bool {
        !matches!(self, Protection::Esp | Protection::WireGuard)
    }

    /// Whether it has IP headers of its own around the frames or packets.
    #[must_use]
    pub const fn has_outer_ip(self) -> bool {
        !matches!(self, Protection::Plain | Protection::MacSec)
    }

    /// Whether it is ESP, which NATs need in UDP.
    #[must_use]
    pub const fn has_esp(self) -> bool {
        matches!(self, Protection::Esp | Protection::L2tp)
    }
}

/// What a node of a path with a pseudowire is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Customer edge: its frames enter the pseudowire at the provider edge beside it.
    Ce,
    /// Provider edge: puts frames into the pseudowire and takes them out.
    Pe,
    /// Provider: swaps labels.
    P,
    /// A switch or router of a path without a pseudowire.
    Switch,
}

/// The most hops of a path.
pub const MOST_HOPS: u8 = 8;
/// The fewest hops that a pseudowire needs: CE-PE-PE-CE.
pub const LEAST_PSEUDOWIRE_HOPS: u8 = 3;

/// A path of secured links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// What protects the frames.
    pub protection: Protection,
    /// With what: [`Protection::can`] says whether it may be.
    pub cipher: Cipher,
    /// Between which nodes frames are protected.
    pub reach: Reach,
    /// Links between the first and the last node: 1 to [`MOST_HOPS`].
    pub hops: u8,
    /// Whether an MPLS pseudowire (VPWS, RFC 4448) carries the frames between the provider edges.
    pub pseudowire: bool,
    /// Whether the tester's frames carry a VLAN tag (IEEE 802.1Q): the paper's do.
    pub tagged: bool,
    /// What the last gateway opens at most, in bits a second of the frames that the tester sends: the paper's
    /// IPsec gateway was slow. Unlimited if not given.
    pub gateway: Option<Rate>,
    /// The network that carries the tunnels.
    #[serde(default)]
    pub carrier: Carrier,
}

impl Default for Topology {
    /// The paper's: CE-PE-P-PE-CE, tagged frames, nothing protected.
    fn default() -> Self {
        Topology {
            protection: Protection::Plain,
            cipher: Cipher::Null,
            reach: Reach::EndToEnd,
            hops: 4,
            pseudowire: true,
            tagged: true,
            gateway: None,
            carrier: Carrier::default(),
        }
    }
}

/// Why there is no such path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// It has no hop, or too many.
    #[error("a path of {0} hops")]
    Hops(u8),
    /// The protection has no such cipher.
    #[error("{protection} cannot use {cipher}")]
    Cipher {
        /// What was to protect the frames.
        protection: Protection,
        /// The cipher that it does not have.
        cipher: Cipher,
    },
    /// A pseudowire with too few hops.
    #[error("a pseudowire with {0} hops")]
    ShortPseudowire(u8),
    /// What carries no Ethernet frames cannot protect the links within a pseudowire, nor can what needs routers.
    #[error("{0} cannot protect each link of a pseudowire: they carry MPLS, and it needs IP")]
    NotLinkByLink(Protection),
    /// Nothing is protected, on every hop.
    #[error("nothing is protected, so it makes no difference where")]
    NothingToReach,
    /// It has no outer IP header.
    #[error("{0} has no outer IP header")]
    NoOuterIp(Protection),
    /// PPPoE carries packets, and MACsec protects Ethernet frames.
    #[error("{0} protects Ethernet frames, and PPPoE carries IP packets")]
    NotInPppoe(Protection),
    /// There is no ESP to be put in UDP.
    #[error("{0} needs no NAT traversal")]
    NoNatTraversal(Protection),
}

impl Explain for TopologyError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            TopologyError::Hops(_) => format!("take 1 to {MOST_HOPS} hops").into(),
            TopologyError::Cipher { protection, .. } => {
                let can = Cipher::ALL.iter().filter(|cipher| protection.can(**cipher));
                let names: Vec<_> = can.map(|cipher| cipher.name()).collect();
                format!("it can use {}", names.join(", ")).into()
            }
            TopologyError::ShortPseudowire(_) => {
                format!("take {LEAST_PSEUDOWIRE_HOPS} hops or more, or no pseudowire").into()
            }
            TopologyError::NotLinkByLink(_) => "protect end to end, or take MACsec".into(),
            TopologyError::NothingToReach => "leave plain frames end to end".into(),
            TopologyError::NoOuterIp(_) => "take esp, l2tp-esp, wireguard or macsec-vxlan".into(),
            TopologyError::NotInPppoe(_) => "take macsec-vxlan, or no PPPoE".into(),
            TopologyError::NoNatTraversal(_) => "take esp or l2tp-esp".into(),
        })
    }
}

impl Topology {
    /// Checks that there can be such a path.
    ///
    /// # Errors
    /// The first reason why not.
    pub const fn check(&self) -> Result<(), TopologyError> {
        if self.hops == 0 || self.hops > MOST_HOPS {
            return Err(TopologyError::Hops(self.hops));
        }
        if !self.protection.can(self.cipher) {
            let (protection, cipher) = (self.protection, self.cipher);
            return Err(TopologyError::Cipher { protection, cipher });
        }
        if self.pseudowire && self.hops < LEAST_PSEUDOWIRE_HOPS {
            return Err(TopologyError::ShortPseudowire(self.hops));
        }
        if matches!(self.reach, Reach::EveryHop) {
            match self.protection {
                Protection::Plain => return Err(TopologyError::NothingToReach),
                Protection::MacSec => {}
                other if self.pseudowire => return Err(TopologyError::NotLinkByLink(other)),
                _ => {}
            }
        }
        let Carrier { ip, pppoe, nat_traversal } = self.carrier;
        if matches!(ip, IpVersion::V6) && !self.protection.has_outer_ip() {
            return Err(TopologyError::NoOuterIp(self.protection));
        }
        if pppoe && matches!(self.protection, Protection::MacSec) {
            return Err(TopologyError::NotInPppoe(self.protection));
        }
        if nat_traversal && !self.protection.has_esp() {
            return Err(TopologyError::NoNatTraversal(self.protection));
        }
        Ok(())
    }

    /// Whether it carries whole Ethernet frames. Plain frames in PPPoE are IP packets.
    #[must_use]
    pub const fn carries_ethernet(&self) -> bool {
        let is_routed = matches!(self.protection, Protection::Plain) && self.carrier.pppoe;
        self.protection.carries_ethernet() && !is_routed
    }

    /// Nodes of the path: one more than its hops.
    #[must_use]
    pub const fn nodes(&self) -> u8 {
        self.hops.saturating_add(1)
    }

    /// What the node of this number is, counted from 0.
    #[must_use]
    pub const fn role(&self, node: u8) -> Role {
        match (self.pseudowire, node) {
            (false, _) => Role::Switch,
            (true, 0) => Role::Ce,
            (true, node) if node == self.hops => Role::Ce,
            (true, node) if node == 1 || node.saturating_add(1) == self.hops => Role::Pe,
            (true, _) => Role::P,
        }
    }

    /// Cryptographic operations on a frame from one tester to the other: seals and opens.
    #[must_use]
    pub const fn operations(&self) -> u32 {
        match (self.protection, self.reach) {
            (Protection::Plain, _) => 0,
            (_, Reach::EndToEnd) => 2,
            (_, Reach::EveryHop) => 2 * self.hops as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_five_nodes() {
        let path = Topology::default();
        path.check().unwrap();
        let roles: Vec<_> = (0..path.nodes()).map(|node| path.role(node)).collect();
        assert_eq!(roles, [Role::Ce, Role::Pe, Role::P, Role::Pe, Role::Ce]);
    }

    #[test]
    fn every_hop_takes_two_operations_a_hop() {
        let protection = Protection::MacSec;
        for (reach, hops, operations) in
            [(Reach::EndToEnd, 8, 2), (Reach::EveryHop, 1, 2), (Reach::EveryHop, 8, 16)]
        {
            let cipher = protection.usual_cipher();
            let pseudowire = false;
            let path =
                Topology { protection, cipher, reach, hops, pseudowire, ..Topology::default() };
            path.check().unwrap();
            assert_eq!(path.operations(), operations);
        }
    }

    #[test]
    fn what_cannot_be_says_why() {
        let base = Topology::default();
        let macsec = Topology { protection: Protection::MacSec, ..base };
        let esp = Topology { protection: Protection::Esp, cipher: Cipher::AesGcm128, ..base };
        let sealed = Topology { cipher: Cipher::AesGcm128, ..macsec };
        let carried = |mut path: Topology, set: fn(&mut Carrier)| {
            set(&mut path.carrier);
            path
        };
        for (path, why) in [
            (Topology { hops: 0, ..base }, "a path of 0 hops"),
            (Topology { hops: 9, ..base }, "a path of 9 hops"),
            (macsec, "macsec cannot use null"),
            (Topology { hops: 2, ..base }, "a pseudowire with 2 hops"),
            (Topology { reach: Reach::EveryHop, ..base }, "nothing is protected, so"),
            (Topology { reach: Reach::EveryHop, ..esp }, "esp cannot protect each link"),
            (carried(base, |on| on.ip = IpVersion::V6), "plain has no outer IP header"),
            (carried(sealed, |on| on.pppoe = true), "macsec protects Ethernet frames"),
            (carried(sealed, |on| on.nat_traversal = true), "macsec needs no NAT traversal"),
        ] {
            let error = path.check().unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
            assert!(error.remedy().is_some(), "{error}");
        }
    }

    #[test]
    fn each_protection_can_use_its_usual_cipher() {
        for protection in Protection::ALL {
            assert!(protection.can(protection.usual_cipher()), "{protection}");
        }
    }
}
