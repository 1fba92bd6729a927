//! Entry points for fuzzing: any bytes in; a panic, a hang or a broken promise is the finding.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use units::Time;

use crate::{
    Checksum, Config, ConnectOptions, ConnectionId, Endpoint, IfRefused, ListenOptions, ListenerId,
    SynWithData,
};

const MAX_CONNECTIONS: usize = 16;
const MAX_HALF_OPEN: usize = 4;
const MAX_ORPHANS: usize = 2;
const RECEIVE_INITIAL: usize = 2 << 10;
const RECEIVE_MEMORY: usize = 4 << 10;
const SEND_INITIAL: usize = 4 << 10;
const SEND_MEMORY: usize = 16 << 10;

fn config() -> Config {
    Config {
        max_connections: MAX_CONNECTIONS,
        max_half_open_with_data: MAX_HALF_OPEN,
        max_half_open_plain: MAX_HALF_OPEN,
        max_time_wait: 8,
        max_destinations: 8,
        send_buffer: 16 << 10,
        receive_buffer: 16 << 10,
        receive_initial: RECEIVE_INITIAL,
        receive_memory: RECEIVE_MEMORY,
        send_initial: SEND_INITIAL,
        send_memory: SEND_MEMORY,
        max_orphans: MAX_ORPHANS,
        ..Config::default()
    }
}

fn admit(syn: &SynWithData<'_>) -> bool {
    syn.payload.first().is_some_and(|first| *first != b'n')
}

fn socket(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([192, 0, 2, host]), port)
}

fn bounds(endpoint: &Endpoint) {
    let counters = endpoint.counters();
    assert!(counters.connections <= MAX_CONNECTIONS, "more connections than allowed");
    assert!(counters.half_open_with_data <= MAX_HALF_OPEN, "more half-open than allowed");
    assert!(counters.half_open_plain <= MAX_HALF_OPEN, "more half-open than allowed");
    assert!(counters.half_open_reset <= MAX_HALF_OPEN, "more reset half-open than allowed");
    assert!(counters.orphans <= MAX_ORPHANS, "more orphans than allowed");
    let own = 2 * RECEIVE_INITIAL * counters.connections;
    assert!(counters.receive_held <= RECEIVE_MEMORY + own, "more is held than allowed");
    let own = SEND_INITIAL * counters.connections;
    assert!(counters.send_held <= SEND_MEMORY + own, "more is to be sent than allowed");
}

fn drain(endpoint: &mut Endpoint, now: Time, mut sent: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 2048];
    // An endpoint that never falls silent is a finding too.
    for round in 0.. {
        assert!(round < 4096, "packets without end");
        let Some(transmit) = endpoint.poll_transmit(now, &mut buffer) else { break };
        sent(buffer.get(..transmit.len).unwrap_or_default());
    }
    for round in 0.. {
        assert!(round < 4096, "events without end");
        if endpoint.poll_event().is_none() {
            break;
        }
    }
    bounds(endpoint);
}

