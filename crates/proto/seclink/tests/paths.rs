//! Whole paths: frames from one tester to the other, through every node, both ways.

use proptest::prelude::*;
use seclink::path::{
    Carrier, Cipher, FrameSize, IpVersion, MOST_HOPS, Protection, Reach, Topology,
};
use seclink::plane::{self, HEADROOM, KeyId, Node, Plan, Reason, TAILROOM, VLAN, Way};
use seclink::{Secret, Slot};
use units::Time;

use crate::common::ipv4_packet;

/// A key that no other stretch or way has.
fn key(id: KeyId) -> Secret {
    let first = 2 * id.link + u8::from(id.way == Way::Backward);
    Secret::new((0..id.len).map(|at| first.wrapping_add(7 * at as u8)).collect())
}

/// A path that stands.
struct Standing {
    topology: Topology,
    plan: Plan,
    nodes: Vec<Node>,
}

/// A frame on a link, or after the last node; or who dropped it and why.
type Passed = Result<Vec<u8>, (usize, Reason)>;

impl Standing {
    fn new(topology: Topology) -> Standing {
        let plan = Plan::numbered(&topology);
        let nodes = plane::nodes(&topology, &plan, key).unwrap();
        Standing { topology, plan, nodes }
    }

    /// What the node that is the `at`th on the way makes of a frame.
    fn pass(&mut self, way: Way, at: usize, frame: &[u8]) -> Passed {
        let last = self.nodes.len() - 1;
        let hop = match way {
            Way::Forward => &mut self.nodes[at].forward,
            Way::Backward => &mut self.nodes[last - at].backward,
        };
        let (before, behind) = (usize::from(HEADROOM), usize::from(TAILROOM));
        let mut buffer = [&vec![0xee; before][..], frame, &vec![0xee; behind]].concat();
        let mut slot = Slot::new(&mut buffer, before..before + frame.len()).unwrap();
        match hop.handle(Time::ZERO, &mut slot) {
            Ok(_) => Ok(slot.frame().to_vec()),
            Err(reason) => Err((at, reason)),
        }
    }

    /// The frame on each link, and at last behind the last node.
    fn carry(&mut self, way: Way, frame: &[u8]) -> Vec<Vec<u8>> {
        let mut passed = vec![frame.to_vec()];
        for at in 0..self.nodes.len() {
            let next = self.pass(way, at, &passed[at]);
            passed.push(next.unwrap_or_else(|why| panic!("{:?}: {why:?}", self.topology)));
        }
        passed.remove(0);
        passed
    }

    /// From the `at`th node to the end.
    fn carry_from(&mut self, way: Way, at: usize, frame: &[u8]) -> Passed {
        (at..self.nodes.len()).try_fold(frame.to_vec(), |frame, at| self.pass(way, at, &frame))
    }

    /// Two hardware addresses: what the tester sends to, and what it hears.
    fn frame(&self, way: Way, len: usize) -> Vec<u8> {
        let [first, last] = self.plan.lans;
        let (near, far) = if way == Way::Forward { (first, last) } else { (last, first) };
        let to = if self.topology.carries_ethernet() { far.host } else { near.own };
        self.tagged(to.0, near.host.0, len)
    }

    /// What the far tester is to get of it.
    fn arriving(&self, way: Way, sent: &[u8]) -> Vec<u8> {
        if self.topology.carries_ethernet() {
            return sent.to_vec();
        }
        let [first, last] = self.plan.lans;
        let far = if way == Way::Forward { last } else { first };
        [&far.host.0[..], &far.own.0, &sent[12..]].concat()
    }

    fn tagged(&self, to: [u8; 6], from: [u8; 6], len: usize) -> Vec<u8> {
        let tag = [&[0x81, 0][..], &VLAN.to_be_bytes()].concat();
        let tag = if self.topology.tagged { &tag[..] } else { &[] };
        let head = [&to[..], &from, tag, &[8, 0]].concat();
        let packet = ipv4_packet(len - head.len());
        [head, packet].concat()
    }

