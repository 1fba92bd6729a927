//! IP packets in and out.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use units::SeqNumber;
use wire::checksum::Sum;
use wire::tcp::{Flags, OptionList, PROTOCOL, Segment as View};
use wire::{ipv4, ipv6};

use crate::{Checksum, Ignored, Transmit};

const TTL: u8 = 64;

/// A received segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub seq: SeqNumber,
    pub ack: Option<SeqNumber>,
    pub flags: Flags,
    pub window: u16,
    pub options: OptionList<'a>,
    pub payload: &'a [u8],
    /// TCP header and payload: the SSLmTCP paper's segment length (§4.2).
    pub segment_len: usize,
    /// The whole IP packet.
    pub packet_len: usize,
}

impl<'a> Segment<'a> {
    /// The segment in an IP packet.
    pub(crate) fn parse(packet: &'a [u8], checksum: Checksum) -> Result<Self, Ignored> {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => {
                let ip = ipv4::Packet::new_checked(packet).map_err(|_| Ignored::NotIp)?;
                if ip.is_fragment() || (checksum == Checksum::Verify && !ip.checksum_ok()) {
                    return Err(Ignored::NotIp);
                }
                let (source, destination) = (ip.source().into(), ip.destination().into());
                let len = packet.len().min(ip.payload_len().saturating_add(20));
                Self::of(ip.protocol(), source, destination, ip.payload(), len, checksum)
            }
            Some(6) => {
                let ip = ipv6::Packet::new_checked(packet).map_err(|_| Ignored::NotIp)?;
                let upper = ip.upper().map_err(|_| Ignored::NotIp)?;
                if upper.fragment.is_some_and(|fragment| !fragment.is_atomic()) {
                    return Err(Ignored::NotIp);
                }
                let (source, destination) = (ip.source().into(), ip.destination().into());
                let len = packet.len().min(ip.payload_len().saturating_add(40));
                Self::of(upper.protocol, source, destination, upper.payload, len, checksum)
            }
            _ => Err(Ignored::NotIp),
        }
    }

    fn of(
        protocol: u8,
        source: IpAddr,
        destination: IpAddr,
        bytes: &'a [u8],
        packet_len: usize,
        checksum: Checksum,
    ) -> Result<Self, Ignored> {
        if protocol != PROTOCOL {
            return Err(Ignored::NotTcp);
        }
        let view = View::new_checked(bytes).map_err(|_| Ignored::Malformed)?;
        if checksum == Checksum::Verify && !view.checksum_ok(source, destination) {
            return Err(Ignored::Checksum);
        }
        // RFC 1122 §4.2.3.10: nothing to or from broadcast or multicast
        if source.is_multicast() || source.is_unspecified() || view.source_port() == 0 {
            return Err(Ignored::Malformed);
        }
        Ok(Segment {
            local: SocketAddr::new(destination, view.destination_port()),
            remote: SocketAddr::new(source, view.source_port()),
            seq: SeqNumber(view.sequence()),
            ack: view.acknowledgment().map(SeqNumber),
            flags: view.flags(),
            window: view.window(),
            options: OptionList::parse(view.options()),
            payload: view.payload(),
            segment_len: bytes.len(),
            packet_len,
        })
    }

    pub(crate) fn is(&self, flag: Flags) -> bool {
        self.flags.has(flag)
    }

    /// SEG.LEN (RFC 9293 §3.4): payload, SYN and FIN.
    pub(crate) fn sequence_len(&self) -> u32 {
        let control = u32::from(self.is(Flags::SYN)) + u32::from(self.is(Flags::FIN));
        (self.payload.len() as u32).saturating_add(control)
    }
}

/// A segment to be sent; its payload is written in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub seq: SeqNumber,
    pub ack: Option<SeqNumber>,
    pub flags: Flags,
    pub window: u16,
    pub options: OptionList<'a>,
    /// IPv4 identification; with DF it matters to none (RFC 6864).
    pub identification: u16,
}

/// Bytes of an IP header without options or extensions.
pub(crate) fn ip_header_len(address: IpAddr) -> usize {
    if address.is_ipv4() { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN }
}

impl Outgoing<'_> {
    /// Writes the packet with `payload_len` bytes that `fill` puts in place. More than
    /// `segment_size` bytes make a super-segment, whose checksum the device finishes.
    pub(crate) fn emit(
        &self,
        buffer: &mut [u8],
        payload_len: usize,
        segment_size: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<Transmit> {
        let (source, destination) = (self.local.ip(), self.remote.ip());
        let ip_len = ip_header_len(source);
        let tcp_len = self.options.padded_len().saturating_add(20);
        let header_len = ip_len.checked_add(tcp_len)?;
        let len = header_len.checked_add(payload_len)?;
        let buffer = buffer.get_mut(..len)?;
        let (ip, segment) = buffer.split_at_mut(ip_len);
        self.emit_ip(ip, tcp_len.checked_add(payload_len)?)?;
        let (header, payload) = segment.split_at_mut(tcp_len);
        fill(payload);
        let repr = wire::tcp::Repr {
            source_port: self.local.port(),
            destination_port: self.remote.port(),
            sequence: self.seq.0,
            acknowledgment: self.ack.map(|ack| ack.0),
            flags: self.flags,
            window: self.window,
            options: self.options,
        };
        // The header alone, with a checksum that is put right below.
        repr.emit(source, destination, &[], header).ok()?;
        let partial = payload_len > segment_size;
        header.get_mut(16..18)?.fill(0);
        let total = tcp_len.checked_add(payload_len)? as u32;
        let pseudo = Sum::new().plus_pseudo_header(source, destination, PROTOCOL, total);
        let sum = if partial {
            // CHECKSUM_PARTIAL: the sum itself, not its complement.
            !pseudo.finish()
        } else {
            pseudo.plus(header).plus(payload).finish()
        };
        header.get_mut(16..18)?.copy_from_slice(&sum.to_be_bytes());
        let segment_size = u16::try_from(segment_size).ok().and_then(NonZeroU16::new);
        Some(Transmit {
            len,
            segment_size: segment_size.filter(|_| partial),
            checksum_partial: partial,
            header_len,
            source,
            destination,
        })
    }

    fn emit_ip(&self, buffer: &mut [u8], payload_len: usize) -> Option<()> {
        match (self.local.ip(), self.remote.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => ipv4::Repr {
                source,
                destination,
                protocol: PROTOCOL,
                traffic_class: 0,
                identification: self.identification,
                dont_fragment: true,
                time_to_live: TTL,
                payload_len,
            }
            .emit(buffer)
            .ok(),
            (IpAddr::V6(source), IpAddr::V6(destination)) => ipv6::Repr {
                source,
                destination,
                next_header: PROTOCOL,
                traffic_class: 0,
                flow_label: 0,
                hop_limit: TTL,
                payload_len,
            }
            .emit(buffer)
            .ok(),
            _ => None,
        }
    }
}
