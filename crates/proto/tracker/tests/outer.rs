//! Captures wrapped in each encapsulation, and in fragments: the same records as bare.

use crate::common::{Frame, frames};
use proptest::prelude::*;
use tracker::{Connection, Counters, Limits, LinkType, Tracker};
use wire::ethernet::EtherType;

const NAMES: [&str; 3] = ["tls1.2.pcap", "openssl-3.0-modes.pcap", "tls13_psk_succesfull.pcap"];

fn observe(link: LinkType, frames: &[Frame]) -> (Vec<Connection>, Counters) {
    let mut tracker = Tracker::new(Limits::default());
    for (at, bytes, len) in frames {
        tracker.handle_packet(*at, link, bytes, *len);
    }
    tracker.close();
    let counters = *tracker.counters();
    assert!(counters.add_up(), "{counters:?}");
    (tracker.finish(), counters)
}

/// The IP packet in a frame, without padding.
fn packet(frame: &[u8]) -> &[u8] {
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    &frame[14..(14 + total).min(frame.len())]
}

/// What is left when bytes on the link, which encapsulations change, are taken off.
fn bare(mut all: Vec<Connection>) -> Vec<Connection> {
    for c in &mut all {
        let responses = [c.up_to_response.as_mut(), c.down_to_response.as_mut()];
        let traffic = [&mut c.up, &mut c.down];
        for traffic in traffic.into_iter().chain(responses.into_iter().flatten()) {
            traffic.bytes = 0;
        }
    }
    all
}

fn same_as_bare(link: LinkType, what: &str, wrap: impl Fn(&[u8]) -> Vec<u8>) {
    for name in NAMES {
        let original = frames(name);
        let wrapped: Vec<Frame> = original
            .iter()
            .map(|(at, bytes, _)| {
                let bytes = wrap(bytes);
                let len = bytes.len();
                (*at, bytes, len)
            })
            .collect();
        let (expected, _) = observe(LinkType::Ethernet, &original);
        let (found, counters) = observe(link, &wrapped);
        assert_eq!(bare(found), bare(expected), "{what}: {name}");
        assert_eq!(counters.followed, original.len() as u64, "{what}: {name}");
    }
}

