//! How long a frame becomes on a path of secured links: computed from the formats.

use serde::{Deserialize, Serialize};

use super::{Encapsulation, IpVersion, Layer, Protection, Reach, Topology, Wrapping};

/// Ethernet's header (IEEE 802.3 §3.1.1), without the check sequence.
const ETHERNET: usize = wire::ethernet::HEADER_LEN;
/// A VLAN tag (IEEE 802.1Q §9.3).
const TAG: usize = wire::vlan::HEADER_LEN;
const TCP: usize = 20;

/// What a pseudowire adds: an Ethernet header, a label, and a control word or a second label (RFC 4448 §4.4).
pub const VPWS_BYTES: usize = ETHERNET + 4 + 4;

/// A frame of the tester on two of a path's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameSize {
    /// Bytes on the tester's own links, Ethernet's header and VLAN tag included, check sequence not.
    pub offered: usize,
    /// Bytes between the first node and the second.
    pub access: usize,
    /// Bytes between the provider edges; as `access` where there are none.
    pub core: usize,
}

impl FrameSize {
    /// Bytes that security adds, or takes off where an Ethernet header stays behind.
    #[must_use]
    pub const fn security(&self) -> isize {
        self.access.cast_signed() - self.offered.cast_signed()
    }

    /// The share of the core's bytes that the tester's frame is.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.offered as f64 / self.core as f64
    }
}

impl FrameSize {
    /// A frame of this length on this path.
    #[must_use]
    pub fn of(topology: &Topology, offered: usize) -> FrameSize {
        let access = secured(topology, offered);
        let core = match (topology.pseudowire, topology.reach) {
            (false, _) => access,
            (true, Reach::EndToEnd) => access.saturating_add(VPWS_BYTES),
            // The core's own MACsec protects the provider's frame, not the customer's.
            (true, Reach::EveryHop) => secured(topology, offered.saturating_add(VPWS_BYTES)),
        };
        FrameSize { offered, access, core }
    }
}

/// The layers of a path's protection, and bytes of the tester's frame that stay behind.
fn layers(topology: &Topology) -> (Vec<Layer>, usize) {
    let Topology { protection, cipher, carrier, tagged, .. } = *topology;
    let wrapping = Wrapping::new(Encapsulation::from(protection), cipher, carrier);
    let mut layers = wrapping.map_or_else(|_| Vec::new(), |wrapping| wrapping.layers());
    if protection == Protection::WireGuard {
        // A packet of a path is never as long as its interface's MTU, so that it is padded whole.
        layers.insert(0, Layer::WireGuardPadding);
    }
    // The frame's own header is the innermost layer.
    if layers.first() == Some(&Layer::Ethernet) {
        return (layers.split_off(1), 0);
    }
    let tag = if tagged { TAG } else { 0 };
    let behind = if topology.carries_ethernet() { ETHERNET } else { ETHERNET + tag };
    (layers, behind)
}

/// A frame of `frame` bytes after its protection.
fn secured(topology: &Topology, frame: usize) -> usize {
    let (layers, behind) = layers(topology);
    wrapped(&layers, behind, frame)
}

fn wrapped(layers: &[Layer], behind: usize, frame: usize) -> usize {
    let inside = frame.saturating_sub(behind);
    layers.iter().fold(inside, |inside, layer| layer.around(inside)).saturating_add(ETHERNET)
}

/// The longest frame of a tester that a first link of this MTU (bytes after Ethernet's header) carries whole.
#[must_use]
pub fn largest_frame(topology: &Topology, mtu: usize) -> usize {
    let (layers, behind) = layers(topology);
    let fits = |frame: usize| wrapped(&layers, behind, frame) <= mtu.saturating_add(ETHERNET);
    // No protection makes a frame shorter by more than its own header and tag.
    let most = mtu.saturating_add(2 * ETHERNET + TAG);
    (0..=most).rev().find(|frame| fits(*frame)).unwrap_or(0)
}

