//! MTUs that are computed, against packets that our planes seal: the longest fits the path, and one byte more does not.

use std::net::IpAddr;

use seclink::esp::{Inbound, Outbound, Parameters, Suite, transport};
use seclink::macsec::{
    Association, Confidentiality, Naming, Receive, ReceiveAssociation, Transmit,
    TransmitAssociation, Validation,
};
use seclink::path::{Carrier, Cipher, Encapsulation, IpVersion, Layer, MtuError, Wrapping};
use seclink::plane::{Opener, Sealer};
use seclink::underlay::{Station, Underlay};
use seclink::vpws::{Label, Link, Pop, Push};
use seclink::wireguard::{Receiver, Sender};
use seclink::{Secret, Slot, l2tp, vxlan};
use wire::ethernet::Address;
use wire::macsec::Sci;

use crate::common::{ipv4_packet, ipv6_packet};

/// Room around a packet: more than any encapsulation takes.
const ROOM: usize = 256;
const ETHERNET: usize = 14;
const NETWORK: u32 = 7;
const SESSION: u32 = 9;
const PORT: u16 = 51_820;

/// Usual path MTUs: the least of IPv6, PPPoE's, tunnelled and plain Ethernet, RFC 4638's, jumbo frames.
const PATHS: [usize; 7] = [1280, 1400, 1492, 1500, 1508, 1600, 9000];

fn underlay(carrier: Carrier) -> Underlay {
    let ip = |last: u8| -> IpAddr {
        match carrier.ip {
            IpVersion::V4 => [192, 0, 2, last].into(),
            IpVersion::V6 => [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)].into(),
        }
    };
    let station = |last| Station { mac: Address([2, 0, 0, 0, 0, last]), ip: ip(last) };
    Underlay {
        session: carrier.pppoe.then_some(77),
        nat_traversal: carrier.nat_traversal,
        ..Underlay::between(station(1), station(2))
    }
}

fn parameters(suite: Suite) -> Parameters {
    let key = Secret::new(vec![1; suite.key_material()]);
    Parameters { spi: 0x1000, suite, key, extended: false }
}

fn macsec(cipher: Cipher) -> (Box<Transmit>, Box<Receive>) {
    let suite = cipher.macsec().unwrap();
    let association = || Association {
        number: 0,
        suite,
        key: Secret::new(vec![1; suite.key_len()]),
        extended: suite
            .is_extended()
            .then_some(seclink::macsec::Extended { ssci: 1, salt: [3; 12] }),
        confidentiality: Confidentiality::All,
    };
    let sci = Sci([2, 0, 0, 0, 0, 1, 0, 1]);
    let mut transmit = Transmit::new(sci, Naming::Explicit);
    transmit.install(TransmitAssociation::new(association(), sci, 1).unwrap());
    let mut receive = Receive::new(Validation::Strict, Some(0));
    receive.install(sci, ReceiveAssociation::new(association(), sci).unwrap());
    (Box::new(transmit), Box::new(receive))
}

fn labelled() -> Link {
    let station = |side| Address([2, 0, 0, 0, 9, side]);
    Link { from: station(1), to: station(2), label: Label::new(100).unwrap() }
}

