//! ARP (RFC 826) and neighbour discovery (RFC 4861) on an Ethernet: answers for our addresses,
//! questions and answers for [`Neighbours`].
//!
//! There is no duplicate address detection (RFC 5227, RFC 4862 §5.4): whoever gives the stack an
//! address vouches for it. That another host claims one of ours is told by a warning. Pure.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use units::Time;
use wire::ethernet::{self, Address, EtherType};
use wire::{arp, icmpv6, ipv6};

use crate::neighbours::{Claim, Neighbours, Solicitation};
use crate::routes::Routes;

const BROADCAST: Address = Address([0xff; 6]);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Answers that wait to be sent; more are not given.
const MAX_ANSWERS: usize = 64;

/// The longest frame that [`Discovery::poll_frame`] writes: a solicitation with its option.
pub(crate) const MAX_FRAME: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + 32;

/// An answer for one of our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    V4 {
        own: Ipv4Addr,
        to: Ipv4Addr,
        link: Address,
    },
    /// To all nodes if `to` is not known: the asker has no address yet (RFC 4861 §7.2.4).
    V6 {
        own: Ipv6Addr,
        to: Option<(Ipv6Addr, Address)>,
    },
}

/// Discovery on one interface.
#[derive(Debug)]
pub(crate) struct Discovery {
    link: Address,
    pub(crate) neighbours: Neighbours,
    answers: VecDeque<Answer>,
    conflict_reported: bool,
}

impl Discovery {
    /// On the interface with the address `link`.
    pub(crate) fn new(link: Address, permanent: &[(IpAddr, Address)]) -> Self {
        Discovery {
            link,
            neighbours: Neighbours::new(permanent),
            answers: VecDeque::new(),
            conflict_reported: false,
        }
    }

    /// Takes the payload of an ARP frame.
    pub(crate) fn handle_arp(&mut self, now: Time, routes: &Routes, payload: &[u8]) {
        let Ok(packet) = arp::Packet::new_checked(payload) else { return };
        let repr = arp::Repr::parse(&packet);
        let (sender, link) = (repr.sender_protocol, repr.sender_hardware);
        if self.is_conflict(routes, sender.into(), link)
            || !routes.owns(repr.target_protocol.into())
        {
            return;
        }
        let on_link = routes.next_hop(sender.into()) == Some(sender.into());
        match repr.operation {
            arp::Operation::REQUEST => {
                if on_link {
                    self.neighbours.learn(now, sender.into(), link, Claim::Question);
                }
                self.answer(Answer::V4 { own: repr.target_protocol, to: sender, link });
            }
            arp::Operation::REPLY if on_link => {
                self.neighbours.learn(now, sender.into(), link, Claim::Answer);
            }
            _ => {}
        }
    }

    /// Takes an ICMPv6 message of the packet `header` in a frame from `source`; whether it was one
    /// of neighbour discovery's.
    pub(crate) fn handle_icmpv6(
        &mut self,
        now: Time,
        routes: &Routes,
        source: Address,
        header: &ipv6::Packet<'_>,
        message: &icmpv6::Repr<'_>,
    ) -> bool {
        // RFC 4861 §7.1.1, 7.1.2: from this link, and no router has passed it on.
        let here = header.hop_limit() == icmpv6::DISCOVERY_HOP_LIMIT;
        let from = header.source();
        match *message {
            icmpv6::Repr::NeighbourSolicitation { target, source_link } => {
                if here && routes.owns(target.into()) {
                    self.handle_solicitation(now, routes, source, from, target, source_link);
                }
                true
            }
            icmpv6::Repr::NeighbourAdvertisement { solicited, target, target_link, .. } => {
                let link = target_link.unwrap_or(source);
                // RFC 4861 §7.2.5, and stricter: unsolicited ones are not heard.
                if here
                    && solicited
                    && routes.owns(header.destination().into())
                    && !self.is_conflict(routes, target.into(), link)
                {
                    self.neighbours.learn(now, target.into(), link, Claim::Answer);
                }
                true
            }
            icmpv6::Repr::PacketTooBig { .. } => false,
        }
    }

