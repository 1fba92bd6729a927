//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use crate::error::room;
use crate::ethernet::{Address, EtherType};
use crate::{Error, Reader};

const FORMAT: &str = "ARP";

/// Bytes of a packet. Ethernet pads what follows.
pub const PACKET_LEN: usize = 28;

/// Hardware Ethernet, protocol IPv4, addresses of 6 and 4 bytes (RFC 826 "Packet format").
const ETHERNET_IPV4: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Operation(pub u16);

impl Operation {
    /// Who has the target address?
    pub const REQUEST: Operation = Operation(1);
    /// The sender has it.
    pub const REPLY: Operation = Operation(2);
}

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    operation: &'a [u8; 2],
    sender: &'a [u8; 10],
    target: &'a [u8; 10],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, if they are ARP for IPv4 over Ethernet.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        if *reader.array::<6>()? != ETHERNET_IPV4 {
            return Err(Error::malformed(FORMAT, "it is not for IPv4 over Ethernet"));
        }
        Ok(Packet { operation: reader.array()?, sender: reader.array()?, target: reader.array()? })
    }

    /// What it is for.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        Operation(u16::from_be_bytes(*self.operation))
    }

    /// The sender's Ethernet address.
    #[must_use]
    pub fn sender_hardware(&self) -> Address {
        split(self.sender).0
    }

    /// The sender's IPv4 address; unspecified in a probe (RFC 5227 §1.1).
    #[must_use]
    pub fn sender_protocol(&self) -> Ipv4Addr {
        split(self.sender).1
    }

    /// The target's Ethernet address; of no meaning in a request.
    #[must_use]
    pub fn target_hardware(&self) -> Address {
        split(self.target).0
    }

    /// The target's IPv4 address.
    #[must_use]
    pub fn target_protocol(&self) -> Ipv4Addr {
        split(self.target).1
    }
}

fn split(pair: &[u8; 10]) -> (Address, Ipv4Addr) {
    let [a, b, c, d, e, f, w, x, y, z] = *pair;
    (Address([a, b, c, d, e, f]), Ipv4Addr::new(w, x, y, z))
}

fn join(hardware: Address, protocol: Ipv4Addr) -> [u8; 10] {
    let ([a, b, c, d, e, f], [w, x, y, z]) = (hardware.0, protocol.octets());
    [a, b, c, d, e, f, w, x, y, z]
}

/// A packet for IPv4 over Ethernet, as its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// What it is for.
    pub operation: Operation,
    /// The sender's Ethernet address.
    pub sender_hardware: Address,
    /// The sender's IPv4 address.
    pub sender_protocol: Ipv4Addr,
    /// The target's Ethernet address; zero in a request.
    pub target_hardware: Address,
    /// The target's IPv4 address.
    pub target_protocol: Ipv4Addr,
}

impl Repr {
    /// What a packet says.
    #[must_use]
    pub fn parse(packet: &Packet<'_>) -> Self {
        Repr {
            operation: packet.operation(),
            sender_hardware: packet.sender_hardware(),
            sender_protocol: packet.sender_protocol(),
            target_hardware: packet.target_hardware(),
            target_protocol: packet.target_protocol(),
        }
    }

    /// The EtherType of a frame that carries it.
    pub const ETHER_TYPE: EtherType = EtherType::ARP;

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        PACKET_LEN
    }

    /// Writes the packet to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let buffer = room(FORMAT, buffer, PACKET_LEN)?;
        let operation = self.operation.0.to_be_bytes();
        let sender = join(self.sender_hardware, self.sender_protocol);
        let target = join(self.target_hardware, self.target_protocol);
        let fields = ETHERNET_IPV4.iter().chain(&operation).chain(&sender).chain(&target);
        for (to, from) in buffer.iter_mut().zip(fields) {
            *to = *from;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request as a Linux host sends it: 10.77.1.1 asks for 10.77.1.101.
    const REQUEST: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0x77, 0, 0, 1, 1, 10, 77, 1, 1, 0, 0, 0, 0, 0, 0, 10, 77, 1, 101,
    ];

    #[test]
    fn a_request_reads_as_one() {
        let repr = Repr::parse(&Packet::new_checked(&REQUEST).unwrap());
        assert_eq!(repr.operation, Operation::REQUEST);
        assert_eq!(repr.sender_hardware, Address([2, 0x77, 0, 0, 1, 1]));
        assert_eq!(repr.sender_protocol, Ipv4Addr::new(10, 77, 1, 1));
        assert_eq!(repr.target_protocol, Ipv4Addr::new(10, 77, 1, 101));
        let mut buffer = [0; PACKET_LEN];
        repr.emit(&mut buffer).unwrap();
        assert_eq!(buffer, REQUEST);
    }

    #[test]
    fn other_networks_and_cut_packets_are_refused() {
        let mut token_ring = REQUEST;
        token_ring[1] = 6;
        assert!(matches!(Packet::new_checked(&token_ring), Err(Error::Malformed { .. })));
        assert!(matches!(Packet::new_checked(&REQUEST[..27]), Err(Error::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            crate::fuzz::arp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            operation: u16, sender: ([u8; 6], [u8; 4]), target: ([u8; 6], [u8; 4]),
        ) {
            let repr = Repr {
                operation: Operation(operation),
                sender_hardware: Address(sender.0),
                sender_protocol: sender.1.into(),
                target_hardware: Address(target.0),
                target_protocol: target.1.into(),
            };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&buffer).unwrap()), repr);
        }
    }
}
