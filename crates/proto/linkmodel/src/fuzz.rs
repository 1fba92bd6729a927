//! Entry points for fuzzing: any bytes in; a panic is the finding.

use units::Time;
use wire::ethernet::{self, EtherType};
use wire::tcp::{Flags, OptionList, Repr, Segment};
use wire::{ipv4, ipv6, tcp};

use crate::config::LinkConfig;
use crate::frame::Frame;
use crate::link::Link;
use crate::middlebox::Middlebox;

/// A frame of either kind: with an Ethernet header, or a bare IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bytes {
    bytes: Vec<u8>,
    link_header: usize,
}

impl Frame for Bytes {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, bit: usize) {
        self.bytes.flip_bit(bit);
    }

    fn link_header(&self) -> usize {
        self.link_header
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.bytes)
    }

    fn shorten(&mut self, len: usize) {
        self.bytes.truncate(len);
    }
}

/// Any frame through each [`Middlebox`]. The first byte says what the rest is: bit 0 an Ethernet
/// frame or an IP packet, bit 1 a TCP segment's flags and payload, to be put into IPv4 or (bit 2)
/// IPv6 with (bit 3) an extension header.
///
/// # Panics
/// If a middlebox breaks its word: it drops what it does not strip or the other way round, changes
/// what is no SYN with data, or gives out a stripped SYN that is not the same one without data and
/// with right checksums.
pub fn middlebox(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let link_header = if kind & 1 == 0 { ethernet::HEADER_LEN } else { 0 };
    let bytes = if kind & 2 == 0 { rest.to_vec() } else { built(*kind, link_header, rest) };
    let frame = Bytes { bytes, link_header };
    let through = |middlebox, frame: &Bytes| {
        let config = LinkConfig { middlebox, ..LinkConfig::default() };
        let mut link = Link::new(config, 1).ok()?;
        link.handle_frame(Time::ZERO, frame.clone()).ok()?;
        let counters = *link.counters();
        match link.poll(Time::ZERO)? {
            crate::Output::Deliver { frame, .. } => Some((frame, counters)),
            crate::Output::Drop(_) => None,
        }
    };
    assert!(through(Middlebox::None, &frame).is_some_and(|(same, _)| same == frame));
    let dropped = through(Middlebox::DropSynData, &frame).is_none();
    let Some((stripped, counters)) = through(Middlebox::StripSynData, &frame) else {
        panic!("stripping dropped a frame");
    };
    assert_eq!(dropped, stripped != frame, "what one drops the other strips, and nothing else");
    assert_eq!(counters.stripped.frames, u64::from(dropped));
    assert_eq!(counters.stripped.bytes, (frame.len() - stripped.len()) as u64);
    if dropped {
        judge(&frame, &stripped);
        let again = through(Middlebox::StripSynData, &stripped);
        assert!(again.is_some_and(|(again, _)| again == stripped), "stripped twice");
    }
}

/// Whether `after` is the SYN of `before` without its data.
fn judge(before: &Bytes, after: &Bytes) {
    let (Some(was), Some(is)) = (segment(before), segment(after)) else {
        panic!("a stripped frame is no TCP segment");
    };
    assert!(is.flags().has(Flags::SYN) && is.payload().is_empty() && !was.payload().is_empty());
    let fields = |s: &Segment<'_>| {
        let ports = (s.source_port(), s.destination_port());
        (ports, s.sequence(), s.acknowledgment(), s.flags(), s.window(), s.urgent(), s.header_len())
    };
    assert_eq!(fields(&was), fields(&is));
    let header = before.bytes.get(..before.link_header);
    assert_eq!(header, after.bytes.get(..after.link_header));
}

/// The segment in a whole frame whose checksums are right, if it was stripped.
fn segment(frame: &Bytes) -> Option<Segment<'_>> {
    let packet = frame.bytes.get(frame.link_header..)?;
    if packet.first()? >> 4 == 4 {
        let ip = ipv4::Packet::new_checked(packet).ok()?;
        let segment = Segment::new_checked(ip.payload()).ok()?;
        if segment.payload().is_empty() {
            assert!(ip.checksum_ok(), "IPv4 checksum");
            assert!(segment.checksum_ok(ip.source().into(), ip.destination().into()));
        }
        return Some(segment);
    }
    let ip = ipv6::Packet::new_checked(packet).ok()?;
    let segment = Segment::new_checked(ip.upper().ok()?.payload).ok()?;
    if segment.payload().is_empty() {
        assert!(segment.checksum_ok(ip.source().into(), ip.destination().into()));
    }
    Some(segment)
}

/// A frame around a segment whose flags are the first byte of `rest` and whose payload is the rest.
fn built(kind: u8, link_header: usize, rest: &[u8]) -> Vec<u8> {
    let (flags, payload) = rest.split_first().unwrap_or((&2, &[]));
    let payload = payload.get(..1400).unwrap_or(payload);
    let v6 = kind & 4 != 0;
    let extension: &[u8] = if v6 && kind & 8 != 0 { &[6, 0, 1, 4, 0, 0, 0, 0] } else { &[] };
    let acknowledgment = (flags & 0x10 != 0).then_some(77);
    let options = OptionList { mss: Some(1460), sack_permitted: true, ..OptionList::default() };
    let repr = Repr {
        source_port: 50_000,
        destination_port: 443,
        sequence: 7,
        acknowledgment,
        flags: Flags(flags & !Flags::ACK.0),
        window: 65_535,
        options,
    };
    let ip_header = if v6 { ipv6::HEADER_LEN + extension.len() } else { ipv4::HEADER_LEN };
    let upper_len = repr.buffer_len(payload.len());
    let mut bytes = vec![0; link_header + ip_header + upper_len];
    let done = emit(&repr, payload, v6.then_some(extension), link_header, &mut bytes);
    if done.is_some() { bytes } else { Vec::new() }
}

fn emit(
    repr: &Repr<'_>,
    payload: &[u8],
    v6: Option<&[u8]>,
    link_header: usize,
    bytes: &mut [u8],
) -> Option<()> {
    let (link, packet) = bytes.split_at_mut_checked(link_header)?;
    if link_header > 0 {
        let ether_type = if v6.is_some() { EtherType::IPV6 } else { EtherType::IPV4 };
        let [source, destination] = [ethernet::Address([2; 6]), ethernet::Address([4; 6])];
        ethernet::Repr { source, destination, ether_type }.emit(link).ok()?;
    }
    let Some(extension) = v6 else {
        let (header, segment) = packet.split_at_mut_checked(ipv4::HEADER_LEN)?;
        let (source, destination) = ([10, 77, 0, 1].into(), [10, 77, 0, 2].into());
        let ip = ipv4::Repr {
            source,
            destination,
            protocol: tcp::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: segment.len(),
        };
        ip.emit(header).ok()?;
        return repr.emit(source.into(), destination.into(), payload, segment).ok();
    };
    let (header, upper) = packet.split_at_mut_checked(ipv6::HEADER_LEN)?;
    let (source, destination) =
        ([0xfd77, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd77, 0, 0, 0, 0, 0, 0, 2].into());
    let ip = ipv6::Repr {
        source,
        destination,
        next_header: if extension.is_empty() { tcp::PROTOCOL } else { 60 },
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        payload_len: upper.len(),
    };
    ip.emit(header).ok()?;
    let (front, segment) = upper.split_at_mut_checked(extension.len())?;
    front.copy_from_slice(extension);
    repr.emit(source.into(), destination.into(), payload, segment).ok()
}
