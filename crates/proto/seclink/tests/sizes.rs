//! Bytes that security costs, as the MACsec paper and a trial on the Linux kernel counted them.

use std::net::Ipv4Addr;

use seclink::esp::tunnel::{Ends, Inner, Outer};
use seclink::esp::{Inbound, Opened, Outbound, Parameters, Suite};
use seclink::macsec::{Association, Confidentiality, Naming, Transmit, TransmitAssociation};
use seclink::{Secret, macsec, wireguard};
use wire::macsec::Sci;

use crate::common::{ipv4_packet, worked};

/// The paper's frame: Ethernet, VLAN tag, and an IP packet of 982 bytes.
const FRAME: usize = 1000;
const ETHERNET: usize = 14;
const PACKET: usize = FRAME - ETHERNET - 4;
/// Ethernet, label and control word of the L2VPN.
const L2VPN: usize = 14 + 4 + 4;

fn esp_frame(suite: Suite, in_udp: bool) -> usize {
    let parameters = Parameters {
        spi: 1,
        suite,
        key: Secret::new(vec![1; suite.key_material()]),
        extended: false,
    };
    let mut outbound = Outbound::new(parameters).unwrap();
    let (own, other) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
    let outer = Outer { ends: Ends::V4(own, other), in_udp };
    let packet = ipv4_packet(PACKET);
    let (_, sealed) = worked(&packet, |slot| {
        let inner = Inner::of(slot.frame()).unwrap();
        outbound.seal(slot, inner.next_header).unwrap();
        outer.wrap(slot, inner).unwrap();
    });
    // And back.
    let parameters = Parameters {
        spi: 1,
        suite,
        key: Secret::new(vec![1; suite.key_material()]),
        extended: false,
    };
    let mut inbound = Inbound::new(parameters, Some(64)).unwrap();
    let far = Outer { ends: Ends::V4(other, own), in_udp };
    let (_, opened) = worked(&sealed, |slot| {
        assert!(far.unwrap(slot));
        assert_eq!(inbound.open(slot), Opened::Delivered { next_header: 4 });
    });
    assert_eq!(opened, packet);
    ETHERNET + sealed.len()
}

#[test]
fn the_papers_frames_have_their_sizes() {
    let sci = Sci([2, 0, 0, 0, 0, 1, 0, 1]);
    let mut transmit = Transmit::new(sci, Naming::Explicit);
    let association = Association {
        number: 0,
        suite: macsec::Suite::GcmAes128,
        key: Secret::new(vec![1; 16]),
        extended: None,
        confidentiality: Confidentiality::All,
    };
    transmit.install(TransmitAssociation::new(association, sci, 1).unwrap());
    let macsec = worked(&[0; FRAME], |slot| transmit.seal(slot)).1.len();
    assert_eq!((macsec, macsec + L2VPN), (1032, 1054));
    let esp = esp_frame(Suite::AesCbc128Sha1, false);
    assert_eq!((esp, esp + L2VPN), (1062, 1084));
    let gcm = esp_frame(Suite::AesGcm128, false);
    assert_eq!((gcm, gcm + L2VPN), (1050, 1072));
    assert_eq!(esp_frame(Suite::AesGcm128, true), 1050 + 8);
}

#[test]
fn wireguards_frame_has_its_size() {
    let mut sender = wireguard::Sender::new(1, Secret::new(vec![1; 32])).unwrap();
    let message = worked(&ipv4_packet(PACKET), |slot| sender.seal(slot)).1.len();
    assert_eq!(ETHERNET + 20 + 8 + message, 1066);
}