    fn handle_solicitation(
        &mut self,
        now: Time,
        routes: &Routes,
        source: Address,
        from: Ipv6Addr,
        target: Ipv6Addr,
        source_link: Option<Address>,
    ) {
        if from.is_unspecified() {
            // RFC 4861 §7.1.1: then there is no source option.
            if source_link.is_none() {
                self.answer(Answer::V6 { own: target, to: None });
            }
            return;
        }
        if self.is_conflict(routes, from.into(), source) {
            return;
        }
        if let Some(link) = source_link
            && routes.next_hop(from.into()) == Some(from.into())
        {
            self.neighbours.learn(now, from.into(), link, Claim::Question);
        }
        let link = source_link.unwrap_or(source);
        self.answer(Answer::V6 { own: target, to: Some((from, link)) });
    }

    /// Whether somebody at another interface uses an address of ours.
    fn is_conflict(&mut self, routes: &Routes, address: IpAddr, link: Address) -> bool {
        if !routes.owns(address) {
            return false;
        }
        if link != self.link && !self.conflict_reported {
            self.conflict_reported = true;
            tracing::warn!(%address, %link, "another host uses an address of this stack");
        }
        true
    }

    fn answer(&mut self, answer: Answer) {
        if self.answers.len() < MAX_ANSWERS && !self.answers.contains(&answer) {
            self.answers.push_back(answer);
        }
    }

    /// Writes the next frame to be sent, if there is one, and returns its length. `buffer` has at
    /// least [`MAX_FRAME`] bytes.
    pub(crate) fn poll_frame(&mut self, routes: &Routes, buffer: &mut [u8]) -> Option<usize> {
        while let Some(answer) = self.answers.pop_front() {
            if let Some(len) = self.write_answer(answer, buffer) {
                return Some(len);
            }
        }
        while let Some(question) = self.neighbours.poll_question() {
            if let Some(len) = self.write_question(routes, question, buffer) {
                return Some(len);
            }
        }
        None
    }

    fn write_answer(&self, answer: Answer, buffer: &mut [u8]) -> Option<usize> {
        match answer {
            Answer::V4 { own, to, link } => {
                let repr = arp::Repr {
                    operation: arp::Operation::REPLY,
                    sender_hardware: self.link,
                    sender_protocol: own,
                    target_hardware: link,
                    target_protocol: to,
                };
                self.write_arp(link, &repr, buffer)
            }
            Answer::V6 { own, to } => {
                let group = (ALL_NODES, icmpv6::multicast_link(ALL_NODES));
                let (destination, link) = to.unwrap_or(group);
                let repr = icmpv6::Repr::NeighbourAdvertisement {
                    router: false,
                    solicited: to.is_some(),
                    replace: true,
                    target: own,
                    target_link: Some(self.link),
                };
                self.write_icmpv6(own, destination, link, &repr, buffer)
            }
        }
    }

    fn write_question(
        &self,
        routes: &Routes,
        question: Solicitation,
        buffer: &mut [u8],
    ) -> Option<usize> {
        match (question.address, routes.source(question.address)?) {
            (IpAddr::V4(target), IpAddr::V4(own)) => {
                let repr = arp::Repr {
                    operation: arp::Operation::REQUEST,
                    sender_hardware: self.link,
                    sender_protocol: own,
                    target_hardware: Address::default(),
                    target_protocol: target,
                };
                self.write_arp(question.to.unwrap_or(BROADCAST), &repr, buffer)
            }
            (IpAddr::V6(target), IpAddr::V6(own)) => {
                let repr =
                    icmpv6::Repr::NeighbourSolicitation { target, source_link: Some(self.link) };
                let group = icmpv6::solicited_node(target);
                let (destination, link) = match question.to {
                    Some(link) => (target, link),
                    None => (group, icmpv6::multicast_link(group)),
                };
                self.write_icmpv6(own, destination, link, &repr, buffer)
            }
            _ => None,
        }
    }

