//! Captured TCP segments, and frames made by hand.

use std::net::IpAddr;
use std::sync::mpsc::Receiver;

use lab::{Capture, CaptureOptions, Direction, Node, OwnedFrame};
use wire::ethernet::{self, EtherType};
use wire::tcp::{Flags, Repr};
use wire::{ipv4, ipv6};

use crate::TestResult;

/// A TCP segment as it was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub direction: Direction,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub sequence: u32,
    pub acknowledgment: Option<u32>,
    pub flags: Flags,
    pub window: u16,
    /// The Fast Open option's cookie, empty for a request (RFC 7413 §4.1.1).
    pub cookie: Option<Vec<u8>>,
    pub timestamps: Option<(u32, u32)>,
    pub payload: Vec<u8>,
    /// Bytes of the IP packet.
    pub ip_len: usize,
    pub checksum_ok: bool,
}

impl Segment {
    pub fn is_syn(&self) -> bool {
        self.flags.has(Flags::SYN) && self.acknowledgment.is_none()
    }

    pub fn is_syn_ack(&self) -> bool {
        self.flags.has(Flags::SYN) && self.acknowledgment.is_some()
    }

    pub fn inbound(&self) -> bool {
        self.direction == Direction::Inbound
    }
}

/// The segment in a captured frame.
pub fn segment(frame: &OwnedFrame) -> Option<Segment> {
    parse(&frame.bytes, frame.direction)
}

/// The segment in an Ethernet frame.
pub fn parse(frame: &[u8], direction: Direction) -> Option<Segment> {
    let frame = ethernet::Frame::new_checked(frame).ok()?;
    let (source, destination, protocol, upper, ip_len): (IpAddr, IpAddr, u8, &[u8], usize) =
        match frame.ether_type() {
            EtherType::IPV4 => {
                let ip = ipv4::Packet::new_checked(frame.payload()).ok()?;
                let len = ipv4::HEADER_LEN + ip.options().len() + ip.payload().len();
                (ip.source().into(), ip.destination().into(), ip.protocol(), ip.payload(), len)
            }
            EtherType::IPV6 => {
                let ip = ipv6::Packet::new_checked(frame.payload()).ok()?;
                let upper = ip.upper().ok()?;
                let len = ipv6::HEADER_LEN + ip.payload().len();
                let ends = (ip.source().into(), ip.destination().into());
                (ends.0, ends.1, upper.protocol, upper.payload, len)
            }
            _ => return None,
        };
    if protocol != wire::tcp::PROTOCOL {
        return None;
    }
    let view = wire::tcp::Segment::new_checked(upper).ok()?;
    let repr = Repr::parse(&view);
    Some(Segment {
        direction,
        source,
        destination,
        source_port: repr.source_port,
        destination_port: repr.destination_port,
        sequence: repr.sequence,
        acknowledgment: repr.acknowledgment,
        flags: view.flags(),
        window: repr.window,
        cookie: repr.options.fast_open.map(|option| option.cookie.to_vec()),
        timestamps: repr.options.timestamps,
        payload: view.payload().to_vec(),
        ip_len,
        checksum_ok: view.checksum_ok(source, destination),
    })
}

/// A capture at a node that is read when it has ended.
pub struct Watch {
    capture: Capture,
    frames: Receiver<OwnedFrame>,
}

impl Watch {
    pub fn at(node: &Node) -> TestResult<Watch> {
        let (capture, frames) = node.capture_channel(&CaptureOptions::default(), 100_000)?;
        Ok(Watch { capture, frames })
    }

    /// The TCP segments that passed; every one must have the right checksum.
    pub fn segments(self) -> TestResult<Vec<Segment>> {
        let stats = self.capture.stop()?;
        assert_eq!((stats.kernel_drops, stats.channel_drops), (0, 0));
        let segments: Vec<_> = self.frames.into_iter().filter_map(|f| segment(&f)).collect();
        assert!(segments.iter().all(|s| s.checksum_ok), "a checksum is wrong: {segments:?}");
        Ok(segments)
    }
}

/// An Ethernet frame with one segment.
pub fn frame(
    (from_mac, to_mac): ([u8; 6], [u8; 6]),
    (source, destination): (IpAddr, IpAddr),
    segment: &Repr<'_>,
    payload: &[u8],
) -> TestResult<Vec<u8>> {
    let payload_len = segment.buffer_len(payload.len());
    let mut out = vec![0; ethernet::HEADER_LEN];
    let ether_type = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = ipv4::Repr {
                source,
                destination,
                protocol: wire::tcp::PROTOCOL,
                traffic_class: 0,
                identification: 0,
                dont_fragment: true,
                time_to_live: 64,
                payload_len,
            };
            out.resize(out.len() + ip.buffer_len(), 0);
            ip.emit(&mut out[ethernet::HEADER_LEN..])?;
            EtherType::IPV4
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = ipv6::Repr {
                source,
                destination,
                next_header: wire::tcp::PROTOCOL,
                traffic_class: 0,
                flow_label: 0,
                hop_limit: 64,
                payload_len,
            };
            out.resize(out.len() + ip.buffer_len(), 0);
            ip.emit(&mut out[ethernet::HEADER_LEN..])?;
            EtherType::IPV6
        }
        _ => return Err("two families in one packet".into()),
    };
    let link = ethernet::Repr {
        source: ethernet::Address(from_mac),
        destination: ethernet::Address(to_mac),
        ether_type,
    };
    link.emit(&mut out)?;
    let at = out.len();
    out.resize(at + payload_len, 0);
    segment.emit(source, destination, payload, &mut out[at..])?;
    Ok(out)
}