/// Any bytes as packets to an endpoint with a listener and a client: each a step of time (a byte,
/// in units of 16 ms), a length of two bytes, and what follows the IPv4 header. Addresses and the
/// checksum are put right, so that the state machine is reached.
pub fn packets(bytes: &[u8]) {
    let mut endpoint = Endpoint::new(config(), [7; 32]);
    let mut now = Time::from_millis(1);
    let options = ListenOptions { admit, cookies: true, backlog: 8 };
    let Ok(listener) = endpoint.listen(socket(1, 443), options) else { return };
    let with_data = ConnectOptions { syn_data: vec![b'x'; 600], ..ConnectOptions::default() };
    let Ok(client) = endpoint.connect(now, socket(1, 40_000), socket(2, 80), with_data) else {
        return;
    };
    let mut reader = wire::Reader::new("fuzz input", bytes);
    let mut accepted = Vec::new();
    while let (Ok(step), Ok(segment)) = (reader.u8(), reader.vec16()) {
        now += Duration::from_millis(u64::from(step) * 16);
        if endpoint.next_timeout().is_some_and(|at| at <= now) {
            endpoint.handle_timeout(now);
        }
        let _ = endpoint.handle_packet(now, &packet(segment), Checksum::Trusted);
        let _ = endpoint.handle_packet(now, &icmp_error(segment), Checksum::Verify);
        accepted.extend(endpoint.accept(listener));
        let mut into = [0; 512];
        for id in accepted.iter().chain([&client]) {
            let _ = endpoint.read(now, *id, &mut into);
            let _ = endpoint.write(now, *id, b"answer");
            endpoint.answer(now, *id);
        }
        if accepted.len() > 8 {
            endpoint.release(now, accepted.remove(0));
        }
        drain(&mut endpoint, now, |_| ());
    }
    endpoint.abort_all(now);
    drain(&mut endpoint, now, |_| ());
}

/// An IPv4 packet around a segment: from one of 64 hosts, to the endpoint.
fn packet(segment: &[u8]) -> Vec<u8> {
    let host = segment.last().map_or(2, |last| 2 + last % 64);
    let repr = wire::ipv4::Repr {
        source: [192, 0, 2, host].into(),
        destination: [192, 0, 2, 1].into(),
        protocol: wire::tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: segment.len(),
    };
    let mut packet = vec![0; repr.buffer_len()];
    let _ = repr.emit(&mut packet);
    packet.extend_from_slice(segment);
    packet
}

/// An ICMP error about our SYN or a later segment, of the type, code and distance that a segment's first bytes name.
fn icmp_error(segment: &[u8]) -> Vec<u8> {
    let at = |index: usize| segment.get(index).copied().unwrap_or(0);
    let ports = [40_000_u16.to_be_bytes(), 80_u16.to_be_bytes()].concat();
    let sequence = [at(4), at(5), at(6), at(7)];
    let quoted = wire::ipv4::Repr {
        source: [192, 0, 2, 1].into(),
        destination: [192, 0, 2, 2].into(),
        protocol: wire::tcp::PROTOCOL,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: 8,
    };
    let mut inner = vec![0; quoted.buffer_len()];
    let _ = quoted.emit(&mut inner);
    inner.truncate(wire::ipv4::HEADER_LEN);
    let head = [at(0) % 16, at(1) % 16, 0, 0, 0, 0, at(2), at(3)];
    let mut message = [&head[..], &inner, &ports, &sequence].concat();
    let sum = wire::checksum::Sum::new().plus(&message).finish().to_be_bytes();
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&sum);
    }
    let outer = wire::ipv4::Repr {
        source: [192, 0, 2, 2].into(),
        destination: [192, 0, 2, 1].into(),
        protocol: wire::icmpv4::PROTOCOL,
        payload_len: message.len(),
        ..quoted
    };
    let mut packet = vec![0; outer.buffer_len()];
    let _ = outer.emit(&mut packet);
    packet.truncate(wire::ipv4::HEADER_LEN);
    packet.extend(message);
    packet
}

/// One host of a conversation, and what it has said and heard.
struct Side {
    endpoint: Endpoint,
    id: Option<ConnectionId>,
    written: Vec<u8>,
    read: Vec<u8>,
    /// With each packet, whether it is spoilt: a second flipped bit could make the sum right again.
    inbox: VecDeque<(bool, Vec<u8>)>,
}

impl Side {
    fn new(seed: u8) -> Self {
        Side {
            endpoint: Endpoint::new(config(), [seed; 32]),
            id: None,
            written: Vec::new(),
            read: Vec::new(),
            inbox: VecDeque::new(),
        }
    }

