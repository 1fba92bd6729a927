//! A path of the engine in the lab, and a tester's ring at each end of it.

#![allow(dead_code, reason = "each program that includes this uses a part of it")]

use std::time::{Duration, Instant};

use dataplane::{Chain, Handle, Link, Options};
use lab::{Addresses, Backend, Lab, LabOptions, LinkOptions, Node};
use lab_test::TestResult;
use packet::{OpenPort, Port, RingOptions, RxFrame, RxRing, SocketOptions, interface_index};
use seclink::Secret;
use seclink::path::Topology;
use seclink::plane::{self, KeyId, Plan, VLAN, Way};

/// How long frames may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of the longest packet of every link.
const MTU: u32 = 2000;

/// A key that no other stretch or way has.
pub fn key(id: KeyId) -> Secret {
    let first = 2 * id.link + u8::from(id.way == Way::Backward);
    Secret::new((0..id.len).map(|at| first.wrapping_add(7 * at as u8)).collect())
}

/// Nodes in a row with veth pairs between them; the first and the last are the testers'.
pub struct Row {
    pub nodes: Vec<Node>,
    pub links: Vec<lab::Link>,
    lab: Lab,
}

impl Row {
    /// Testers' nodes, and so many between them.
    pub fn new(count: usize) -> TestResult<Row> {
        let mut lab = Lab::new(LabOptions { backend: Backend::Direct, ..LabOptions::default() })?;
        let nodes = (0..count + 2).map(|number| lab.add_node(&format!("n{number}")));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let addresses = Addresses::none();
        let options =
            LinkOptions { backend: Backend::Direct, mtu: MTU, addresses, ..LinkOptions::default() };
        let mut links = Vec::new();
        for pair in nodes.windows(2) {
            let path = linkmodel::Path::default();
            links.push(lab.connect_with(&pair[0], &pair[1], &path, &options)?);
        }
        Ok(Row { nodes, links, lab })
    }

    /// The engine's port at one end (0 or 1) of a link.
    pub fn port(&self, link: usize, side: usize, options: &Options) -> TestResult<OpenPort> {
        let (name, ports) = (self.links[link].ends()[side].interface.clone(), options.ports());
        let opened = self.nodes[link + side].run(move || {
            OpenPort::open(Port::Packet { interface: interface_index(&name)? }, &ports)
        })?;
        Ok(opened?)
    }

    /// A ring at one end (0 or 1) of a link: its socket sends, too.
    pub fn ring(&self, link: usize, side: usize) -> TestResult<RxRing> {
        let name = self.links[link].ends()[side].interface.clone();
        let opened = self.nodes[link + side].run(move || {
            let ring = RingOptions { frames: 4096, frame_bytes: 2100 };
            let socket = SocketOptions { send_buffer: Some(4 << 20), ..SocketOptions::default() };
            RxRing::open(interface_index(&name)?, &socket, ring)
        })?;
        Ok(opened?)
    }

    /// The rings of both testers.
    pub fn testers(&self) -> TestResult<[RxRing; 2]> {
        Ok([self.ring(0, 0)?, self.ring(self.links.len() - 1, 1)?])
    }
}

/// A path that stands.
pub struct Rig {
    pub engine: Handle,
    pub testers: [RxRing; 2],
    pub topology: Topology,
    pub plan: Plan,
    pub row: Row,
}

/// Stands a path up; of its links, those of which `in_thread` says so are none at all.
pub fn rig(
    topology: Topology,
    in_thread: impl Fn(usize) -> bool,
    options: Options,
) -> TestResult<Rig> {
    let hops = usize::from(topology.hops);
    let row = Row::new(hops + 1)?;
    let plan = Plan::numbered(&topology);
    let nodes = plane::nodes(&topology, &plan, key)?;
    let links = (1..=hops).map(|link| match in_thread(link) {
        true => Ok(Link::InThread),
        false => {
            let [left, right] = [row.port(link, 0, &options)?, row.port(link, 1, &options)?];
            TestResult::Ok(Link::Ports { left, right })
        }
    });
    let links = links.collect::<TestResult<Vec<_>>>()?;
    let ends = [row.port(0, 1, &options)?, row.port(hops + 1, 0, &options)?];
    let testers = row.testers()?;
    let engine = dataplane::start(Chain { ends, nodes, links }, &options)?;
    Ok(Rig { engine, testers, topology, plan, row })
}

