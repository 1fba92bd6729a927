//! What is known of a connection and of the endpoint.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use units::SeqNumber;

/// The state of a connection (RFC 9293 §3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// What became of the data on this connection's SYN, at either side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SynData {
    /// The SYN carried none.
    #[default]
    None,
    /// Sent; no answer yet.
    Pending,
    /// The receiver took them, or some of them.
    Accepted,
    /// The receiver acknowledged the SYN alone.
    Refused,
    /// Not sent, since this path dropped SYNs with data before, or the peer refused Fast Open
    /// (RFC 7413 §4.1.3.1).
    BlackHole,
}

/// What keeps a connection from sending bytes, or from taking more of them to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hold {
    /// The peer's window (RFC 9293 §3.8.6), which takes nothing that is worth a segment (§3.8.6.2.1).
    PeerWindow,
    /// The congestion window (RFC 5681); in a recovery from loss, the pace of that (RFC 9937).
    CongestionWindow,
    /// The send buffer: all that it holds was sent and is not acknowledged, and a writer waits for room.
    SendBuffer,
}

/// What is known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Its state now.
    pub state: State,
    /// This side's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// What became of the SYN's data.
    pub syn_data: SynData,
    /// Bytes of data on the SYN that were sent (client), or taken (server).
    pub syn_bytes: usize,
    /// Bytes of data on the SYN-ACK that were taken (client), or sent (server).
    pub syn_ack_bytes: usize,
    /// TCP segment length of the peer's SYN (server) or SYN-ACK (client), header included
    /// (document §4.2).
    pub syn_segment_len: usize,
    /// Payload bytes of a full segment.
    pub segment_size: usize,
    /// SRTT (RFC 6298).
    pub smoothed_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes sent and not acknowledged.
    pub in_flight: u64,
    /// Bytes of the stream that were written and never sent yet.
    pub unsent: u64,
    /// What has kept the connection from sending since its last packet, if anything has.
    pub hold: Option<Hold>,
    /// The last ICMP error about a segment of this connection that did not end it, until the peer is heard again
    /// (RFC 9293 §3.9.2.2).
    pub icmp_error: Option<IcmpKind>,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// SYNs or SYN-ACKs sent again.
    pub syn_retransmissions: u32,
    /// Bytes of the stream that the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes of the stream received in order.
    pub bytes_received: u64,
}

/// What the endpoint has counted since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments for a connection or listener.
    pub segments_in: u64,
    /// Segments sent, a super-segment as one.
    pub segments_out: u64,
    /// Connections begun here.
    pub active_opens: u64,
    /// SYNs that began a half-open connection.
    pub passive_opens: u64,
    /// Of these, with data that were taken.
    pub opens_with_data: u64,
    /// SYNs with data answered as ordinary ones, since the table was full.
    pub opened_without_data: u64,
    /// SYNs with data answered as ordinary ones, since too many came in a second
    /// ([`Config::unvalidated_rate`](crate::Config::unvalidated_rate)).
    pub syn_data_over_rate: u64,
    /// Clients: SYN data that the peer did not take.
    pub syn_data_refused: u64,
    /// Clients: destinations found to drop SYNs with data.
    pub black_holes: u64,
    /// SYN cookies sent (RFC 4987 §3.6).
    pub syn_cookies_sent: u64,
    /// Connections that a SYN cookie opened.
    pub syn_cookies_accepted: u64,
    /// Fast Open cookies that were valid (RFC 7413).
    pub fast_open_cookies_accepted: u64,
    /// Half-open connections that made room for newer ones.
    pub half_open_evicted: u64,
    /// Connections reset since their application was gone and their peer took too little, or since
    /// there were too many such.
    pub orphans_ended: u64,
    /// Segments whose checksum was wrong.
    pub bad_checksums: u64,
    /// Segments with RST that were sent.
    pub resets_out: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Half-open connections now, those with data.
    pub half_open_with_data: usize,
    /// Half-open connections that a RST has ended and that still count as those with data.
    pub half_open_reset: usize,
    /// Half-open connections now, ordinary ones.
    pub half_open_plain: usize,
    /// Connections now whose application is gone and that have data to send.
    pub orphans: usize,
    /// Bytes held now of what was received and not read yet, of all connections.
    pub receive_held: usize,
    /// Bytes held now for what was written and not acknowledged yet, of all connections.
    pub send_held: usize,
    /// Connections now, half-open ones included.
    pub connections: usize,
}

