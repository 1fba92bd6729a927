//! The outer header of tunnel mode (RFC 4301 §5.1.2), with UDP in between where a NAT is (RFC 3948).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::esp::Datagram;
use wire::{esp, ipv4, ipv6, udp};

use crate::underlay::write_udp;
use crate::{SealError, Slot};

/// IP's numbers of IPv4 and IPv6 inside of something.
const IPV4: u8 = 4;
const IPV6: u8 = 41;

/// Hops that an outer header begins with.
const TIME_TO_LIVE: u8 = 64;

/// The two ends of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Over IPv4: this end and the other.
    V4(Ipv4Addr, Ipv4Addr),
    /// Over IPv6: this end and the other.
    V6(Ipv6Addr, Ipv6Addr),
}

/// A tunnel's outer headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    /// Where it begins and ends.
    pub ends: Ends,
    /// Whether ESP goes in UDP from and to port 4500.
    pub in_udp: bool,
}

/// What an outer header takes over from the packet inside (RFC 4301 §5.1.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// Its number as ESP's next header.
    pub next_header: u8,
    traffic_class: u8,
    dont_fragment: bool,
}

impl Inner {
    /// Of an IP packet; `None` if it is none.
    #[must_use]
    pub fn of(packet: &[u8]) -> Option<Self> {
        if let Ok(packet) = ipv4::Packet::new_checked(packet) {
            return Some(Inner {
                next_header: IPV4,
                traffic_class: packet.traffic_class(),
                dont_fragment: packet.dont_fragment(),
            });
        }
        let packet = ipv6::Packet::new_checked(packet).ok()?;
        let traffic_class = packet.traffic_class();
        Some(Inner { next_header: IPV6, traffic_class, dont_fragment: true })
    }
}

impl Outer {
    /// Bytes that [`Outer::wrap`] adds.
    #[must_use]
    pub const fn added(&self) -> usize {
        let ip = match self.ends {
            Ends::V4(..) => ipv4::HEADER_LEN,
            Ends::V6(..) => ipv6::HEADER_LEN,
        };
        if self.in_udp { ip + udp::HEADER_LEN } else { ip }
    }

    /// Puts the outer header before the ESP packet in the slot, which came of a packet like `inner`.
    ///
    /// # Errors
    /// There is no room before it, or it is too long for IP. It is then as it was.
    pub fn wrap(&self, slot: &mut Slot<'_>, inner: Inner) -> Result<(), SealError> {
        let (added, payload_len) = (self.added(), slot.len());
        slot.grow_front(added)?;
        let written = self.write(slot.frame_mut(), payload_len, inner);
        if written.is_none() {
            slot.shrink_front(added);
            return Err(SealError::NoRoom { needed: added, place: "before" });
        }
        Ok(())
    }

    fn write(&self, packet: &mut [u8], esp_len: usize, inner: Inner) -> Option<()> {
        let (protocol, payload_len) = match self.in_udp {
            true => (udp::PROTOCOL, esp_len.checked_add(udp::HEADER_LEN)?),
            false => (esp::PROTOCOL, esp_len),
        };
        let traffic_class = inner.traffic_class;
        let behind = match self.ends {
            Ends::V4(source, destination) => {
                let header = ipv4::Repr {
                    source,
                    destination,
                    protocol,
                    traffic_class,
                    identification: 0,
                    dont_fragment: inner.dont_fragment,
                    time_to_live: TIME_TO_LIVE,
                    payload_len,
                };
                header.emit(packet).ok()?;
                packet.get_mut(ipv4::HEADER_LEN..)?
            }
            Ends::V6(source, destination) => {
                let header = ipv6::Repr {
                    source,
                    destination,
                    next_header: protocol,
                    traffic_class,
                    flow_label: 0,
                    hop_limit: TIME_TO_LIVE,
                    payload_len,
                };
                header.emit(packet).ok()?;
                packet.get_mut(ipv6::HEADER_LEN..)?
            }
        };
        if self.in_udp {
            // Without a checksum over IPv4 (RFC 3948 §2.1): ESP has its own.
            write_udp(behind.get_mut(..payload_len)?, esp::UDP_PORT, esp::UDP_PORT, self.ends)?;
        }
        Some(())
    }

    /// Takes the outer header off a packet of this tunnel that comes from the other end. Whether there was one.
    pub fn unwrap(&self, slot: &mut Slot<'_>) -> bool {
        let Some(esp) = self.esp_of(slot.frame()) else { return false };
        let (start, len) = esp;
        slot.shrink_front(start);
        slot.shrink_back(slot.len().saturating_sub(len));
        true
    }

    /// Where in a packet the ESP packet begins, and its length.
    fn esp_of(&self, packet: &[u8]) -> Option<(usize, usize)> {
        let (ends, protocol, payload) = if let Ok(packet) = ipv4::Packet::new_checked(packet) {
            let ends = (IpAddr::V4(packet.source()), IpAddr::V4(packet.destination()));
            (!packet.is_fragment()).then_some((ends, packet.protocol(), packet.payload()))?
        } else {
            let packet = ipv6::Packet::new_checked(packet).ok()?;
            let ends = (IpAddr::V6(packet.source()), IpAddr::V6(packet.destination()));
            (ends, packet.next_header(), packet.payload())
        };
        let own = match self.ends {
            Ends::V4(own, other) => (IpAddr::V4(other), IpAddr::V4(own)),
            Ends::V6(own, other) => (IpAddr::V6(other), IpAddr::V6(own)),
        };
        let esp = match (protocol, self.in_udp) {
            (esp::PROTOCOL, false) => payload,
            (udp::PROTOCOL, true) => {
                let datagram = udp::Datagram::new_checked(payload).ok()?;
                let is_ours = datagram.destination_port() == esp::UDP_PORT;
                match Datagram::new_checked(datagram.payload()).ok()? {
                    Datagram::Esp(esp) if is_ours => esp,
                    _ => return None,
                }
            }
            _ => return None,
        };
        let start = (esp.as_ptr() as usize).checked_sub(packet.as_ptr() as usize)?;
        (ends == own).then_some((start, esp.len()))
    }
}
