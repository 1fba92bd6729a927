//! Addresses of scripts, and IP headers.

use std::net::{IpAddr, SocketAddr};

/// The port on which a script's server listens, and to which its client connects.
pub const PORT: u16 = 8080;
/// The first port of peers that connect.
pub const FIRST_PEER: u16 = 40_000;

/// This side's address and the peer's.
pub fn pair(ipv6: bool) -> (IpAddr, IpAddr) {
    let parse = |text: &str| text.parse().expect("an address");
    match ipv6 {
        true => (parse("fd3d:a0b:17d6::1"), parse("fd3d:fa7b:d17d::1")),
        false => (parse("192.168.0.1"), parse("192.0.2.1")),
    }
}

/// A packet around the bytes of a segment.
pub fn ip_packet(from: IpAddr, to: IpAddr, segment: &[u8]) -> Vec<u8> {
    let protocol = wire::tcp::PROTOCOL;
    let header = match (from, to) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0; wire::ipv4::HEADER_LEN];
            wire::ipv4::Repr {
                source,
                destination,
                protocol,
                traffic_class: 0,
                identification: 0,
                dont_fragment: true,
                time_to_live: 64,
                payload_len: segment.len(),
            }
            .emit(&mut header)
            .map(|()| header)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0; wire::ipv6::HEADER_LEN];
            wire::ipv6::Repr {
                source,
                destination,
                next_header: protocol,
                traffic_class: 0,
                flow_label: 0,
                hop_limit: 64,
                payload_len: segment.len(),
            }
            .emit(&mut header)
            .map(|()| header)
        }
        _ => panic!("two families"),
    };
    [header.expect("room for a header"), segment.to_vec()].concat()
}

/// Source and destination of a segment's bytes between two addresses.
pub fn ports(from: IpAddr, to: IpAddr, segment: &[u8]) -> (SocketAddr, SocketAddr) {
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    (SocketAddr::new(from, port(0)), SocketAddr::new(to, port(2)))
}