/// A packet to be sent, in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Bytes of the IP packet.
    pub len: usize,
    /// A super-segment: payload bytes of each segment that the device is to cut it into.
    pub segment_size: Option<NonZeroU16>,
    /// The TCP checksum field holds the pseudo-header's sum alone; the device is to finish it.
    pub checksum_partial: bool,
    /// Bytes of IP and TCP header.
    pub header_len: usize,
    /// The packet's source.
    pub source: IpAddr,
    /// The packet's destination.
    pub destination: IpAddr,
}

/// Whether the checksum of a received segment is to be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The endpoint computes it: nobody else has.
    Verify,
    /// The device has, or the segment never left this machine.
    Trusted,
}

/// A router's word that a packet of ours was too big (RFC 1191, RFC 8201).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtu {
    /// Our address and port in the quoted packet.
    pub local: SocketAddr,
    /// The peer's in the quoted packet.
    pub remote: SocketAddr,
    /// The quoted sequence number.
    pub sequence: SeqNumber,
    /// The largest IP packet that passes.
    pub mtu: u16,
}

/// The meaning of an ICMP error (RFC 792, RFC 1122 §3.2.2, RFC 4443 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IcmpKind {
    /// There is no route to the peer's network.
    NetworkUnreachable,
    /// The last router does not reach the peer.
    HostUnreachable,
    /// The peer has no TCP.
    ProtocolUnreachable,
    /// Nobody listens on the peer's port.
    PortUnreachable,
    /// A filter on the path forbids it.
    Prohibited,
    /// The packet was passed on too often, or its fragments were late.
    TimeExceeded,
    /// A router or the peer finds an IP header of ours malformed.
    ParameterProblem,
}

impl IcmpKind {
    /// Whether the error is hard: trying again is of no use (RFC 9293 §3.9.2.2).
    #[must_use]
    pub fn is_hard(self) -> bool {
        matches!(
            self,
            IcmpKind::ProtocolUnreachable | IcmpKind::PortUnreachable | IcmpKind::Prohibited
        )
    }

    /// The error of an ICMPv4 message's type and code; `None` for types that concern no connection, and for
    /// "fragmentation needed", which is a [`PathMtu`].
    #[must_use]
    pub fn of_v4(kind: u8, code: u8) -> Option<Self> {
        Some(match (kind, code) {
            (3, 0 | 5 | 6 | 8 | 11) => IcmpKind::NetworkUnreachable,
            (3, 1 | 7 | 12 | 14 | 15) => IcmpKind::HostUnreachable,
            (3, 2) => IcmpKind::ProtocolUnreachable,
            (3, 3) => IcmpKind::PortUnreachable,
            (3, 9 | 10 | 13) => IcmpKind::Prohibited,
            (11, _) => IcmpKind::TimeExceeded,
            (12, _) => IcmpKind::ParameterProblem,
            _ => return None,
        })
    }

    /// The error of an ICMPv6 message's type and code (RFC 4443 §3); `None` for others.
    #[must_use]
    pub fn of_v6(kind: u8, code: u8) -> Option<Self> {
        Some(match (kind, code) {
            (1, 0) => IcmpKind::NetworkUnreachable,
            (1, 1 | 5 | 6) => IcmpKind::Prohibited,
            (1, 2 | 3) => IcmpKind::HostUnreachable,
            (1, 4) => IcmpKind::PortUnreachable,
            (3, _) => IcmpKind::TimeExceeded,
            // The next header is unknown: the peer has no TCP. RFC 9293 §3.9.2.2 calls it soft.
            (4, _) => IcmpKind::ParameterProblem,
            _ => return None,
        })
    }
}

impl std::fmt::Display for IcmpKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IcmpKind::NetworkUnreachable => "network unreachable",
            IcmpKind::HostUnreachable => "host unreachable",
            IcmpKind::ProtocolUnreachable => "protocol unreachable",
            IcmpKind::PortUnreachable => "port unreachable",
            IcmpKind::Prohibited => "administratively prohibited",
            IcmpKind::TimeExceeded => "time exceeded in transit",
            IcmpKind::ParameterProblem => "malformed IP header",
        })
    }
}

/// An ICMP error about a segment of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpError {
    /// Our address and port in the quoted packet.
    pub local: SocketAddr,
    /// The peer's in the quoted packet.
    pub remote: SocketAddr,
    /// The quoted sequence number.
    pub sequence: SeqNumber,
    /// The error's meaning.
    pub kind: IcmpKind,
}
