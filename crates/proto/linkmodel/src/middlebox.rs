//! A middlebox on the link that does not tolerate data on a SYN.
//!
//! TCP lets a segment with SYN carry data (RFC 9293 §3.4), and Fast Open uses it (RFC 7413). There
//! are middleboxes that drop such segments, and some that pass the segment on without its data
//! (RFC 7413 §7.1).

use std::net::IpAddr;

use units::named;
use wire::checksum::Sum;
use wire::ethernet::{self, EtherType};
use wire::tcp::{Flags, Segment};
use wire::{ipv4, ipv6, tcp};

use crate::frame::Frame;

named! {
    /// What a middlebox does with TCP segments that have SYN set and carry data, SYN and SYN+ACK
    /// alike. Everything else passes as it is, fragments and VLAN frames too.
    #[derive(Default)]
    pub enum Middlebox: "middlebox" {
        /// There is none.
        #[default]
        None = "none",
        /// It drops them.
        DropSynData = "drop-syn-data",
        /// It takes the data out, and mends lengths and checksums.
        StripSynData = "strip-syn-data",
    }
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on as it came.
    Pass,
    /// It is to be dropped.
    Drop,
    /// It goes on with this many bytes less.
    Stripped(usize),
}

/// Where the parts of a SYN with data are, in bytes from the frame's begin.
#[derive(Debug, Clone, Copy)]
struct SynWithData {
    source: IpAddr,
    destination: IpAddr,
    /// The IP header.
    ip: usize,
    /// The TCP header: in IPv4 where the bytes end that the IP checksum covers.
    tcp: usize,
    data: usize,
}

/// What `middlebox` does with `frame`, done. A frame whose bytes are not known passes.
pub(crate) fn apply<F: Frame>(middlebox: Middlebox, frame: &mut F) -> Verdict {
    let header = frame.link_header();
    let len = frame.len();
    let Some(bytes) = frame.bytes_mut() else { return Verdict::Pass };
    let Some(found) = find(bytes, header) else { return Verdict::Pass };
    match middlebox {
        Middlebox::None => Verdict::Pass,
        Middlebox::DropSynData => Verdict::Drop,
        Middlebox::StripSynData => {
            let Some(kept) = bytes.get_mut(..found.data) else { return Verdict::Pass };
            if mend(kept, &found).is_none() {
                return Verdict::Pass;
            }
            frame.shorten(found.data);
            Verdict::Stripped(len.saturating_sub(found.data))
        }
    }
}

/// Finds a SYN with data. What is cut short or malformed is none.
fn find(bytes: &[u8], link_header: usize) -> Option<SynWithData> {
    let packet = if link_header == 0 {
        bytes
    } else {
        let frame = ethernet::Frame::new_checked(bytes).ok()?;
        if !matches!(frame.ether_type(), EtherType::IPV4 | EtherType::IPV6) {
            return None;
        }
        frame.payload()
    };
    let (source, destination, ip_header, upper) = match packet.first()? >> 4 {
        4 => {
            let ip = ipv4::Packet::new_checked(packet).ok()?;
            if ip.is_fragment() || ip.protocol() != tcp::PROTOCOL {
                return None;
            }
            let header = ipv4::HEADER_LEN.checked_add(ip.options().len())?;
            (ip.source().into(), ip.destination().into(), header, ip.payload())
        }
        6 => {
            let ip = ipv6::Packet::new_checked(packet).ok()?;
            let upper = ip.upper().ok()?;
            if upper.protocol != tcp::PROTOCOL || upper.fragment.is_some() {
                return None;
            }
            let header = ipv6::HEADER_LEN
                .checked_add(ip.payload().len().checked_sub(upper.payload.len())?)?;
            (ip.source().into(), ip.destination().into(), header, upper.payload)
        }
        _ => return None,
    };
    let segment = Segment::new_checked(upper).ok()?;
    if !segment.flags().has(Flags::SYN) || segment.payload().is_empty() {
        return None;
    }
    let ip = bytes.len().checked_sub(packet.len())?;
    let tcp = ip.checked_add(ip_header)?;
    let data = tcp.checked_add(segment.header_len())?;
    Some(SynWithData { source, destination, ip, tcp, data })
}

/// Mends the lengths and checksums of a frame that ends where its data began.
fn mend(frame: &mut [u8], found: &SynWithData) -> Option<()> {
    let (_, packet) = frame.split_at_mut_checked(found.ip)?;
    let total = packet.len();
    let (ip, segment) = packet.split_at_mut_checked(found.tcp.checked_sub(found.ip)?)?;
    if found.source.is_ipv4() {
        put(ip, 2, u16::try_from(total).ok()?)?;
        put(ip, 10, 0)?;
        let sum = Sum::new().plus(ip).finish();
        put(ip, 10, sum)?;
    } else {
        put(ip, 4, u16::try_from(total.checked_sub(ipv6::HEADER_LEN)?).ok()?)?;
    }
    put(segment, 16, 0)?;
    let sum = Sum::new().plus_pseudo_header(
        found.source,
        found.destination,
        tcp::PROTOCOL,
        segment.len() as u32,
    );
    let sum = sum.plus(segment).finish();
    put(segment, 16, sum)
}

/// Writes a 16-bit field.
fn put(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..)?.first_chunk_mut::<2>()?.clone_from(&value.to_be_bytes());
    Some(())
}