    fn dropped(&self) -> Vec<(Reason, u64)> {
        let hops = self.nodes.iter().flat_map(|node| [&node.forward, &node.backward]);
        hops.flat_map(|hop| hop.counters().drops().collect::<Vec<_>>()).collect()
    }
}

/// Every network under a tunnel but the usual.
fn carriers() -> impl Iterator<Item = Carrier> {
    let all = IpVersion::ALL.iter().flat_map(|ip| {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(pppoe, nat_traversal)| Carrier { ip: *ip, pppoe, nat_traversal })
    });
    all.filter(|carrier| *carrier != Carrier::default())
}

/// Every path that there can be.
fn all() -> Vec<Topology> {
    let mut all = Vec::new();
    for protection in Protection::ALL {
        for cipher in Cipher::ALL.iter().filter(|cipher| protection.can(**cipher)) {
            for (reach, hops) in
                Reach::ALL.iter().flat_map(|reach| (1..=MOST_HOPS).map(move |hops| (*reach, hops)))
            {
                for (pseudowire, tagged) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let (protection, cipher) = (*protection, *cipher);
                    let gateway = None;
                    let carrier = Carrier::default();
                    let topology = Topology {
                        protection,
                        cipher,
                        reach,
                        hops,
                        pseudowire,
                        tagged,
                        gateway,
                        carrier,
                    };
                    all.extend(topology.check().is_ok().then_some(topology));
                    // Other networks under the tunnels, where the number of hops is not the question.
                    let carried = carriers().map(|carrier| Topology { carrier, ..topology });
                    let few = hops == 2 || hops == 4;
                    all.extend(carried.filter(|path| few && path.check().is_ok()));
                }
            }
        }
    }
    all
}

fn assert_carried(path: &mut Standing, way: Way, len: usize) {
    let frame = path.frame(way, len);
    let mut passed = path.carry(way, &frame);
    let (topology, size) = (path.topology, FrameSize::of(&path.topology, len));
    let arrived = passed.pop().unwrap();
    assert_eq!(arrived, path.arriving(way, &frame), "{topology:?} {len}");
    for (at, on_link) in passed.iter().enumerate() {
        // Links 2 to n - 1 are the provider's.
        let is_core = topology.pseudowire && at > 0 && at + 2 < path.nodes.len();
        let expected = if is_core { size.core } else { size.access };
        assert_eq!(on_link.len(), expected, "{topology:?} {len} on link {}", at + 1);
    }
}

#[test]
fn every_path_carries_frames_both_ways_at_the_computed_size() {
    let all = all();
    assert!(all.len() > 300, "{}", all.len());
    for topology in all {
        let mut path = Standing::new(topology);
        for way in Way::ALL {
            for len in [64, 65, 1000, 1518] {
                assert_carried(&mut path, *way, len);
            }
        }
        assert_eq!(path.dropped(), []);
    }
}

#[test]
fn the_papers_frames_are_seen_on_the_links() {
    for (protection, cipher, access, core) in [
        (Protection::Plain, Cipher::Null, 1000, 1022),
        (Protection::MacSec, Cipher::AesGcm128, 1032, 1054),
        (Protection::Esp, Cipher::AesCbc128Sha1, 1062, 1084),
        (Protection::Esp, Cipher::AesGcm128, 1050, 1072),
        (Protection::WireGuard, Cipher::ChaCha20Poly1305, 1066, 1088),
        (Protection::MacSecVxlan, Cipher::AesGcm128, 1082, 1104),
    ] {
        let mut path = Standing::new(Topology { protection, cipher, ..Topology::default() });
        let frame = path.frame(Way::Forward, 1000);
        let lens: Vec<usize> =
            path.carry(Way::Forward, &frame).iter().map(|frame| frame.len()).collect();
        assert_eq!(lens, [access, core, core, access, 1000], "{protection}");
    }
}

fn any_path() -> impl Strategy<Value = Topology> {
    prop::sample::select(all())
}

