//! Two endpoints joined by nothing but time.

use std::net::SocketAddr;
use std::time::Duration;

use units::Time;

use crate::*;

/// One way takes so long.
const HALF: Duration = Duration::from_millis(10);

struct Pair {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    /// Arrival, whether for the server, packet.
    wire: Vec<(Time, bool, Vec<u8>)>,
    /// How each packet looked, when it was sent.
    log: Vec<String>,
    /// Drops the n-th packets sent, counted from 0.
    drop: Vec<usize>,
    sent: usize,
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn server_address() -> SocketAddr {
    address("192.0.2.1:443")
}

fn everything(_: &SynWithData<'_>) -> bool {
    true
}

impl Pair {
    fn new(client: Config, server: Config) -> Self {
        Pair {
            now: Time::from_millis(1000),
            client: Endpoint::new(client, [1; 32]),
            server: Endpoint::new(server, [2; 32]),
            wire: Vec::new(),
            log: Vec::new(),
            drop: Vec::new(),
            sent: 0,
        }
    }

    fn flush(&mut self) {
        let mut buffer = vec![0; 65_536];
        for from_client in [true, false] {
            let endpoint = if from_client { &mut self.client } else { &mut self.server };
            while let Some(transmit) = endpoint.poll_transmit(self.now, &mut buffer) {
                let packet = buffer[..transmit.len].to_vec();
                self.log.push(show(self.now, from_client, &packet));
                if !self.drop.contains(&self.sent) {
                    self.wire.push((self.now + HALF, from_client, packet));
                }
                self.sent += 1;
            }
        }
    }

    /// Runs until `end`; `act` may act whenever something happened.
    fn run(&mut self, end: u64, mut act: impl FnMut(&mut Pair)) {
        let end = Time::from_millis(end);
        loop {
            act(self);
            self.flush();
            let arrival = self.wire.iter().map(|(at, ..)| *at).min();
            let timers = [self.client.next_timeout(), self.server.next_timeout(), arrival];
            let Some(next) = timers.into_iter().flatten().min().filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(place) = self.wire.iter().position(|(at, ..)| *at <= now) {
                let (_, to_server, packet) = self.wire.remove(place);
                let endpoint = if to_server { &mut self.server } else { &mut self.client };
                let _ = endpoint.handle_packet(now, &packet, Checksum::Verify);
            }
            for endpoint in [&mut self.client, &mut self.server] {
                if endpoint.next_timeout().is_some_and(|at| at <= now) {
                    endpoint.handle_timeout(now);
                }
            }
        }
    }

    fn connect(&mut self, options: ConnectOptions) -> ConnectionId {
        let now = self.now;
        self.client.connect(now, address("198.51.100.7:0"), server_address(), options).unwrap()
    }

