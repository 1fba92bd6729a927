//! The tester's frames: Ethernet, a VLAN tag if there is to be one, IPv4, UDP, a probe.

use std::net::Ipv4Addr;

use traffic::Probe;
use units::Time;
use wire::ethernet::{self, Address, EtherType};
use wire::{ipv4, udp, vlan};

use crate::Error;

/// The UDP port of the tester's frames: discard, as RFC 2544 Appendix C.2.6.4 has it is echo; nobody
/// answers this one.
const PORT: u16 = 9;
/// Hops that a frame may take.
const TIME_TO_LIVE: u8 = 64;

/// From whom to whom frames go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addressing {
    /// The sender's Ethernet address.
    pub source: Address,
    /// The receiver's, or that of the router on the way.
    pub destination: Address,
    /// The VLAN that they are tagged with.
    pub vlan: Option<u16>,
    /// The sender's IP address.
    pub from: Ipv4Addr,
    /// The receiver's IP address.
    pub to: Ipv4Addr,
}

/// Frames of one direction, made once and sent again and again: only the probe changes, and the header
/// where the size does.
#[derive(Debug)]
pub(crate) struct Frames {
    addressing: Addressing,
    stream: u16,
    buffers: Vec<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

impl Frames {
    /// As many buffers as one system call sends, each for frames of up to `longest` bytes.
    pub(crate) fn new(addressing: Addressing, stream: u16, count: usize, longest: usize) -> Frames {
        let empty = || Buffer { bytes: vec![0; longest].into_boxed_slice(), len: 0 };
        Frames { addressing, stream, buffers: (0..count).map(|_| empty()).collect() }
    }

    /// Writes a frame of `len` bytes into the buffer of this place.
    ///
    /// # Errors
    /// [`Error::FrameSize`].
    pub(crate) fn write(
        &mut self,
        place: usize,
        len: usize,
        number: u32,
        sent: Time,
    ) -> Result<(), Error> {
        let wrong = Error::FrameSize(len);
        let Some(buffer) = self.buffers.get_mut(place) else { return Err(wrong) };
        if buffer.len != len {
            let Some(frame) = buffer.bytes.get_mut(..len) else { return Err(wrong) };
            self.addressing.emit(frame).ok_or(Error::FrameSize(len))?;
            buffer.len = len;
        }
        let probe = Probe { stream: self.stream, number, sent };
        let payload = buffer.bytes.get_mut(self.addressing.header_len()..len);
        let written = payload.and_then(|payload| probe.emit(payload).ok());
        written.ok_or(Error::FrameSize(len))
    }

    /// The first `count` frames, as written last.
    pub(crate) fn written(&self, from: usize, count: usize) -> impl Iterator<Item = &[u8]> {
        let buffers = self.buffers.get(from..count).unwrap_or_default();
        buffers.iter().map(|buffer| buffer.bytes.get(..buffer.len).unwrap_or_default())
    }
}

impl Addressing {
    /// Bytes before the probe.
    pub(crate) fn header_len(&self) -> usize {
        let tag = if self.vlan.is_some() { vlan::HEADER_LEN } else { 0 };
        ethernet::HEADER_LEN + tag + ipv4::HEADER_LEN + udp::HEADER_LEN
    }

    /// Writes all headers of a frame that fills `frame`, the UDP checksum left out (RFC 768); `None` if
    /// it is too short or too long.
    fn emit(&self, frame: &mut [u8]) -> Option<()> {
        let ether_type = if self.vlan.is_some() { EtherType::VLAN } else { EtherType::IPV4 };
        let (source, destination) = (self.source, self.destination);
        ethernet::Repr { destination, source, ether_type }.emit(frame).ok()?;
        let mut rest = frame.get_mut(ethernet::HEADER_LEN..)?;
        if let Some(vlan) = self.vlan {
            let (priority, drop_eligible) = (0, false);
            let tag = vlan::Repr { vlan, priority, drop_eligible, ether_type: EtherType::IPV4 };
            tag.emit(rest).ok()?;
            rest = rest.get_mut(vlan::HEADER_LEN..)?;
        }
        let packet = ipv4::Repr {
            source: self.from,
            destination: self.to,
            protocol: udp::PROTOCOL,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: TIME_TO_LIVE,
            payload_len: rest.len().checked_sub(ipv4::HEADER_LEN)?,
        };
        packet.emit(rest).ok()?;
        let datagram = rest.get_mut(ipv4::HEADER_LEN..)?;
        let length = u16::try_from(datagram.len()).ok()?.to_be_bytes();
        let ([a, b], [c, d]) = (PORT.to_be_bytes(), length);
        datagram
            .first_chunk_mut::<{ udp::HEADER_LEN }>()?
            .copy_from_slice(&[a, b, a, b, c, d, 0, 0]);
        Some(())
    }
}

/// The probe in a frame that came, whatever way it took: tagged or not, with any addresses. `None` if it
/// is no frame of a tester.
#[inline]
pub(crate) fn probe_of(frame: &[u8]) -> Option<Probe> {
    let frame = ethernet::Frame::new_checked(frame).ok()?;
    let (ether_type, payload) = vlan::strip(frame.ether_type(), frame.payload())?;
    if ether_type != EtherType::IPV4 {
        return None;
    }
    let packet = ipv4::Packet::new_checked(payload).ok()?;
    if packet.protocol() != udp::PROTOCOL || packet.is_fragment() {
        return None;
    }
    let datagram = udp::Datagram::new_checked(packet.payload()).ok()?;
    if datagram.destination_port() != PORT {
        return None;
    }
    Probe::parse(datagram.payload()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addressing(vlan: Option<u16>) -> Addressing {
        Addressing {
            source: Address([2, 0, 0, 0, 0, 1]),
            destination: Address([2, 0, 0, 0, 0, 2]),
            vlan,
            from: Ipv4Addr::new(198, 18, 0, 1),
            to: Ipv4Addr::new(198, 19, 0, 1),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for vlan in [None, Some(10)] {
            let mut frames = Frames::new(addressing(vlan), 7, 2, 9014);
            for (number, len) in [64, 1000, 1518, 64, 9014].into_iter().enumerate() {
                let sent = Time::from_micros(3);
                frames.write(number % 2, len, number as u32, sent).unwrap();
                let frame = frames.written(number % 2, number % 2 + 1).next().unwrap();
                assert_eq!(frame.len(), len);
                let probe = Probe { stream: 7, number: number as u32, sent };
                assert_eq!(probe_of(frame), Some(probe));
                let packet = &frame[if vlan.is_some() { 18 } else { 14 }..];
                assert!(ipv4::Packet::new_checked(packet).unwrap().checksum_ok());
            }
        }
    }

    #[test]
    fn what_is_cut_or_foreign_is_no_probe() {
        let mut frames = Frames::new(addressing(Some(10)), 7, 1, 200);
        frames.write(0, 100, 1, Time::ZERO).unwrap();
        let frame = frames.written(0, 1).next().unwrap().to_vec();
        for len in 0..62 {
            assert_eq!(probe_of(&frame[..len]), None, "{len}");
        }
        let mut other = frame.clone();
        other[18 + 20 + 3] = 53;
        assert_eq!(probe_of(&other), None);
        assert!(frames.write(0, 61, 1, Time::ZERO).is_err());
        assert!(frames.write(0, 201, 1, Time::ZERO).is_err());
        assert!(frames.write(1, 100, 1, Time::ZERO).is_err());
    }
}