/// The MTU for the hosts and the largest TCP segment (IPv4, no options), so that nothing is cut in pieces on a
/// first link of this MTU.
#[must_use]
pub fn largest_segment(topology: &Topology, mtu: usize) -> (usize, usize) {
    let header = ETHERNET + if topology.tagged { TAG } else { 0 };
    let inner = match topology.protection {
        // With this MTU its interface pads no packet beyond it.
        Protection::WireGuard => {
            let outside = FrameSize::of(topology, header).access.saturating_sub(ETHERNET);
            mtu.saturating_sub(outside)
        }
        _ => largest_frame(topology, mtu).saturating_sub(header),
    };
    (inner, inner.saturating_sub(IpVersion::V4.header_len() + TCP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Cipher;
    use proptest::prelude::*;

    fn path(protection: Protection, cipher: Cipher) -> Topology {
        Topology { protection, cipher, ..Topology::default() }
    }

    fn usual(protection: Protection) -> Topology {
        path(protection, protection.usual_cipher())
    }

    #[test]
    fn the_papers_frames_are_as_long_as_it_says() {
        // macsec-overhead.csv, and what a stock kernel sends.
        let cbc = path(Protection::Esp, Cipher::AesCbc128Sha1);
        for (path, access, core) in [
            (usual(Protection::Plain), 1000, 1022),
            (usual(Protection::MacSec), 1032, 1054),
            (cbc, 1062, 1084),
            (usual(Protection::Esp), 1050, 1072),
            (usual(Protection::WireGuard), 1066, 1088),
            (usual(Protection::MacSecVxlan), 1082, 1104),
        ] {
            let size = FrameSize::of(&path, 1000);
            assert_eq!((size.access, size.core), (access, core), "{}", path.protection);
        }
    }

    #[test]
    fn l2tp_adds_fifty_bytes_and_then_esp_38_to_53() {
        // The second overhead: UDP, IP and Ethernet around the frame make 50, ESP's parts the rest.
        let path = path(Protection::L2tp, Cipher::AesCbc128Sha1);
        let added: Vec<usize> =
            (900..1000).map(|frame| FrameSize::of(&path, frame).access - frame - 50).collect();
        assert_eq!((added.iter().min(), added.iter().max()), (Some(&38), Some(&53)));
    }

    #[test]
    fn every_hop_costs_the_core_as_much_as_end_to_end() {
        let path = Topology { reach: Reach::EveryHop, ..usual(Protection::MacSec) };
        assert_eq!(FrameSize::of(&path, 1000).core, 1054);
    }

    #[test]
    fn hosts_are_told_what_fits() {
        // Untagged, 1500 bytes at the provider's edge.
        let untagged = |topology: Topology| Topology { tagged: false, ..topology };
        assert_eq!(largest_segment(&untagged(usual(Protection::Plain)), 1500), (1500, 1460));
        assert_eq!(largest_segment(&untagged(usual(Protection::MacSec)), 1500), (1468, 1428));
        let wireguard = untagged(usual(Protection::WireGuard));
        assert_eq!(largest_segment(&wireguard, 1500), (1440, 1400));
        // No multiple of 16: the interface's MTU limits the padding.
        assert_eq!(largest_segment(&wireguard, 1492), (1432, 1392));
        // As the MTU table has it; a tag takes none of what is routed.
        for tagged in [false, true] {
            for protection in [Protection::WireGuard, Protection::Esp] {
                let path = Topology { tagged, ..usual(protection) };
                let (cipher, carrier) = (path.cipher, path.carrier);
                let wrapping = Wrapping::new(protection.into(), cipher, carrier).unwrap();
                assert_eq!(largest_segment(&path, 1500).0, wrapping.fit(1500).unwrap().mtu);
            }
        }
    }

    proptest! {
        #[test]
        fn the_largest_frame_fits_and_one_more_byte_does_not(
            protection in prop::sample::select(Protection::ALL), tagged: bool, mtu in 600usize..9000,
        ) {
            let topology = Topology { tagged, ..usual(protection) };
            let frame = largest_frame(&topology, mtu);
            prop_assert!(FrameSize::of(&topology, frame).access <= mtu + 14);
            prop_assert!(FrameSize::of(&topology, frame + 1).access > mtu + 14);
        }
    }
}
