//! ICMP errors about segments of ours, in the packets that the endpoint is given.

use units::SeqNumber;
use wire::icmp::QuotedTcp;
use wire::{icmpv4, icmpv6, ipv4, ipv6};

use crate::{IcmpError, IcmpKind, Ignored, PathMtu};

/// A message about a segment of ours. Whether that is under way the connection knows (RFC 5927 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reported {
    /// It was too big.
    PathMtu(PathMtu),
    /// It did not arrive.
    Error(IcmpError),
}

/// The message in a packet.
///
/// # Errors
/// [`Ignored::NotTcp`] if the packet is of another protocol or the message not about a segment,
/// [`Ignored::Checksum`] if that is wrong.
pub(crate) fn parse(packet: &[u8]) -> Result<Reported, Ignored> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => {
            let packet = ipv4::Packet::new_checked(packet).map_err(|_| Ignored::NotIp)?;
            if packet.protocol() != icmpv4::PROTOCOL || packet.is_fragment() {
                return Err(Ignored::NotTcp);
            }
            let message =
                icmpv4::Message::new_checked(packet.payload()).map_err(|_| Ignored::Malformed)?;
            if !message.checksum_ok() {
                return Err(Ignored::Checksum);
            }
            from_v4(&message).ok_or(Ignored::NotTcp)
        }
        Some(6) => {
            let packet = ipv6::Packet::new_checked(packet).map_err(|_| Ignored::NotIp)?;
            let upper = packet.upper().map_err(|_| Ignored::NotIp)?;
            if upper.protocol != icmpv6::PROTOCOL || upper.fragment.is_some() {
                return Err(Ignored::NotTcp);
            }
            let message =
                icmpv6::Message::new_checked(upper.payload).map_err(|_| Ignored::Malformed)?;
            if !message.checksum_ok(packet.source(), packet.destination()) {
                return Err(Ignored::Checksum);
            }
            from_v6(&message).ok_or(Ignored::NotTcp)
        }
        _ => Err(Ignored::NotIp),
    }
}

fn from_v4(message: &icmpv4::Message<'_>) -> Option<Reported> {
    if let Some(needed) = icmpv4::FragmentationNeeded::parse(message) {
        let segment = needed.segment().ok()?;
        return Some(path_mtu(&segment, needed.mtu(&segment)));
    }
    let kind = IcmpKind::of_v4(message.kind(), message.code())?;
    Some(error(&QuotedTcp::parse_v4(message.body()).ok()?, kind))
}

fn from_v6(message: &icmpv6::Message<'_>) -> Option<Reported> {
    if let Ok(Some(icmpv6::Repr::PacketTooBig { mtu, quoted })) = icmpv6::Repr::parse(message) {
        let segment = icmpv6::quoted_segment(quoted).ok()?;
        // RFC 8201 §4: never below IPv6's least MTU.
        return Some(path_mtu(&segment, u16::try_from(mtu).unwrap_or(u16::MAX).max(1280)));
    }
    let kind = IcmpKind::of_v6(message.kind(), message.code())?;
    // Four bytes that are unused, or a pointer (RFC 4443 §3).
    let quoted = message.body().get(4..)?;
    Some(error(&icmpv6::quoted_segment(quoted).ok()?, kind))
}

fn path_mtu(segment: &QuotedTcp, mtu: u16) -> Reported {
    Reported::PathMtu(PathMtu {
        local: segment.source,
        remote: segment.destination,
        sequence: SeqNumber(segment.sequence),
        mtu,
    })
}

