//! What the driver and all streams share under one lock: the endpoint, its device, who waits.
//!
//! Whoever holds the lock may make the endpoint act and sends what comes of it at once, so that no
//! task switch lies between a write and the wire.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::task::Waker;

use tcp::{Checksum, ConnectionId, Endpoint, EventKind, ListenerId, State};
use units::Time;
use wire::ethernet::EtherType;
use wire::{icmpv4, icmpv6, ipv6};

use crate::device::{Device, Opened, Received, Taken};
use crate::discovery::Discovery;
use crate::outbox::{Flushed, Outbox};
use crate::routes::Routes;
use crate::waiters::{Afterwards, Kept, Waiters};

/// Packets taken in one turn at most, before what came of them is sent and told.
const RECEIVE_BUDGET: usize = 256;
/// Batches sent in one turn at most, before packets are taken again.
const SEND_BUDGET: usize = 4;

/// What the stack itself has seen and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// Packets handed to TCP.
    pub received: u64,
    /// Packets that TCP had no use for.
    pub ignored: u64,
    /// Frames that came while there was no room for them.
    pub lost: u64,
    /// Frames for others, of unknown protocols, malformed, or longer than the ring's places.
    pub discarded: u64,
    /// Frames given to the device.
    pub sent: u64,
    /// Frames that the device refused.
    pub send_errors: u64,
    /// Packets to where there is no way.
    pub no_route: u64,
}

/// What a turn leaves to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// More packets wait, or more is to be sent.
    pub(crate) more: bool,
    /// The device must become writable first.
    pub(crate) blocked: bool,
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) endpoint: Endpoint,
    pub(crate) routes: Routes,
    device: Device,
    outbox: Outbox,
    discovery: Option<Discovery>,
    pub(crate) streams: HashMap<ConnectionId, Waiters>,
    pub(crate) listeners: HashMap<ListenerId, Vec<Waker>>,
    /// What is kept of connections that were dropped and are not over.
    kept: HashMap<ConnectionId, Kept>,
    afterwards: Afterwards,
    /// The driver, and the time for which its timer is set.
    pub(crate) driver: Option<Waker>,
    pub(crate) armed: Time,
    blocked: bool,
    pub(crate) counters: StackCounters,
    /// When what is still open is reset: the stack is being shut down.
    pub(crate) closing: Option<Time>,
    /// Nobody drives the stack any more.
    pub(crate) ended: bool,
    down_reported: bool,
    length_reported: bool,
}

impl Engine {
    pub(crate) fn new(
        endpoint: Endpoint,
        opened: Opened,
        routes: Routes,
        discovery: Option<Discovery>,
    ) -> Self {
        Engine {
            endpoint,
            routes,
            device: opened.device,
            outbox: opened.outbox,
            discovery,
            streams: HashMap::new(),
            listeners: HashMap::new(),
            kept: HashMap::new(),
            afterwards: Afterwards::default(),
            driver: None,
            armed: Time::MAX,
            blocked: false,
            counters: StackCounters::default(),
            closing: None,
            ended: false,
            down_reported: false,
            length_reported: false,
        }
    }

    /// Whether packets wait. No system call.
    pub(crate) fn is_ready(&self) -> bool {
        self.device.is_ready()
    }

    /// Looks for packets at the next turn, though no reactor has said that there are any.
    pub(crate) fn look_again(&mut self) {
        self.device.set_readable();
    }

    /// The reactor says that the device is readable, or has an error.
    pub(crate) fn set_readable(&mut self) {
        self.device.set_readable();
        if let Some(error) = self.device.take_error()
            && !self.down_reported
        {
            self.down_reported = true;
            tracing::warn!(%error, "the device of the stack has failed; is it down or gone?");
        }
    }

    /// The reactor says that the device is writable.
    pub(crate) fn set_writable(&mut self) {
        self.blocked = false;
    }