    fn say(&mut self, now: Time, len: usize) {
        let Some(id) = self.id else { return };
        let start = self.written.len();
        let data: Vec<u8> = (start..start + len).map(|at| (at * 31 % 251) as u8).collect();
        let count = self.endpoint.write(now, id, &data).unwrap_or(0);
        self.written.extend(data.get(..count).unwrap_or_default());
    }

    fn hear(&mut self, now: Time) {
        let Some(id) = self.id else { return };
        let mut into = [0; 4096];
        while let Ok(count @ 1..) = self.endpoint.read(now, id, &mut into) {
            self.read.extend(into.get(..count).unwrap_or_default());
        }
    }
}

/// Two endpoints that talk while the input drops, doubles, swaps and spoils their packets, and lets
/// time pass. What one hears is always the beginning of what the other said.
pub fn conversation(bytes: &[u8]) {
    let mut now = Time::from_millis(1);
    let (mut client, mut server) = (Side::new(1), Side::new(2));
    let options = ListenOptions { admit, ..ListenOptions::default() };
    let Ok(listener) = server.endpoint.listen(socket(1, 443), options) else { return };
    let with_data = bytes.first().is_some_and(|first| first % 2 == 1);
    if with_data {
        client.written = (0..700).map(|at: usize| (at * 31 % 251) as u8).collect();
    }
    let options = ConnectOptions {
        syn_data: client.written.clone(),
        if_refused: IfRefused::Resend,
        ..ConnectOptions::default()
    };
    client.id = client.endpoint.connect(now, socket(2, 0), socket(1, 443), options).ok();
    for step in bytes {
        exchange(&mut client, &mut server, now);
        take_in(&mut server, listener);
        act(*step, &mut now, &mut client, &mut server);
        for side in [&mut client, &mut server] {
            if side.endpoint.next_timeout().is_some_and(|at| at <= now) {
                side.endpoint.handle_timeout(now);
            }
            side.hear(now);
        }
        assert!(client.written.starts_with(&server.read), "the server heard what was not said");
        assert!(server.written.starts_with(&client.read), "the client heard what was not said");
    }
}

fn exchange(client: &mut Side, server: &mut Side, now: Time) {
    drain(&mut client.endpoint, now, |packet| server.inbox.push_back((false, packet.to_vec())));
    drain(&mut server.endpoint, now, |packet| client.inbox.push_back((false, packet.to_vec())));
    for side in [client, server] {
        side.inbox.truncate(256);
    }
}

fn take_in(server: &mut Side, listener: ListenerId) {
    if server.id.is_none() {
        server.id = server.endpoint.accept(listener);
    }
}

fn act(step: u8, now: &mut Time, client: &mut Side, server: &mut Side) {
    let (side, amount) = (step & 1, usize::from(step >> 4));
    let side = if side == 0 { client } else { server };
    match (step >> 1) & 7 {
        0 | 1 => {
            if let Some((_, packet)) = side.inbox.pop_front() {
                let _ = side.endpoint.handle_packet(*now, &packet, Checksum::Verify);
            }
        }
        2 => drop(side.inbox.pop_front()),
        3 => {
            if let Some(packet) = side.inbox.front().cloned() {
                side.inbox.push_back(packet);
            }
        }
        4 => {
            if let Some((spoilt @ false, packet)) = side.inbox.front_mut() {
                *spoilt = true;
                let at = amount * packet.len() / 16;
                if let Some(byte) = packet.get_mut(at) {
                    *byte ^= 1 << (amount % 8);
                }
            }
        }
        5 => *now += Duration::from_millis(1 << amount.min(12)),
        6 => side.say(*now, 1 + amount * 200),
        _ => {
            if let Some(id) = side.id {
                match amount {
                    0 => side.endpoint.shutdown(*now, id),
                    1 => side.endpoint.abort(*now, id),
                    _ => side.endpoint.answer(*now, id),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_packets_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::packets(&bytes);
        }

        #[test]
        fn a_spoilt_conversation_stays_true(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            super::conversation(&bytes);
        }
    }
}