#[test]
fn each_encapsulation_gives_the_same_records() {
    use crate::common::wrap::{
        capwap, datagram, erspan, ethernet, geneve, gre, gtpu, ieee_80211, ipv4, ipv6, labelled,
        pppoe, snap, tagged, vxlan, with_tag,
    };
    let (v4, v6) = (EtherType::IPV4, EtherType::IPV6);
    type Wrap = Box<dyn Fn(&[u8]) -> Vec<u8>>;
    let all: Vec<(&str, Wrap)> = vec![
        ("VLAN", Box::new(|f| tagged(f, &[EtherType::VLAN]))),
        ("QinQ", Box::new(|f| tagged(f, &[EtherType::QINQ, EtherType::VLAN]))),
        ("MPLS", Box::new(|f| labelled(packet(f), 1))),
        ("eight labels", Box::new(|f| labelled(packet(f), 8))),
        ("pseudowire", Box::new(|f| labelled(f, 2))),
        ("control word", Box::new(|f| labelled(&[&[0; 4], f].concat(), 2))),
        ("PPPoE", Box::new(|f| pppoe(packet(f)))),
        ("GRE", Box::new(move |f| ethernet(v4, &ipv4(47, &gre(v4, packet(f)))))),
        ("GRE over IPv6", Box::new(move |f| ethernet(v6, &ipv6(47, &gre(v4, packet(f)))))),
        ("bridged GRE", Box::new(move |f| ethernet(v4, &ipv4(47, &gre(EtherType::BRIDGED, f))))),
        (
            "MPLS in GRE",
            Box::new(move |f| {
                ethernet(v4, &ipv4(47, &gre(EtherType::MPLS, &labelled(packet(f), 3)[14..])))
            }),
        ),
        ("VXLAN", Box::new(move |f| ethernet(v4, &ipv4(17, &vxlan(f))))),
        (
            "VXLAN with a tag",
            Box::new(move |f| ethernet(v6, &ipv6(17, &vxlan(&tagged(f, &[EtherType::VLAN]))))),
        ),
        ("Geneve", Box::new(move |f| ethernet(v4, &ipv4(17, &geneve(EtherType::BRIDGED, f))))),
        ("IPv4 in Geneve", Box::new(move |f| ethernet(v6, &ipv6(17, &geneve(v4, packet(f)))))),
        ("GTP-U", Box::new(move |f| ethernet(v4, &ipv4(17, &gtpu(packet(f)))))),
        ("CAPWAP", Box::new(move |f| ethernet(v4, &ipv4(17, &capwap(false, f))))),
        (
            "CAPWAP with 802.11",
            Box::new(move |f| ethernet(v4, &ipv4(17, &capwap(true, &ieee_80211(packet(f)))))),
        ),
        ("IPv4 in IPv4", Box::new(move |f| ethernet(v4, &ipv4(4, packet(f))))),
        ("IPv4 in IPv6 in IPv4", Box::new(move |f| ethernet(v4, &ipv4(41, &ipv6(4, packet(f)))))),
        (
            "GRE in VXLAN in PPPoE",
            Box::new(move |f| {
                let inner = ethernet(v4, &ipv4(47, &gre(v4, packet(f))));
                pppoe(&ipv4(17, &vxlan(&inner)))
            }),
        ),
    ];
    let udp = move |port: u16, payload: &[u8]| ethernet(v4, &ipv4(17, &datagram(1, port, payload)));
    let more: Vec<(&str, Wrap)> = vec![
        ("ERSPAN I", Box::new(move |f| ethernet(v4, &ipv4(47, &erspan(1, f))))),
        ("ERSPAN II", Box::new(move |f| ethernet(v4, &ipv4(47, &erspan(2, f))))),
        ("ERSPAN III", Box::new(move |f| ethernet(v6, &ipv6(47, &erspan(3, f))))),
        ("VXLAN to 8472", Box::new(move |f| udp(8472, &vxlan(f)[8..]))),
        ("VXLAN-GPE", Box::new(move |f| udp(4790, &[&[0x0c, 0, 0, 3, 0, 0, 1, 0], f].concat()))),
        (
            "IPv4 in VXLAN-GPE",
            Box::new(move |f| udp(4790, &[&[0x0c, 0, 0, 1, 0, 0, 1, 0], packet(f)].concat())),
        ),
        (
            "NSH in VXLAN-GPE",
            Box::new(move |f| {
                let nsh = [0x0f, 0xc2, 2, 3, 0, 0, 1, 255];
                udp(4790, &[&[0x0c, 0, 0, 4, 0, 0, 1, 0], &nsh[..], f].concat())
            }),
        ),
        (
            "NSH",
            Box::new(move |f| {
                ethernet(EtherType::NSH, &[&[0x0f, 0xc2, 2, 1, 0, 0, 1, 255], packet(f)].concat())
            }),
        ),
        ("TZSP", Box::new(move |f| udp(37008, &[&[1, 0, 0, 1, 10, 1, 0xd0, 1], f].concat()))),
        (
            "CAPWAP with swapped 802.11",
            Box::new(move |f| {
                let mut frame = ieee_80211(packet(f));
                frame.swap(0, 1);
                ethernet(v4, &ipv4(17, &capwap(true, &frame)))
            }),
        ),
        ("SNAP", Box::new(snap)),
        ("VN-Tag", Box::new(|f| with_tag(EtherType::VN_TAG, &[0x80, 1, 0, 0], f))),
        ("HSR", Box::new(|f| with_tag(EtherType::HSR, &[0, 60, 0, 1], f))),
        ("E-TAG", Box::new(|f| with_tag(EtherType::E_TAG, &[0, 0, 0x10, 1, 0, 0], f))),
        ("MetaData", Box::new(|f| with_tag(EtherType::CISCO_METADATA, &[1, 1, 0, 1, 0, 9], f))),
        ("I-TAG", Box::new(move |f| ethernet(EtherType::I_TAG, &[&[0, 0, 0, 9], f].concat()))),
        (
            "MACsec, integrity only",
            Box::new(|f| {
                // A short length, for frames that need one.
                let data = f.len() - 12;
                let short = if data < 48 { data as u8 } else { 0 };
                let tag = [0, short, 0, 0, 0, 1];
                with_tag(EtherType::MACSEC, &tag, &[f, &[0x1c; 16]].concat())
            }),
        ),
        (
            "AH",
            Box::new(move |f| {
                ethernet(v4, &ipv4(51, &[&[4, 4][..], &[0; 22], packet(f)].concat()))
            }),
        ),
        (
            "L2TP",
            Box::new(move |f| {
                udp(1701, &[&[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21], packet(f)].concat())
            }),
        ),
        (
            "L2TPv3 over IP",
            Box::new(move |f| ethernet(v4, &ipv4(115, &[&[0, 0, 0, 9, 1, 2, 3, 4], f].concat()))),
        ),
        ("L2TPv3 over UDP", Box::new(move |f| udp(1701, &[&[0, 3, 0, 0, 0, 0, 0, 9], f].concat()))),
    ];
    for (what, wrap) in all.into_iter().chain(more) {
        same_as_bare(LinkType::Ethernet, what, wrap);
    }
    // With flags that mean nothing, it is a datagram like any other.
    let mut odd = vxlan(&frames(NAMES[0])[0].1)[8..].to_vec();
    odd[1] = 1;
    let inside = [(units::Time::ZERO, udp(2, &odd), 9)];
    assert_eq!(observe(LinkType::Ethernet, &inside).1.stray, 1);
}