/// Seals what is in the slot, a packet or an Ethernet frame, by our planes. `mtu`: that of the tunnel's interface.
fn seal(wrapping: &Wrapping, mtu: usize, slot: &mut Slot<'_>) {
    let (cipher, tunnel) = (wrapping.cipher(), underlay(wrapping.carrier()));
    let outbound = || Box::new(Outbound::new(parameters(cipher.esp().unwrap())).unwrap());
    let mut sealer = match wrapping.encapsulation() {
        Encapsulation::Plain => Sealer::Routed { underlay: tunnel },
        Encapsulation::MacSec => Sealer::MacSec(macsec(cipher).0),
        Encapsulation::Esp => Sealer::Esp { outbound: outbound(), underlay: tunnel },
        Encapsulation::EspTransport => {
            transport::seal(&mut outbound(), slot, tunnel.nat_traversal).unwrap();
            Sealer::Routed { underlay: tunnel }
        }
        Encapsulation::WireGuard => {
            let sender = Sender::new(1, Secret::new(vec![1; 32])).unwrap().limited_to(mtu);
            Sealer::WireGuard { sender: Box::new(sender), underlay: tunnel, port: PORT }
        }
        Encapsulation::Vxlan => {
            vxlan::push(slot, NETWORK).unwrap();
            tunnel.put_udp(slot, 50_000, wire::vxlan::PORT).unwrap();
            tunnel.put_ip(slot, wire::udp::PROTOCOL).unwrap();
            Sealer::Routed { underlay: tunnel }
        }
        Encapsulation::MacSecVxlan => {
            let transmit = macsec(cipher).0;
            Sealer::MacSecVxlan { transmit, underlay: tunnel, network: NETWORK }
        }
        Encapsulation::L2tp => {
            l2tp::push(slot, SESSION).unwrap();
            tunnel.put_udp(slot, wire::l2tpv3::PORT, wire::l2tpv3::PORT).unwrap();
            tunnel.put_ip(slot, wire::udp::PROTOCOL).unwrap();
            Sealer::Routed { underlay: tunnel }
        }
        Encapsulation::L2tpEsp => {
            Sealer::L2tp { outbound: outbound(), underlay: tunnel, session: SESSION }
        }
        Encapsulation::Pseudowire => {
            Push { link: labelled() }.apply(slot).unwrap();
            Sealer::Plain
        }
    };
    sealer.seal(slot).unwrap();
}

/// Opens it again.
fn open(wrapping: &Wrapping, slot: &mut Slot<'_>) {
    let (cipher, tunnel) = (wrapping.cipher(), underlay(wrapping.carrier()).turned());
    let inbound = || Box::new(Inbound::new(parameters(cipher.esp().unwrap()), Some(64)).unwrap());
    let mut opener = match wrapping.encapsulation() {
        Encapsulation::MacSec => Opener::MacSec(macsec(cipher).1),
        Encapsulation::Esp => Opener::Esp { inbound: inbound(), underlay: tunnel },
        Encapsulation::WireGuard => {
            let receiver = Receiver::new(1, Secret::new(vec![1; 32])).unwrap();
            Opener::WireGuard { receiver: Box::new(receiver), underlay: tunnel, port: PORT }
        }
        Encapsulation::MacSecVxlan => {
            let receive = macsec(cipher).1;
            Opener::MacSecVxlan { receive, underlay: tunnel, network: NETWORK }
        }
        Encapsulation::L2tpEsp => {
            Opener::L2tp { inbound: inbound(), underlay: tunnel, session: SESSION }
        }
        Encapsulation::Pseudowire => {
            Pop { link: labelled() }.apply(slot).unwrap();
            Opener::Plain
        }
        _ => Opener::Routed { underlay: tunnel },
    };
    opener.open(slot).unwrap();
    match wrapping.encapsulation() {
        Encapsulation::EspTransport => {
            let opened = transport::open(&mut inbound(), slot, tunnel.nat_traversal);
            assert_eq!(opened, seclink::esp::Opened::Delivered { next_header: 17 });
        }
        Encapsulation::Vxlan => {
            Underlay::take_ip(slot, wire::udp::PROTOCOL).unwrap();
            Underlay::take_udp(slot, wire::vxlan::PORT).unwrap();
            assert!(vxlan::pop(slot, NETWORK));
        }
        Encapsulation::L2tp => {
            Underlay::take_ip(slot, wire::udp::PROTOCOL).unwrap();
            Underlay::take_udp(slot, wire::l2tpv3::PORT).unwrap();
            assert!(l2tp::pop(slot, SESSION));
        }
        _ => {}
    }
}