    fn write_arp(&self, to: Address, repr: &arp::Repr, buffer: &mut [u8]) -> Option<usize> {
        let body = self.write_ethernet(to, EtherType::ARP, buffer)?;
        repr.emit(body).ok()?;
        Some(ethernet::HEADER_LEN + repr.buffer_len())
    }

    fn write_icmpv6(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        link: Address,
        repr: &icmpv6::Repr<'_>,
        buffer: &mut [u8],
    ) -> Option<usize> {
        let body = self.write_ethernet(link, EtherType::IPV6, buffer)?;
        let header = ipv6::Repr {
            source,
            destination,
            next_header: icmpv6::PROTOCOL,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: icmpv6::DISCOVERY_HOP_LIMIT,
            payload_len: repr.buffer_len(),
        };
        header.emit(body).ok()?;
        repr.emit(source, destination, body.get_mut(ipv6::HEADER_LEN..)?).ok()?;
        Some(ethernet::HEADER_LEN + ipv6::HEADER_LEN + repr.buffer_len())
    }

    fn write_ethernet<'b>(
        &self,
        destination: Address,
        ether_type: EtherType,
        buffer: &'b mut [u8],
    ) -> Option<&'b mut [u8]> {
        ethernet::Repr { destination, source: self.link, ether_type }.emit(buffer).ok()?;
        buffer.get_mut(ethernet::HEADER_LEN..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUR_LINK: Address = Address([2, 0x77, 0, 0, 1, 1]);
    const PEER_LINK: Address = Address([2, 0x77, 0, 0, 1, 2]);
    const OWN4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 101);
    const PEER4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
    const OWN6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 0x101);
    const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 2);

    /// One end of a link.
    struct Host {
        routes: Routes,
        discovery: Discovery,
    }

    impl Host {
        fn new(own: [IpAddr; 2], link: Address) -> Host {
            let [v4, v6] = own;
            let addresses = [(v4, 24), (v6, 64)]
                .map(|(address, len)| crate::InterfaceAddress::new(address, len).unwrap());
            let routes = Routes::new(addresses.to_vec(), Vec::new()).unwrap();
            Host { routes, discovery: Discovery::new(link, &[]) }
        }

        fn us() -> Host {
            Host::new([OWN4.into(), OWN6.into()], OUR_LINK)
        }

        fn peer() -> Host {
            Host::new([PEER4.into(), PEER6.into()], PEER_LINK)
        }

        fn poll(&mut self) -> Option<Vec<u8>> {
            let mut buffer = [0; MAX_FRAME];
            let len = self.discovery.poll_frame(&self.routes, &mut buffer)?;
            Some(buffer[..len].to_vec())
        }

        fn handle(&mut self, now: Time, bytes: &[u8]) {
            let frame = ethernet::Frame::new_checked(bytes).unwrap();
            if frame.ether_type() == EtherType::ARP {
                return self.discovery.handle_arp(now, &self.routes, frame.payload());
            }
            let packet = ipv6::Packet::new_checked(frame.payload()).unwrap();
            let message = icmpv6::Message::new_checked(packet.payload()).unwrap();
            assert!(message.checksum_ok(packet.source(), packet.destination()));
            let repr = icmpv6::Repr::parse(&message).unwrap().unwrap();
            let source = frame.source();
            assert!(self.discovery.handle_icmpv6(now, &self.routes, source, &packet, &repr));
        }

        fn knows(&mut self, now: Time, address: IpAddr) -> Option<Address> {
            self.discovery.neighbours.lookup(now, address)
        }
    }

    fn destination(bytes: &[u8]) -> Address {
        ethernet::Frame::new_checked(bytes).unwrap().destination()
    }

    #[test]
    fn two_hosts_find_each_other_by_either_family() {
        let groups = [BROADCAST, Address([0x33, 0x33, 0xff, 0, 0, 2])];
        for ((own, peer), group) in
            [(OWN4.into(), IpAddr::V4(PEER4)), (OWN6.into(), PEER6.into())].into_iter().zip(groups)
        {
            let (mut us, mut other) = (Host::us(), Host::peer());
            assert_eq!(us.knows(Time::ZERO, peer), None);
            let question = us.poll().unwrap();
            assert_eq!(destination(&question), group);
            other.handle(Time::ZERO, &question);
            let answer = other.poll().unwrap();
            assert_eq!(destination(&answer), OUR_LINK);
            us.handle(Time::ZERO, &answer);
            assert_eq!(us.knows(Time::ZERO, peer), Some(PEER_LINK));
            // The one that was asked knows the asker, and makes sure by unicast.
            assert_eq!(other.knows(Time::ZERO, own), Some(OUR_LINK));
            let question = other.poll().unwrap();
            assert_eq!(destination(&question), OUR_LINK);
            us.handle(Time::ZERO, &question);
            other.handle(Time::ZERO, &us.poll().unwrap());
            assert_eq!((us.poll(), other.poll()), (None, None));
        }
    }

    #[test]
    fn who_looks_for_duplicates_is_answered_to_all_nodes() {
        let mut us = Host::us();
        let mut buffer = [0; MAX_FRAME];
        let probe = icmpv6::Repr::NeighbourSolicitation { target: OWN6, source_link: None };
        let group = icmpv6::solicited_node(OWN6);
        let link = icmpv6::multicast_link(group);
        let other = Discovery::new(PEER_LINK, &[]);
        let len =
            other.write_icmpv6(Ipv6Addr::UNSPECIFIED, group, link, &probe, &mut buffer).unwrap();
        us.handle(Time::ZERO, &buffer[..len]);
        let answer = us.poll().unwrap();
        assert_eq!(destination(&answer), Address([0x33, 0x33, 0, 0, 0, 1]));
        // ARP's counterpart, RFC 5227 §2.1.1: a request from no address.
        let probe = arp::Repr {
            operation: arp::Operation::REQUEST,
            sender_hardware: PEER_LINK,
            sender_protocol: Ipv4Addr::UNSPECIFIED,
            target_hardware: Address::default(),
            target_protocol: OWN4,
        };
        let len = other.write_arp(BROADCAST, &probe, &mut buffer).unwrap();
        us.handle(Time::ZERO, &buffer[..len]);
        assert_eq!(destination(&us.poll().unwrap()), PEER_LINK);
        assert_eq!(us.knows(Time::ZERO, PEER4.into()), None);
    }

    #[test]
    fn questions_about_others_are_not_answered() {
        let (mut us, mut other) = (Host::us(), Host::peer());
        for target in ["10.77.1.7", "fd77:1::7"] {
            other.knows(Time::ZERO, target.parse().unwrap());
            us.handle(Time::ZERO, &other.poll().unwrap());
        }
        assert_eq!(us.poll(), None);
    }

    #[test]
    fn what_a_router_has_passed_on_is_not_heard() {
        let (mut us, mut other) = (Host::us(), Host::peer());
        other.knows(Time::ZERO, OWN6.into());
        let mut question = other.poll().unwrap();
        // The hop limit is not in the checksum.
        question[ethernet::HEADER_LEN + 7] = 254;
        us.handle(Time::ZERO, &question);
        assert_eq!(us.poll(), None);
    }

    #[test]
    fn answers_are_bounded_and_a_repeated_question_is_answered_once() {
        let mut us = Host::us();
        for number in 0..200u8 {
            let repr = arp::Repr {
                operation: arp::Operation::REQUEST,
                sender_hardware: PEER_LINK,
                sender_protocol: Ipv4Addr::new(10, 77, 1, number),
                target_hardware: Address::default(),
                target_protocol: OWN4,
            };
            let mut payload = [0; arp::PACKET_LEN];
            repr.emit(&mut payload).unwrap();
            for _ in 0..2 {
                us.discovery.handle_arp(Time::ZERO, &us.routes, &payload);
            }
        }
        assert_eq!(std::iter::from_fn(|| us.poll()).count(), MAX_ANSWERS);
    }
}