fn error(segment: &QuotedTcp, kind: IcmpKind) -> Reported {
    Reported::Error(IcmpError {
        local: segment.source,
        remote: segment.destination,
        sequence: SeqNumber(segment.sequence),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use wire::checksum::Sum;

    const PORTS_AND_SEQUENCE: [u8; 8] = [0x0f, 0xa0, 0, 80, 1, 2, 3, 4];

    fn v4(source: [u8; 4], destination: [u8; 4], protocol: u8, payload: &[u8]) -> Vec<u8> {
        let repr = ipv4::Repr {
            source: Ipv4Addr::from(source),
            destination: Ipv4Addr::from(destination),
            protocol,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: payload.len(),
        };
        let mut packet = vec![0; ipv4::HEADER_LEN];
        repr.emit(&mut packet).unwrap();
        [packet, payload.to_vec()].concat()
    }

    fn message_v4(kind: u8, code: u8) -> Vec<u8> {
        let quoted = v4([10, 77, 1, 101], [10, 77, 1, 2], wire::tcp::PROTOCOL, &PORTS_AND_SEQUENCE);
        let mut message = [&[kind, code, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let sum = Sum::new().plus(&message).finish();
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        v4([10, 77, 1, 1], [10, 77, 1, 101], icmpv4::PROTOCOL, &message)
    }

    #[test]
    fn an_error_of_ipv4_is_read() {
        for (kind, code, error) in [
            (3, 0, Some(IcmpKind::NetworkUnreachable)),
            (3, 1, Some(IcmpKind::HostUnreachable)),
            (3, 2, Some(IcmpKind::ProtocolUnreachable)),
            (3, 3, Some(IcmpKind::PortUnreachable)),
            (3, 13, Some(IcmpKind::Prohibited)),
            (11, 0, Some(IcmpKind::TimeExceeded)),
            (12, 0, Some(IcmpKind::ParameterProblem)),
            // Source quench is ignored (RFC 6633).
            (4, 0, None),
            (8, 0, None),
        ] {
            let packet = message_v4(kind, code);
            let got = parse(&packet).ok();
            let expected = error.map(|kind| {
                Reported::Error(IcmpError {
                    local: "10.77.1.101:4000".parse().unwrap(),
                    remote: "10.77.1.2:80".parse().unwrap(),
                    sequence: SeqNumber(0x0102_0304),
                    kind,
                })
            });
            assert_eq!(got, expected, "{kind} {code}");
            let mut spoilt = packet;
            *spoilt.last_mut().unwrap() ^= 1;
            assert!(parse(&spoilt).is_err());
        }
    }

    #[test]
    fn an_error_of_ipv6_is_read() {
        let (ours, peer) = ("fd77::1", "fd77::2");
        let repr = ipv6::Repr {
            source: ours.parse::<Ipv6Addr>().unwrap(),
            destination: peer.parse().unwrap(),
            next_header: wire::tcp::PROTOCOL,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            payload_len: PORTS_AND_SEQUENCE.len(),
        };
        let mut quoted = vec![0; ipv6::HEADER_LEN];
        repr.emit(&mut quoted).unwrap();
        quoted.extend(PORTS_AND_SEQUENCE);
        for (kind, code, error) in [
            (1, 1, Some(IcmpKind::Prohibited)),
            (1, 3, Some(IcmpKind::HostUnreachable)),
            (1, 4, Some(IcmpKind::PortUnreachable)),
            (3, 0, Some(IcmpKind::TimeExceeded)),
            (128, 0, None),
        ] {
            let mut message = [&[kind, code, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
            let (router, ours): (Ipv6Addr, Ipv6Addr) =
                ("fd77::9".parse().unwrap(), ours.parse().unwrap());
            let len = message.len() as u32;
            let sum = Sum::new()
                .plus_pseudo_header(router.into(), ours.into(), icmpv6::PROTOCOL, len)
                .plus(&message)
                .finish();
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            let repr = ipv6::Repr {
                source: router,
                destination: ours,
                next_header: icmpv6::PROTOCOL,
                payload_len: message.len(),
                ..repr
            };
            let mut packet = vec![0; ipv6::HEADER_LEN];
            repr.emit(&mut packet).unwrap();
            packet.extend(message);
            let got = parse(&packet).ok();
            let got = got.map(|reported| match reported {
                Reported::Error(error) => (error.local.to_string(), error.kind),
                Reported::PathMtu(_) => panic!("it was not too big"),
            });
            assert_eq!(got, error.map(|kind| ("[fd77::1]:4000".into(), kind)));
        }
    }
}