fn any_secured_path() -> impl Strategy<Value = Topology> {
    let mut secured = all();
    secured.retain(|topology| topology.protection != Protection::Plain);
    prop::sample::select(secured)
}

fn any_way() -> impl Strategy<Value = Way> {
    prop::sample::select(Way::ALL)
}

proptest! {
    #[test]
    fn frames_of_any_size_are_carried(
        topology in any_path(), way in any_way(), lens in prop::collection::vec(64usize..=1518, 1..4),
    ) {
        let mut path = Standing::new(topology);
        for len in lens {
            assert_carried(&mut path, way, len);
        }
    }

    /// Whatever is changed on a link, the tester gets the frame as it was sent, or nothing; and it is counted.
    #[test]
    fn a_mangled_frame_is_never_delivered(
        topology in any_secured_path(), way in any_way(), len in 64usize..300,
        link: prop::sample::Index, at: prop::sample::Index, bit in 0u8..8,
    ) {
        let mut path = Standing::new(topology);
        let frame = path.frame(way, len);
        let passed = path.carry(way, &frame);
        let link = link.index(topology.hops.into());
        // A second frame, since the first has been taken.
        let frame = path.frame(way, len);
        let mut mangled =
            (0..=link).try_fold(frame.clone(), |frame, at| path.pass(way, at, &frame)).unwrap();
        let at = at.index(mangled.len());
        mangled[at] ^= 1 << bit;
        match path.carry_from(way, link + 1, &mangled) {
            Ok(delivered) => prop_assert_eq!(&delivered, passed.last().unwrap()),
            Err(_) => {
                let sum: u64 = path.dropped().iter().map(|(_, count)| count).sum();
                prop_assert_eq!(sum, 1);
            }
        }
    }

    #[test]
    fn a_cut_frame_is_never_delivered(
        topology in any_secured_path(), way in any_way(), len in 64usize..300,
        link: prop::sample::Index, kept: prop::sample::Index,
    ) {
        let mut path = Standing::new(topology);
        let frame = path.frame(way, len);
        let link = link.index(topology.hops.into());
        let passed = path.carry(way, &frame);
        let whole =
            (0..=link).try_fold(frame, |frame, at| path.pass(way, at, &frame)).unwrap();
        prop_assert_eq!(whole.len(), passed[link].len());
        let kept = kept.index(whole.len());
        prop_assert!(path.carry_from(way, link + 1, &whole[..kept]).is_err());
    }

    #[test]
    fn a_replayed_frame_is_delivered_once(
        topology in any_secured_path(), way in any_way(), link: prop::sample::Index,
    ) {
        let mut path = Standing::new(topology);
        let frame = path.frame(way, 100);
        let link = link.index(topology.hops.into());
        let on_link = path.carry(way, &frame)[link].clone();
        let (_, why) = path.carry_from(way, link + 1, &on_link).unwrap_err();
        let expected = match topology.protection {
            Protection::MacSec | Protection::MacSecVxlan => Reason::MacsecLate,
            Protection::WireGuard => Reason::WireGuardReplayed,
            _ => Reason::EspReplayed,
        };
        prop_assert_eq!((why, path.dropped()), (expected, vec![(expected, 1)]));
    }

    /// What was sealed for one way or with another path's keys is nobody's.
    #[test]
    fn a_forged_frame_is_never_delivered(topology in any_secured_path(), way in any_way()) {
        let mut path = Standing::new(topology);
        let mut forger = Standing::new(topology);
        let plan = Plan::numbered(&topology);
        let other = |id: KeyId| Secret::new(vec![0x11; id.len]);
        forger.nodes = plane::nodes(&topology, &plan, other).unwrap();
        let frame = path.frame(way, 100);
        let forged = forger.carry(way, &frame);
        let opener = if topology.reach == Reach::EveryHop { 0 } else { forged.len() - 2 };
        prop_assert!(path.carry_from(way, opener + 1, &forged[opener]).is_err());
        let bare = path.carry_from(way, opener + 1, &frame);
        prop_assert!(bare.is_err(), "a frame without protection");
        let turned = if way == Way::Forward { Way::Backward } else { Way::Forward };
        prop_assert!(path.carry_from(turned, opener + 1, &forged[opener]).is_err());
    }
}

