//! Paths out of our own engine: frames come through, links have seen as many bytes as computed, nothing is dropped.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use l2vpn::{Between, Counted, End, OwnOptions, Standing};
use lab::{Backend, Lab, LabOptions};
use lab_test::{Test, TestResult};
use packet::{RingOptions, RxFrame, RxRing, SocketOptions, interface_index};
use seclink::path::{Carrier, FrameSize, IpVersion, MOST_HOPS, Protection, Reach, Topology};

/// How long frames may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
const FRAMES: usize = 50;
/// IP's number for experiments (RFC 3692).
const MARK: u8 = 253;

/// The tests of our own paths.
pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("our_paths_carry_frames_of_the_computed_length", veth),
        Test::inside("our_nodes_in_one_thread_carry_the_same", in_thread),
        Test::inside("what_our_engine_drops_has_the_standards_name", drops),
    ]
}

fn ring(end: &End) -> TestResult<RxRing> {
    let name = end.interface.clone();
    let opened = end.node.run(move || {
        let ring = RingOptions { frames: 1024, frame_bytes: 2100 };
        RxRing::open(interface_index(&name)?, &SocketOptions::default(), ring)
    })?;
    Ok(opened?)
}

/// A frame from one end to the other.
fn frame(path: &Standing, from: usize, len: usize) -> TestResult<Vec<u8>> {
    let (near, far) = (&path.ends[from], &path.ends[1 - from]);
    let tag = path.vlan.map(|vlan| [&[0x81, 0][..], &vlan.to_be_bytes()].concat());
    let tag = tag.unwrap_or_default();
    let head = [&near.next_hop.0[..], &near.mac.0, &tag, &[8, 0]].concat();
    let header = wire::ipv4::Repr {
        source: near.ip,
        destination: far.ip,
        protocol: MARK,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: len - head.len() - wire::ipv4::HEADER_LEN,
    };
    let mut packet = vec![0; len - head.len()];
    header.emit(&mut packet)?;
    Ok([head, packet].concat())
}

/// A received frame's bytes behind its addresses, its VLAN tag in its place; `None` for others than ours.
fn behind_addresses(frame: &RxFrame<'_>) -> Option<Vec<u8>> {
    let mut bytes = frame.bytes().get(12..)?.to_vec();
    if let Some((kind, tag)) = frame.vlan() {
        bytes.splice(0..0, [kind.to_be_bytes(), tag.to_be_bytes()].concat());
    }
    let ip = if bytes.get(..2)? == [0x81, 0] { 6 } else { 2 };
    (bytes.get(ip + 9)? == &MARK).then_some(bytes)
}

/// Frames of 1000 bytes both ways.
fn carry(path: &Standing) -> TestResult {
    let mut rings = [ring(&path.ends[0])?, ring(&path.ends[1])?];
    for from in [0, 1] {
        let frame = frame(path, from, 1000)?;
        for _ in 0..FRAMES {
            packet::send(rings[from].as_fd(), &frame)?;
        }
        let (mut came, deadline) = (0, Instant::now() + PATIENCE);
        while came < FRAMES {
            match rings[1 - from].receive() {
                Some(got) => {
                    let behind = behind_addresses(&got);
                    if let Some(behind) = behind {
                        assert!(behind == frame[12..], "a frame has changed");
                        came += 1;
                    }
                }
                None if Instant::now() > deadline => {
                    let drops = path.drops()?;
                    return Err(format!("{came} of {FRAMES} frames; dropped: {drops:?}").into());
                }
                None => std::thread::yield_now(),
            }
        }
    }
    Ok(())
}

fn paths() -> Vec<Topology> {
    let whole = Protection::ALL.iter().map(|protection| Topology {
        protection: *protection,
        cipher: protection.usual_cipher(),
        ..Topology::default()
    });
    let every = Protection::ALL.iter().skip(1).map(|protection| Topology {
        protection: *protection,
        cipher: protection.usual_cipher(),
        reach: Reach::EveryHop,
        hops: 2,
        pseudowire: false,
        tagged: false,
        ..Topology::default()
    });
    whole.chain(every).chain(carried()).collect()
}

/// Every protection that has an outer header, over IPv6, in PPPoE, and behind a NAT where it is ESP.
fn carried() -> Vec<Topology> {
    let with = Protection::ALL.iter().filter(|protection| protection.has_outer_ip());
    let paths = with.flat_map(|protection| {
        let nat_traversal = protection.has_esp();
        let carriers = [
            Carrier { ip: IpVersion::V6, ..Carrier::default() },
            Carrier { pppoe: true, nat_traversal, ..Carrier::default() },
            Carrier { ip: IpVersion::V6, pppoe: true, nat_traversal },
        ];
        carriers.map(|carrier| Topology {
            protection: *protection,
            cipher: protection.usual_cipher(),
            carrier,
            ..Topology::default()
        })
    });
    let carrier = Carrier { pppoe: true, ..Carrier::default() };
    paths.chain([Topology { carrier, ..Topology::default() }]).collect()
}

fn assert_carried(links: Between) -> TestResult {
    for topology in paths() {
        let mut lab = Lab::new(LabOptions { backend: Backend::Direct, ..LabOptions::default() })?;
        let engine = dataplane::Options { wait: dataplane::Wait::Block, ..Default::default() };
        let options = OwnOptions { seed: 7, links: [links; MOST_HOPS as usize], engine };
        let path = Standing::of_own(&mut lab, &topology, &options)?;
        carry(&path)?;
        let size = FrameSize::of(&topology, 1000);
        for link in 1..=topology.hops {
            let is_core = topology.pseudowire && link > 1 && link < topology.hops;
            let frames = 2 * FRAMES as u64;
            let bytes = frames * if is_core { size.core } else { size.access } as u64;
            assert_eq!(path.link_bytes(link)?, Counted { frames, bytes }, "{topology:?} {link}");
        }
        assert_eq!(path.drops()?, [], "{topology:?}");
        assert!(path.cpu_time().is_some());
        assert!(path.link_bytes(0).is_err() && path.link_bytes(topology.hops + 1).is_err());
    }
    Ok(())
}

fn veth() -> TestResult {
    assert_carried(Between::Veth)
}

fn in_thread() -> TestResult {
    assert_carried(Between::InThread)
}

fn drops() -> TestResult {
    let protection = Protection::Esp;
    let topology =
        Topology { protection, cipher: protection.usual_cipher(), ..Topology::default() };
    let mut lab = Lab::new(LabOptions { backend: Backend::Direct, ..LabOptions::default() })?;
    let path = Standing::of_own(&mut lab, &topology, &OwnOptions::default())?;
    let ring = ring(&path.ends[0])?;
    let mut frame = frame(&path, 0, 100)?;
    // ARP's number: it is not routed.
    frame[17] = 6;
    packet::send(ring.as_fd(), &frame)?;
    let named = lab_test::until("the drop", PATIENCE, || {
        let drops = path.drops()?;
        Ok((!drops.is_empty()).then_some(drops))
    })?;
    assert_eq!(named, [("not-ip".to_owned(), 1)]);
    Ok(())
}