    /// Takes packets in, lets timers fire, sends, and tells who waits.
    pub(crate) fn turn(&mut self, now: Time) -> Left {
        let more_waits = self.receive(now);
        if self.endpoint.next_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        if let Some(discovery) = &mut self.discovery {
            discovery.neighbours.handle_timeout(now);
        }
        let more_to_send = self.transmit(now);
        self.dispatch();
        Left { more: more_waits || more_to_send, blocked: self.blocked }
    }

    /// After a caller has made the endpoint act: sends, tells who waits, and has the driver's timer
    /// set if it would ring too late.
    pub(crate) fn settle(&mut self, now: Time) {
        let more = self.transmit(now);
        self.dispatch();
        if more || self.blocked || self.next_timeout().is_some_and(|at| at < self.armed) {
            self.afterwards.wakes.extend(self.driver.take());
        }
    }

    /// When a timer is to fire.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let discovery = self.discovery.as_ref();
        let times = [
            self.endpoint.next_timeout(),
            discovery.and_then(|discovery| discovery.neighbours.next_timeout()),
            self.closing,
        ];
        times.into_iter().flatten().min()
    }

    /// Takes packets in; whether more wait.
    fn receive(&mut self, now: Time) -> bool {
        let Engine { endpoint, routes, device, discovery, counters, length_reported, .. } = self;
        for _ in 0..RECEIVE_BUDGET {
            let mut input =
                Input { now, endpoint, routes, discovery: discovery.as_mut(), counters };
            match device.receive(|received| input.handle(received)) {
                Taken::Nothing => return false,
                Taken::Packet => {}
                Taken::Unusable => counters.discarded += 1,
                Taken::TooLong => {
                    counters.discarded += 1;
                    if !std::mem::replace(length_reported, true) {
                        tracing::warn!(
                            "frames longer than the MTU come in and are lost: turn tso, gso and gro \
                             off (`ethtool -K`) or open the stack with `vnet_header`"
                        );
                    }
                }
            }
        }
        device.is_ready()
    }

    /// Sends what there is to send, within the budget; whether there is more.
    fn transmit(&mut self, now: Time) -> bool {
        if self.blocked {
            return false;
        }
        for _ in 0..SEND_BUDGET {
            let all = self.fill(now);
            if self.outbox.is_empty() {
                return false;
            }
            match self.outbox.flush(self.device.sender()) {
                Ok(Flushed::All) if all => return false,
                Ok(Flushed::All) => {}
                Ok(Flushed::Blocked) => {
                    self.blocked = true;
                    return false;
                }
                Err(error) => {
                    if !self.down_reported {
                        self.down_reported = true;
                        tracing::warn!(%error, "the device of the stack takes no frames");
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Writes frames until there is no room or nothing to send; whether it is the latter.
    fn fill(&mut self, now: Time) -> bool {
        let Engine { endpoint, routes, outbox, discovery, counters, .. } = self;
        while outbox.has_room() {
            let Some(transmit) = endpoint.poll_transmit(now, outbox.packet_space()) else {
                return fill_discovery(outbox, routes, discovery.as_mut(), counters);
            };
            let Some(discovery) = discovery else {
                counters.sent += 1;
                outbox.push_packet(&transmit, None);
                continue;
            };
            let Some(hop) = routes.next_hop(transmit.destination) else {
                counters.no_route += 1;
                continue;
            };
            match discovery.neighbours.lookup(now, hop) {
                Some(link) => {
                    counters.sent += 1;
                    outbox.push_packet(&transmit, Some(link));
                }
                None => discovery.neighbours.hold(hop, outbox.finish_packet(&transmit)),
            }
        }
        false
    }

    /// Takes the endpoint's events to who waits for them.
    pub(crate) fn dispatch(&mut self) {
        let Engine { endpoint, streams, listeners, kept, afterwards, .. } = self;
        let wakes = &mut afterwards.wakes;
        while let Some(event) = endpoint.poll_event() {
            if let EventKind::Incoming(listener) = event.kind {
                if let Some(waiting) = listeners.get_mut(&listener) {
                    wakes.append(waiting);
                }
                continue;
            }
            if matches!(event.kind, EventKind::Closed(_)) {
                afterwards.kept.extend(kept.remove(&event.connection));
            }
            let Some(waiters) = streams.get_mut(&event.connection) else { continue };
            match event.kind {
                EventKind::Readable | EventKind::PeerFinished => wakes.extend(waiters.read.take()),
                EventKind::Writable => wakes.extend(waiters.write.take()),
                EventKind::Closed(reason) => {
                    waiters.closed = Some(reason);
                    waiters.wake_all(wakes);
                }
                _ => waiters.wake_all(wakes),
            }
        }
    }

    /// Whether the stack takes nothing new.
    pub(crate) fn is_closing(&self) -> bool {
        self.ended || self.closing.is_some()
    }

    /// Ends all connections in order, and resets what is open at `deadline`.
    pub(crate) fn begin_closing(&mut self, now: Time, deadline: Time) {
        if self.is_closing() {
            return;
        }
        self.closing = Some(deadline);
        for (listener, waiting) in &mut self.listeners {
            self.endpoint.unlisten(now, *listener);
            self.afterwards.wakes.append(waiting);
        }
        for connection in self.streams.keys() {
            self.endpoint.shutdown(now, *connection);
        }
    }

    /// While closing: whether all is over. Past the deadline it is made so.
    pub(crate) fn try_end(&mut self, now: Time) -> bool {
        let Some(deadline) = self.closing else { return false };
        if self.is_over() {
            return true;
        }
        if now < deadline {
            return false;
        }
        tracing::debug!("connections are reset, as they did not end in time");
        self.endpoint.abort_all(now);
        // What the resets do not get through at once is lost, as the peers would find out anyway.
        self.transmit(now);
        self.dispatch();
        true
    }

    /// Whether no connection is open, though streams may still be held.
    fn is_over(&self) -> bool {
        let over = |id: &ConnectionId| {
            self.endpoint
                .info(*id)
                .is_none_or(|info| matches!(info.state, State::TimeWait | State::Closed))
        };
        let held = self.streams.len();
        self.endpoint.counters().connections <= held && self.streams.keys().all(over)
    }

    /// Has `waker` woken at the next step of a connection's handshake, or its end.
    pub(crate) fn wait_for_step(&mut self, id: ConnectionId, waker: &Waker) {
        if let Some(waiters) = self.streams.get_mut(&id)
            && !waiters.step.iter().any(|other| other.will_wake(waker))
        {
            waiters.step.push(waker.clone());
        }
    }

    /// Has `waker` woken once the lock is given back.
    pub(crate) fn wake(&mut self, waker: Waker) {
        self.afterwards.wakes.push(waker);
    }

    /// Nobody drives the stack from now on: all who wait are told.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.afterwards.kept.extend(self.kept.drain().map(|(_, kept)| kept));
        for waiters in self.streams.values_mut() {
            waiters.wake_all(&mut self.afterwards.wakes);
        }
        for waiting in self.listeners.values_mut() {
            self.afterwards.wakes.append(waiting);
        }
    }

    /// A stream is dropped: its connection ends in order, and what was kept with it stays until
    /// then. What is returned is to be dropped with the lock given back.
    pub(crate) fn release(&mut self, now: Time, id: ConnectionId) -> Option<Waiters> {
        self.endpoint.release(now, id);
        let mut waiters = self.streams.remove(&id)?;
        let over = waiters.closed.is_some() || self.ended || self.endpoint.info(id).is_none();
        if !over && let Some(kept) = waiters.kept.take() {
            self.kept.insert(id, kept);
        }
        Some(waiters)
    }

    /// Moves what is to be done once the lock is given back to `afterwards`, which is empty, and
    /// keeps its memory for the next.
    pub(crate) fn take_afterwards(&mut self, afterwards: &mut Afterwards) {
        std::mem::swap(&mut self.afterwards, afterwards);
    }

    /// What the stack and its device have counted.
    pub(crate) fn counters(&mut self) -> StackCounters {
        let (lost, send_errors) = (self.device.lost(), self.outbox.errors());
        StackCounters { lost, send_errors, ..self.counters }
    }
}

/// Writes the frames of neighbour discovery and those that it has released; whether that is all.
fn fill_discovery(
    outbox: &mut Outbox,
    routes: &Routes,
    discovery: Option<&mut Discovery>,
    counters: &mut StackCounters,
) -> bool {
    let Some(discovery) = discovery else { return true };
    while outbox.has_room() {
        if let Some(len) = discovery.poll_frame(routes, outbox.frame_space()) {
            outbox.push_frame(len);
        } else if let Some((link, frame)) = discovery.neighbours.poll_released() {
            outbox.push_kept(&frame, link);
        } else {
            return true;
        }
        counters.sent += 1;
    }
    false
}

/// Where packets go that come in.
struct Input<'c> {
    now: Time,
    endpoint: &'c mut Endpoint,
    routes: &'c Routes,
    discovery: Option<&'c mut Discovery>,
    counters: &'c mut StackCounters,
}

impl Input<'_> {
    fn handle(&mut self, received: Received<'_>) {
        let packet = received.packet;
        // Protocol and destination at their fixed places (RFC 791 §3.1, RFC 8200 §3), so that what
        // is not ours costs little.
        let (protocol, destination) = match received.ether_type {
            EtherType::IPV4 => {
                (packet.get(9), field::<4>(packet, 16).map(|b| Ipv4Addr::from(b).into()))
            }
            EtherType::IPV6 => {
                (packet.get(6), field::<16>(packet, 24).map(|b| Ipv6Addr::from(b).into()))
            }
            EtherType::ARP => {
                if let Some(discovery) = &mut self.discovery {
                    discovery.handle_arp(self.now, self.routes, packet);
                }
                return;
            }
            _ => (None, None),
        };
        let (Some(protocol), Some(destination)) = (protocol, destination) else {
            self.counters.discarded += 1;
            return;
        };
        let ours = self.routes.owns(destination);
        match (*protocol, destination) {
            (icmpv4::PROTOCOL, IpAddr::V4(_)) if ours => self.report(packet),
            // Solicitations come to groups.
            (icmpv6::PROTOCOL, IpAddr::V6(_)) => self.handle_icmpv6(&received),
            _ if ours => {
                self.counters.received += 1;
                let result = self.endpoint.handle_packet(self.now, packet, received.checksum);
                if let Err(reason) = result {
                    self.counters.ignored += 1;
                    tracing::trace!(%destination, ?reason, "packet ignored");
                }
            }
            _ => self.counters.discarded += 1,
        }
    }

    fn handle_icmpv6(&mut self, received: &Received<'_>) {
        let Ok(packet) = ipv6::Packet::new_checked(received.packet) else { return };
        let Ok(message) = icmpv6::Message::new_checked(packet.payload()) else { return };
        if !message.checksum_ok(packet.source(), packet.destination()) {
            return;
        }
        if let Ok(Some(repr)) = icmpv6::Repr::parse(&message)
            && let Some(discovery) = &mut self.discovery
            && discovery.handle_icmpv6(self.now, self.routes, received.source, &packet, &repr)
        {
            return;
        }
        if self.routes.owns(packet.destination().into()) {
            self.report(received.packet);
        }
    }

    /// ICMP errors are about the endpoint's segments, or of no use.
    fn report(&mut self, packet: &[u8]) {
        match self.endpoint.handle_packet(self.now, packet, Checksum::Verify) {
            Ok(()) => tracing::debug!("an ICMP error was taken"),
            Err(reason) => tracing::trace!(?reason, "ICMP message ignored"),
        }
    }
}

fn field<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}