    fn listen(&mut self, options: ListenOptions) -> ListenerId {
        self.server.listen(server_address(), options).unwrap()
    }
}

/// Time in milliseconds, direction, flags, sequence numbers relative to nothing, payload length.
fn show(now: Time, from_client: bool, packet: &[u8]) -> String {
    let ip = wire::ipv4::Packet::new_checked(packet).unwrap();
    assert!(ip.checksum_ok());
    let tcp = wire::tcp::Segment::new_checked(ip.payload()).unwrap();
    assert!(tcp.checksum_ok(ip.source().into(), ip.destination().into()));
    let flags = [(0x02, "S"), (0x01, "F"), (0x04, "R"), (0x08, "P"), (0x10, ".")];
    let flags: String =
        flags.iter().filter(|(bit, _)| tcp.flags().0 & bit != 0).map(|(_, name)| *name).collect();
    let direction = if from_client { '>' } else { '<' };
    format!("{} {direction} {flags} {}", now.as_nanos() / 1_000_000, tcp.payload().len())
}

fn read_all(endpoint: &mut Endpoint, now: Time, id: ConnectionId, into: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = endpoint.read(now, id, &mut buffer) {
        into.extend_from_slice(&buffer[..count]);
    }
}

#[test]
fn an_ordinary_connection_opens_carries_data_and_closes() {
    let mut pair = Pair::new(Config::default(), Config::default());
    let listener = pair.listen(ListenOptions::default());
    let client = pair.connect(ConnectOptions::default());
    let mut server = None;
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let data: Vec<u8> = (0..100_000u32).map(|n| (n / 7) as u8).collect();
    let mut written = 0;
    let mut closed = false;
    pair.run(10_000, |pair| {
        let now = pair.now;
        server = server.or_else(|| pair.server.accept(listener));
        if written < data.len() {
            written += pair.client.write(now, client, &data[written..]).unwrap_or(0);
        }
        if let Some(server) = server {
            read_all(&mut pair.server, now, server, &mut there);
            if there.len() == data.len() && !closed {
                closed = true;
                pair.server.write(now, server, b"thanks").unwrap();
                pair.server.shutdown(now, server);
            }
        }
        read_all(&mut pair.client, now, client, &mut back);
        if back.len() == 6 {
            pair.client.shutdown(now, client);
        }
    });
    assert_eq!(there, data);
    assert_eq!(back, b"thanks");
    assert_eq!(pair.log[..3], ["1000 > S 0", "1010 < S. 0", "1020 > . 1448"], "{:#?}", pair.log);
    let info = pair.client.info(client).unwrap();
    assert_eq!(info.retransmissions, 0);
    pair.client.release(pair.now, client);
    pair.server.release(pair.now, server.unwrap());
    pair.run(
        200_000,
        |pair| while pair.client.poll_event().or(pair.server.poll_event()).is_some() {},
    );
    assert!(pair.client.is_idle() && pair.server.is_idle());
}

#[test]
fn a_handshake_with_data_brings_the_answer_after_one_round_trip() {
    let mut pair = Pair::new(Config::default(), Config::default());
    let listener = pair.listen(ListenOptions { admit: everything, ..ListenOptions::default() });
    let client = pair.connect(ConnectOptions {
        syn_data: vec![b'h'; 1200],
        if_refused: IfRefused::Withdraw,
        ..ConnectOptions::default()
    });
    let (mut server, mut there, mut back) = (None, Vec::new(), Vec::new());
    let mut replied = false;
    pair.run(1500, |pair| {
        let now = pair.now;
        if server.is_none()
            && let Some(id) = pair.server.accept(listener)
        {
            server = Some(id);
            read_all(&mut pair.server, now, id, &mut there);
            assert_eq!(there.len(), 1200);
            pair.server.write(now, id, &[b's'; 3000]).unwrap();
            pair.server.answer(now, id);
        }
        read_all(&mut pair.client, now, client, &mut back);
        if back.len() == 3000 && !replied {
            replied = true;
            pair.client.write(now, client, b"finished, request").unwrap();
        }
        if let Some(server) = server {
            read_all(&mut pair.server, now, server, &mut there);
        }
    });
    assert_eq!(there.len(), 1217);
    assert_eq!(back, [b's'; 3000]);
    assert_eq!(
        pair.log,
        [
            "1000 > S 1200",
            "1010 < S. 1440",
            "1010 < . 1448",
            "1010 < P. 112",
            "1020 > P. 17",
            "1030 < . 0"
        ],
    );
    let info = pair.client.info(client).unwrap();
    assert_eq!(
        (info.syn_data, info.syn_bytes, info.syn_ack_bytes),
        (SynData::Accepted, 1200, 1440)
    );
}

#[test]
fn refused_data_are_withdrawn_and_the_stream_begins_anew() {
    let mut pair = Pair::new(Config::default(), Config::default());
    let listener = pair.listen(ListenOptions::default());
    let client = pair.connect(ConnectOptions {
        syn_data: vec![b'x'; 500],
        if_refused: IfRefused::Withdraw,
        ..ConnectOptions::default()
    });
    let (mut server, mut there, mut written) = (None, Vec::new(), false);
    pair.run(1500, |pair| {
        let now = pair.now;
        while let Some(event) = pair.client.poll_event() {
            if event.kind == EventKind::SynDataRefused {
                assert!(!written);
                written = true;
                pair.client.write(now, client, b"anew").unwrap();
            }
        }
        server = server.or_else(|| pair.server.accept(listener));
        if let Some(server) = server {
            read_all(&mut pair.server, now, server, &mut there);
        }
    });
    assert_eq!(there, b"anew");
    assert_eq!(pair.log[..3], ["1000 > S 500", "1010 < S. 0", "1020 > P. 4"]);
    assert_eq!(pair.client.info(client).unwrap().syn_data, SynData::Refused);
}

#[test]
fn a_lost_syn_with_data_is_followed_by_a_bare_one() {
    let mut pair = Pair::new(Config::default(), Config::default());
    pair.drop = vec![0];
    let listener = pair.listen(ListenOptions { admit: everything, ..ListenOptions::default() });
    let with_data = || ConnectOptions { syn_data: vec![b'x'; 500], ..ConnectOptions::default() };
    let client = pair.connect(with_data());
    let (mut server, mut there) = (None, Vec::new());
    pair.run(3000, |pair| {
        let now = pair.now;
        server = server.or_else(|| pair.server.accept(listener));
        if let Some(server) = server {
            read_all(&mut pair.server, now, server, &mut there);
        }
    });
    assert_eq!(there, [b'x'; 500]);
    assert_eq!(pair.log[..4], ["1000 > S 500", "2000 > S 0", "2010 < S. 0", "2020 > P. 500"]);
    assert_eq!(pair.client.info(client).unwrap().syn_data, SynData::Refused);
    let again = pair.connect(with_data());
    assert_eq!(pair.client.info(again).unwrap().syn_data, SynData::BlackHole);
}

#[test]
fn nobody_there_is_refused() {
    let mut pair = Pair::new(Config::default(), Config::default());
    let client = pair.connect(ConnectOptions::default());
    let mut reason = None;
    pair.run(1100, |pair| {
        while let Some(event) = pair.client.poll_event() {
            if let EventKind::Closed(why) = event.kind {
                reason = Some(why);
            }
        }
    });
    assert_eq!(reason, Some(CloseReason::Refused));
    assert_eq!(pair.log, ["1000 > S 0", "1010 < R. 0"]);
    assert!(pair.client.info(client).is_some());
}

/// When two million bytes have arrived that the client wrote whenever it was told that it may, and the most
/// that it had written and not yet sent.
fn carried(send_ahead: Option<usize>) -> (Time, u64) {
    let config = Config { send_ahead, ..Config::default() };
    let mut pair = Pair::new(config, Config::default());
    let listener = pair.listen(ListenOptions::default());
    let client = pair.connect(ConnectOptions::default());
    let data = vec![7; 2_000_000];
    let (mut server, mut there, mut written, mut most) = (None, Vec::new(), 0, 0);
    let (mut may_write, mut ended) = (true, None);
    pair.run(9000, |pair| {
        let now = pair.now;
        server = server.or_else(|| pair.server.accept(listener));
        if let Some(server) = server {
            read_all(&mut pair.server, now, server, &mut there);
        }
        if there.len() == data.len() {
            ended.get_or_insert(now);
        }
        loop {
            while let Some(event) = pair.client.poll_event() {
                may_write |= matches!(event.kind, EventKind::Connected | EventKind::Writable);
            }
            if !std::mem::take(&mut may_write) || written == data.len() {
                return;
            }
            while let Ok(count) = pair.client.write(now, client, &data[written..])
                && count > 0
            {
                written += count;
            }
            pair.flush();
            let info = pair.client.info(client).unwrap();
            most = most.max(written as u64 - info.bytes_acked - info.in_flight);
        }
    });
    (ended.unwrap(), most)
}

#[test]
fn little_is_written_ahead_and_nothing_comes_later_for_it() {
    let (at, most) = carried(None);
    assert!(most > 1_000_000, "{most}");
    let (ahead_at, ahead) = carried(Some(16 << 10));
    assert!(ahead_at <= at, "{ahead_at:?} {at:?}");
    assert!(ahead <= 300_000, "{ahead}");
}