#[test]
fn the_pseudowire_passes_key_agreement() {
    let mut path = Standing::new(Topology::default());
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 3, 2, 0, 0, 0, 0, 1, 0x88, 0x8e, 3, 5];
    frame.extend([0; 60]);
    assert_eq!(path.carry(Way::Forward, &frame).pop(), Some(frame));
}

#[test]
fn what_is_routed_takes_packets_of_its_own_lan_alone() {
    for protection in [Protection::Esp, Protection::WireGuard] {
        let cipher = protection.usual_cipher();
        let mut path = Standing::new(Topology { protection, cipher, ..Topology::default() });
        let good = path.frame(Way::Forward, 100);
        for (at, value, why) in [
            // Another station, another VLAN, another EtherType, another version, a packet cut short.
            (5, 9, Reason::NotForUs),
            (15, 11, Reason::NotIp),
            (12, 0, Reason::NotIp),
            (17, 6, Reason::NotIp),
            (18, 0x65, Reason::NotIp),
            (21, 200, Reason::NotIp),
        ] {
            let mut frame = good.clone();
            frame[at] = value;
            assert_eq!(path.carry_from(Way::Forward, 0, &frame), Err((0, why)), "byte {at}");
        }
        // What Ethernet pads is left behind.
        let padded = [&good[..], &[0; 9]].concat();
        let expected = path.arriving(Way::Forward, &good);
        assert_eq!(path.carry_from(Way::Forward, 0, &padded), Ok(expected));
    }
}

#[test]
fn l2tp_without_esp_does_not_come_in() {
    let (protection, cipher) = (Protection::L2tp, Cipher::AesGcm128);
    let mut path = Standing::new(Topology { protection, cipher, ..Topology::default() });
    let frame = path.frame(Way::Forward, 100);
    // The same headers without ESP between them.
    let [near, far] = [path.plan.links[0][0].mac, path.plan.links[3][1].mac];
    let [left, right] = path.plan.through;
    let own = seclink::underlay::Station { mac: near, ip: left };
    let peer = seclink::underlay::Station { mac: far, ip: right };
    let tunnel = seclink::underlay::Underlay::between(own, peer);
    let mut buffer = [&[0; 128][..], &frame].concat();
    let mut slot = Slot::new(&mut buffer, 128..128 + frame.len()).unwrap();
    seclink::l2tp::push(&mut slot, 0x101).unwrap();
    tunnel.put_udp(&mut slot, 1701, 1701).unwrap();
    tunnel.put_ip(&mut slot, 17).unwrap();
    tunnel.put_ethernet(&mut slot).unwrap();
    let bare = slot.frame().to_vec();
    assert_eq!(path.pass(Way::Forward, 4, &bare), Err((4, Reason::EspMalformed)));
}

#[test]
fn a_slow_gateway_says_when_a_frame_leaves_and_drops_what_is_too_much() {
    let gateway = Some("120mbit".parse().unwrap());
    let mut path = Standing::new(Topology { gateway, ..Topology::default() });
    let frame = path.frame(Way::Forward, 1000);
    let mut buffer = frame.clone();
    let (mut held, mut dropped) = (0, 0);
    for _ in 0..100 {
        let mut slot = Slot::new(&mut buffer, 0..frame.len()).unwrap();
        match path.nodes[4].forward.handle(Time::from_millis(1), &mut slot) {
            Ok(at) => held += u32::from(at > Some(Time::from_millis(1))),
            Err(why) => dropped += u32::from(why == Reason::GatewayFull),
        }
    }
    assert_eq!((held, dropped), (64, 36));
    assert_eq!(path.dropped(), [(Reason::GatewayFull, 36)]);
}