#[test]
fn wrappings_that_are_not_read_are_counted_by_name() {
    use crate::common::wrap::{datagram, ethernet, ipv4};
    let v4 = EtherType::IPV4;
    let udp = |port: u16, payload: &[u8]| ethernet(v4, &ipv4(17, &datagram(1, port, payload)));
    for (name, frame) in [
        ("IPsec ESP", ethernet(v4, &ipv4(50, &[7; 60]))),
        ("IPsec ESP", udp(4500, &[7; 60])),
        ("MACsec", ethernet(EtherType::MACSEC, &[&[0x0c, 0, 0, 0, 0, 1][..], &[7; 80]].concat())),
        ("WireGuard", udp(51820, &[&[4, 0, 0, 0][..], &[7; 60]].concat())),
        ("CAPWAP in DTLS", udp(5247, &[&[1, 0, 0, 0][..], &[7; 60]].concat())),
        ("L2TPv3", ethernet(v4, &ipv4(115, &[7; 80]))),
        ("PPTP", ethernet(v4, &ipv4(47, &[0x30, 0x81, 0x88, 0x0b, 0, 4, 0, 1, 0, 0, 0, 1]))),
        ("TRILL", ethernet(EtherType(0x22f3), &[0; 60])),
    ] {
        let counters = observe(LinkType::Ethernet, &[(units::Time::ZERO, frame, 99)]).1;
        let counts: Vec<_> = counters.wrapped.counts().collect();
        let [(wrapping, 1)] = counts[..] else { panic!("{name}: {counts:?}") };
        assert_eq!((wrapping.name(), counters.other), (name, 1));
        assert!(counters.add_up());
    }
}

#[test]
fn each_link_type_gives_the_same_records() {
    let numbers = [
        (0, LinkType::Loopback),
        (108, LinkType::Loopback),
        (113, LinkType::LinuxCooked),
        (276, LinkType::LinuxCooked2),
        (1, LinkType::Ethernet),
        (101, LinkType::RawIp),
    ];
    for (number, link) in numbers {
        assert_eq!(LinkType::from_number(number), Some(link));
    }
    assert_eq!(LinkType::from_number(105), None);
    for number in [9, 50] {
        assert_eq!(LinkType::from_number(number), Some(LinkType::Ppp));
    }
    for framing in [&[0xff, 3, 0, 0x21][..], &[0, 0x21], &[0x21]] {
        same_as_bare(LinkType::Ppp, "PPP", |f| [framing, packet(f)].concat());
    }
    let v4 = EtherType::IPV4;
    same_as_bare(LinkType::RawIp, "raw", |f| packet(f).to_vec());
    same_as_bare(LinkType::LinuxCooked, "cooked", |f| {
        crate::common::wrap::cooked(v4, None, packet(f))
    });
    same_as_bare(LinkType::LinuxCooked2, "cooked 2", |f| {
        crate::common::wrap::cooked(v4, Some(2), packet(f))
    });
    same_as_bare(LinkType::LinuxCooked, "cooked with a tag", |f| {
        let tagged = crate::common::wrap::tagged(f, &[EtherType::VLAN]);
        crate::common::wrap::cooked(EtherType::VLAN, None, &tagged[14..])
    });
    for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
        same_as_bare(LinkType::Loopback, "loopback", |f| [&family, packet(f)].concat());
    }
}

#[test]
fn tunnels_are_followed_to_a_depth_and_no_further() {
    let bytes = &frames(NAMES[0])[0].1;
    for (depth, followed) in [(6, 1), (7, 0), (60, 0)] {
        let mut inner = packet(bytes).to_vec();
        for _ in 0..depth {
            inner = crate::common::wrap::ipv4(4, &inner);
        }
        // Ethernet, the outer headers, and the innermost: eight in all.
        let frame = crate::common::wrap::ethernet(EtherType::IPV4, &inner);
        let counters = observe(LinkType::Ethernet, &[(units::Time::ZERO, frame, 1)]).1;
        assert_eq!((counters.followed, counters.other), (followed, 1 - followed), "{depth}");
    }
}

