//! Frames put in and taken out at an interface, and frames made by hand.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use l2vpn::{Side, Standing};
use lab::Node;
use lab_test::TestResult;
use packet::{Poller, RingOptions, RxRing, SocketOptions};
use wire::ipv4;

/// How long a frame may take; of virtual time where time is virtual.
pub const WAIT: Duration = Duration::from_secs(5);

/// An interface of a node.
pub struct Port {
    ring: RxRing,
    what: String,
}

impl Port {
    pub fn open(node: &Node, interface: &str) -> TestResult<Port> {
        let what = format!("{interface} of {}", node.name());
        let name = interface.to_owned();
        let ring = node.run(move || {
            let index = packet::interface_index(&name)?;
            let ring = RingOptions { frames: 256, frame_bytes: 2048 };
            RxRing::open(index, &SocketOptions::default(), ring)
        })??;
        Ok(Port { ring, what })
    }

    /// The interface at one end of a path's link.
    pub fn at(standing: &Standing, link: u8, side: Side) -> TestResult<Port> {
        let (node, interface) = standing.link_end(link, side)?;
        Port::open(&node, &interface)
    }

    /// Where a tester stands.
    pub fn tester(standing: &Standing, side: Side) -> TestResult<Port> {
        let end = &standing.ends[usize::from(side == Side::Right)];
        Port::open(&end.node, &end.interface)
    }

    pub fn send(&self, frame: &[u8]) -> TestResult {
        packet::send(self.ring.as_fd(), frame)
            .map_err(|error| format!("sending on {}: {error}", self.what).into())
    }

    /// The next frame, its VLAN tag in its place, or `None` if none comes in time.
    pub fn next_within(&mut self, limit: Duration) -> TestResult<Option<Vec<u8>>> {
        let deadline = Instant::now() + limit;
        let mut poller = Poller::new();
        poller.add(self.ring.as_fd());
        loop {
            if let Some(frame) = self.ring.receive() {
                let mut bytes = frame.bytes().to_vec();
                if let Some((tpid, tci)) = frame.vlan() {
                    let tag = [tpid.to_be_bytes(), tci.to_be_bytes()].concat();
                    bytes.splice(12..12, tag);
                }
                return Ok(Some(bytes));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            poller.wait(Some(left))?;
        }
    }

    /// The next frame, which must come.
    pub fn next(&mut self) -> TestResult<Vec<u8>> {
        let frame = self.next_within(WAIT)?;
        frame.ok_or_else(|| format!("nothing came to {}", self.what).into())
    }
}

/// The frame of a tester, of so many bytes, which are never the same for two numbers.
pub fn frame(standing: &Standing, side: Side, len: usize, number: u8) -> Vec<u8> {
    let [left, right] = &standing.ends;
    let (near, far) = if side == Side::Left { (left, right) } else { (right, left) };
    let tag = standing.vlan.map(|vlan| [&[0x81, 0][..], &vlan.to_be_bytes()].concat());
    let head = [&near.next_hop.0[..], &near.mac.0, &tag.unwrap_or_default(), &[8, 0]].concat();
    let packet = packet(near.ip, far.ip, len - head.len(), number);
    [head, packet].concat()
}

/// A UDP packet of so many bytes over IPv4.
pub fn packet(from: Ipv4Addr, to: Ipv4Addr, len: usize, number: u8) -> Vec<u8> {
    datagram([from, to], 7000, &vec![number; len - ipv4::HEADER_LEN - wire::udp::HEADER_LEN])
}

/// A datagram over IPv4 from one address to another, from and to a port.
pub fn datagram([from, to]: [Ipv4Addr; 2], port: u16, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() + wire::udp::HEADER_LEN;
    let header = ipv4::Repr {
        source: from,
        destination: to,
        protocol: wire::udp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: len,
    };
    let mut packet = vec![0; ipv4::HEADER_LEN + len];
    header.emit(&mut packet).unwrap();
    // Without a checksum.
    let udp = [port.to_be_bytes(), port.to_be_bytes(), (len as u16).to_be_bytes(), [0, 0]].concat();
    packet.splice(ipv4::HEADER_LEN.., [&udp[..], payload].concat());
    packet
}

/// What is to be the same at both testers: the whole frame where Ethernet is carried, else what is behind the
/// IP header, which routers change.
pub fn kept(standing: &Standing, frame: &[u8]) -> Vec<u8> {
    let [left, right] = &standing.ends;
    let is_switched = left.next_hop == right.mac;
    let head = if standing.vlan.is_some() { 18 } else { 14 };
    let from = if is_switched { 0 } else { head + ipv4::HEADER_LEN };
    frame.get(from..).unwrap_or_default().to_vec()
}