impl Rig {
    /// A frame of a tester with a number in it.
    pub fn frame(&self, way: Way, number: u64, len: usize) -> Vec<u8> {
        frame(&self.topology, &self.plan, way, number, len)
    }

    /// What the far tester is to get of it.
    pub fn arriving(&self, way: Way, sent: &[u8]) -> Vec<u8> {
        if self.topology.carries_ethernet() {
            return sent.to_vec();
        }
        let [first, last] = self.plan.lans;
        let far = if way == Way::Forward { last } else { first };
        [&far.host.0[..], &far.own.0, &sent[12..]].concat()
    }

    /// Sends frames this way.
    pub fn send(&self, way: Way, frames: &[Vec<u8>]) -> TestResult {
        use std::os::fd::AsFd;
        let ring = if way == Way::Forward { &self.testers[0] } else { &self.testers[1] };
        for frame in frames {
            packet::send(ring.as_fd(), frame)?;
        }
        Ok(())
    }

    /// Waits for so many numbered frames of this way, in the order in which they come.
    pub fn expect(&mut self, way: Way, count: usize) -> TestResult<Vec<Vec<u8>>> {
        let ring = if way == Way::Forward { &mut self.testers[1] } else { &mut self.testers[0] };
        let (mut frames, deadline) = (Vec::new(), Instant::now() + PATIENCE);
        while frames.len() < count {
            match ring.receive() {
                Some(frame) => frames.extend(numbered(&frame)),
                None if Instant::now() > deadline => {
                    let stats = self.engine.stats();
                    return Err(format!("{} of {count} frames: {stats:?}", frames.len()).into());
                }
                None => std::thread::yield_now(),
            }
        }
        Ok(frames)
    }
}

/// A frame of a tester with a number in it.
pub fn frame(topology: &Topology, plan: &Plan, way: Way, number: u64, len: usize) -> Vec<u8> {
    let [first, last] = plan.lans;
    let (near, far) = if way == Way::Forward { (first, last) } else { (last, first) };
    let to = if topology.carries_ethernet() { far.host } else { near.own };
    let tag = [&[0x81, 0][..], &VLAN.to_be_bytes()].concat();
    let tag = if topology.tagged { &tag[..] } else { &[] };
    let head = [&to.0[..], &near.host.0, tag, &[8, 0]].concat();
    let payload_len = len - head.len() - wire::ipv4::HEADER_LEN;
    let header = wire::ipv4::Repr {
        source: [172, 16, 1, 2].into(),
        destination: [172, 16, 2, 2].into(),
        protocol: MARK,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len,
    };
    let mut packet = vec![0; len - head.len()];
    header.emit(&mut packet).expect("it fits");
    packet[20..28].copy_from_slice(&number.to_be_bytes());
    [head, packet].concat()
}

/// IP's number for experiments (RFC 3692), which no kernel sends of its own accord.
const MARK: u8 = 253;

/// A received frame with its VLAN tag in its place.
pub fn whole(frame: &RxFrame<'_>) -> Vec<u8> {
    let mut bytes = frame.bytes().to_vec();
    if let Some((kind, tag)) = frame.vlan() {
        bytes.splice(12..12, [kind.to_be_bytes(), tag.to_be_bytes()].concat());
    }
    bytes
}

fn numbered(frame: &RxFrame<'_>) -> Option<Vec<u8>> {
    let bytes = whole(frame);
    let ip = if bytes.get(12..14)? == [0x81, 0] { 18 } else { 14 };
    (bytes.get(ip + 9)? == &MARK).then_some(bytes)
}