/// Every packet in fragments, in an order of `turn`.
fn in_fragments(
    original: &[Frame],
    turn: usize,
    split: impl Fn(usize, &[u8]) -> Vec<Vec<u8>>,
) -> Vec<Frame> {
    let mut out = Vec::new();
    for (number, (at, bytes, _)) in original.iter().enumerate() {
        let mut pieces = split(number, packet(bytes));
        let by = turn % pieces.len();
        pieces.rotate_left(by);
        out.extend(pieces.into_iter().map(|piece| {
            let len = piece.len();
            (*at, piece, len)
        }));
    }
    out
}

#[test]
fn fragments_give_the_records_of_the_whole() {
    for name in NAMES {
        let original = frames(name);
        let (expected, _) = observe(LinkType::Ethernet, &original);
        for turn in 0..3 {
            for (what, split) in [
                (
                    "IPv4",
                    (|n, p| crate::common::wrap::fragments_v4(p, n as u16, 128))
                        as fn(usize, &[u8]) -> Vec<Vec<u8>>,
                ),
                ("in a tunnel", |n, p| crate::common::wrap::fragments_v6(4, p, n as u32, 96)),
                ("on both levels", |n, p| {
                    let inner = crate::common::wrap::fragments_v4(p, n as u16, 200);
                    let outer = |(k, f): (usize, &Vec<u8>)| {
                        crate::common::wrap::fragments_v6(4, f, (n * 64 + k) as u32, 128)
                    };
                    inner.iter().enumerate().flat_map(outer).collect()
                }),
            ] {
                let fragmented = in_fragments(&original, turn, split);
                let (mut found, counters) = observe(LinkType::RawIp, &fragmented);
                let frames: u64 = found.iter().map(|c| c.up.frames + c.down.frames).sum();
                assert_eq!(frames, fragmented.len() as u64, "{what}");
                assert_eq!(counters.fragments_dropped.total(), 0, "{what}: {name}: {counters:?}");
                assert!(counters.reassembled > 0, "{what}: {name}: {counters:?}");
                // Each frame is counted; the records agree but for that.
                for (found, expected) in found.iter_mut().zip(&expected) {
                    (found.up, found.down) = (expected.up, expected.down);
                    found.up_to_response = expected.up_to_response;
                    found.down_to_response = expected.down_to_response;
                }
                assert_eq!(found, expected, "{what}: {name}");
            }
        }
    }
}

#[test]
fn overlapping_fragments_are_dropped_and_counted() {
    let original = frames(NAMES[0]);
    let mut pieces =
        in_fragments(&original[3..4], 0, |n, p| crate::common::wrap::fragments_v4(p, n as u16, 64));
    let mut overlap = pieces[1].clone();
    overlap.1[7] -= 1;
    pieces.insert(1, overlap);
    let (found, counters) = observe(LinkType::RawIp, &pieces);
    assert_eq!((found.len(), counters.reassembled), (0, 0));
    assert_eq!(counters.fragments_dropped.overlapping, pieces.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Hostile bits in tunnels and fragments: no frame is lost to the counters.
    #[test]
    fn flipped_bits_in_tunnels_are_accounted_for(
        way in 0usize..4,
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), 0usize..120, 0u8..8), 1..40),
    ) {
        let original = frames(NAMES[2]);
        let v4 = EtherType::IPV4;
        let mut wrapped: Vec<Frame> = match way {
            0 => in_fragments(&original, 1, |n, p| crate::common::wrap::fragments_v4(p, n as u16, 64)),
            1 => in_fragments(&original, 1, |n, p| crate::common::wrap::fragments_v6(4, p, n as u32, 64)),
            2 => in_fragments(&original, 0, |_, p| vec![crate::common::wrap::ipv4(47, &crate::common::wrap::gre(v4, p))]),
            _ => in_fragments(&original, 0, |_, p| {
                vec![crate::common::wrap::ipv6(17, &crate::common::wrap::vxlan(&crate::common::wrap::labelled(p, 2)))]
            }),
        };
        for (frame, byte, bit) in flips {
            let frame = frame.get_mut(&mut wrapped[..]);
            let byte = byte % frame.1.len();
            frame.1[byte] ^= 1 << bit;
        }
        observe(LinkType::RawIp, &wrapped);
    }
}