/// Bytes behind the outer Ethernet header of an IP packet of so many bytes that our planes seal; it is opened again.
fn sealed(wrapping: &Wrapping, packet: usize, mtu: usize) -> usize {
    let ip = match wrapping.encapsulation() {
        Encapsulation::EspTransport if wrapping.carrier().ip == IpVersion::V6 => {
            ipv6_packet(packet)
        }
        _ => ipv4_packet(packet),
    };
    let encapsulation = wrapping.encapsulation();
    let has_frame = encapsulation.carries_ethernet();
    let header = if has_frame { vec![2, 0, 0, 0, 3, 1, 2, 0, 0, 0, 3, 2, 8, 0] } else { vec![] };
    let inside = [header, ip].concat();
    let mut buffer = [&vec![0; ROOM][..], &inside, &vec![0; ROOM]].concat();
    let mut slot = Slot::new(&mut buffer, ROOM..ROOM + inside.len()).unwrap();
    seal(wrapping, mtu, &mut slot);
    let len = slot.len() - ETHERNET;
    open(wrapping, &mut slot);
    assert_eq!(slot.frame(), inside, "{wrapping:?}");
    len
}

/// Every encapsulation with every cipher on every carrier.
fn all() -> Vec<Wrapping> {
    let mut all = Vec::new();
    for ip in IpVersion::ALL {
        for (pppoe, nat_traversal) in [(false, false), (false, true), (true, false), (true, true)] {
            let carrier = Carrier { ip: *ip, pppoe, nat_traversal };
            for encapsulation in Encapsulation::ALL {
                for cipher in Cipher::ALL.iter().filter(|cipher| encapsulation.can(**cipher)) {
                    match Wrapping::new(*encapsulation, *cipher, carrier) {
                        Ok(wrapping) => all.push(wrapping),
                        Err(error) => assert!(matches!(error, MtuError::NotInPppoe(_))),
                    }
                }
            }
        }
    }
    all
}

#[test]
fn the_longest_packet_fits_the_path_and_one_byte_more_does_not() {
    let all = all();
    assert!(all.len() > 100, "{}", all.len());
    for wrapping in all {
        let is_padded = wrapping.layers().iter().any(|layer| matches!(layer, Layer::Esp(_)));
        for path in PATHS {
            let fit = wrapping.fit(path).unwrap();
            let longest = sealed(&wrapping, fit.mtu, fit.mtu);
            assert_eq!(longest, wrapping.outer_len(fit.mtu), "{wrapping:?}");
            let block = wrapping.cipher().esp().map_or(1, Suite::block_len);
            let least = if is_padded { path + 1 - block } else { path };
            assert!((least..=path).contains(&longest), "{longest} of {path}: {wrapping:?}");
            // An interface with an MTU of one byte more.
            let longer = sealed(&wrapping, fit.mtu + 1, fit.mtu + 1);
            assert!(longer > path, "{longer} of {path}: {wrapping:?}");
            // And the path that 1500 bytes are said to need.
            let needed = fit.path_mtu_for_1500;
            assert_eq!(sealed(&wrapping, 1500, 1500), needed, "{wrapping:?}");
        }
    }
}

#[test]
fn an_interfaces_mtu_limits_wireguards_padding() {
    let carrier = Carrier { pppoe: true, ..Carrier::default() };
    let wrapping =
        Wrapping::new(Encapsulation::WireGuard, Cipher::ChaCha20Poly1305, carrier).unwrap();
    // 1432 is no multiple of 16: padded whole, the packet were longer than the path.
    assert_eq!(sealed(&wrapping, 1432, 1432), 1500);
    assert_eq!(sealed(&wrapping, 1432, usize::MAX), 1508);
    // Shorter packets are padded as far as the interface allows.
    assert_eq!(sealed(&wrapping, 1425, 1432), 1500);
    assert_eq!(sealed(&wrapping, 1300, 1432), 1312 + 68);
}
