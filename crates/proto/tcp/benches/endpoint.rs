//! Two endpoints joined in memory, without IO: segments a second out and in, and handshakes with a
//! scripted engine in TLS's place.

// The library takes its time as an argument; a measurement has none but the clock's.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tcp::{
    Checksum, Config, ConnectOptions, ConnectionId, Endpoint, EventKind, ListenOptions, ListenerId,
    SynWithData,
};
use units::Time;

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 0);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 7000);
/// Packets that are on the way together.
const BATCH: usize = 64;
/// Room for the longest packet.
const SLOT: usize = 65_535;
/// Bytes that a bulk iteration moves.
const BULK: usize = 4 << 20;
/// The time that one batch takes.
const STEP: Duration = Duration::from_micros(50);

/// A client, a server, and what is on the way from one to the other.
struct Two {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    listener: ListenerId,
    slots: Vec<u8>,
    lens: Vec<usize>,
    /// Time spent in making and in taking packets, and their number.
    out: Duration,
    taking: Duration,
    packets: u64,
}

fn admit(_: &SynWithData<'_>) -> bool {
    true
}

impl Two {
    fn new(config: &Config) -> Two {
        let mut server = Endpoint::new(config.clone(), [2; 32]);
        let options = ListenOptions { admit, ..ListenOptions::default() };
        let listener = server.listen(SERVER, options).expect("a listener");
        Two {
            now: Time::ZERO + Duration::from_secs(1),
            client: Endpoint::new(config.clone(), [1; 32]),
            server,
            listener,
            slots: vec![0; BATCH * SLOT],
            lens: Vec::with_capacity(BATCH),
            out: Duration::ZERO,
            taking: Duration::ZERO,
            packets: 0,
        }
    }

    /// Moves a batch from one side to the other; how many packets that was.
    fn carry(&mut self, from_client: bool, checksum: Checksum) -> usize {
        let (from, to) = match from_client {
            true => (&mut self.client, &mut self.server),
            false => (&mut self.server, &mut self.client),
        };
        self.lens.clear();
        let began = Instant::now();
        for slot in self.slots.chunks_exact_mut(SLOT) {
            let Some(sent) = from.poll_transmit(self.now, slot) else { break };
            self.lens.push(sent.len);
        }
        let made = Instant::now();
        for (slot, len) in self.slots.chunks_exact(SLOT).zip(&self.lens) {
            // A packet of a connection that has just been aborted is no matter.
            let _ = black_box(to.handle_packet(self.now, &slot[..*len], checksum));
        }
        self.out += made - began;
        self.taking += made.elapsed();
        self.packets += self.lens.len() as u64;
        self.lens.len()
    }

    /// Moves packets until neither side has any.
    fn settle(&mut self) {
        while self.carry(true, Checksum::Verify) + self.carry(false, Checksum::Verify) > 0 {}
    }

    fn connect(&mut self, syn_data: Vec<u8>) -> ConnectionId {
        let options = ConnectOptions { syn_data, ..ConnectOptions::default() };
        self.client.connect(self.now, CLIENT, SERVER, options).expect("a connection")
    }

    fn pass_time(&mut self) {
        self.now += STEP;
        for side in [&mut self.client, &mut self.server] {
            if side.next_timeout().is_some_and(|at| at <= self.now) {
                side.handle_timeout(self.now);
            }
            while let Some(event) = side.poll_event() {
                if let EventKind::Closed(reason) = event.kind {
                    black_box(reason);
                }
            }
        }
    }
}

/// A connection that is established.
fn established(config: &Config) -> (Two, ConnectionId, ConnectionId) {
    let mut two = Two::new(config);
    let client = two.connect(Vec::new());
    two.settle();
    two.pass_time();
    let server = two.server.accept(two.listener).expect("the server's end");
    (two, client, server)
}

/// Moves [`BULK`] bytes from the client to the server.
fn bulk(two: &mut Two, from: ConnectionId, to: ConnectionId, checksum: Checksum) {
    let (data, mut buffer) = (vec![7; 256 << 10], vec![0; 256 << 10]);
    let (mut written, mut read) = (0, 0);
    while read < BULK {
        let room = (BULK - written).min(data.len());
        if let Ok(count) = two.client.write(two.now, from, &data[..room]) {
            written += count;
        }
        two.carry(true, checksum);
        while let Ok(count @ 1..) = two.server.read(two.now, to, &mut buffer) {
            read += count;
        }
        two.carry(false, checksum);
        two.pass_time();
    }
}

/// One handshake: 1200 bytes on the SYN, 3000 from the server, 80 from the client, then a reset.
fn handshake(two: &mut Two, hello: &[u8], buffer: &mut [u8]) {
    let client = two.connect(hello.to_vec());
    two.carry(true, Checksum::Verify);
    let server = two.server.accept(two.listener).expect("a SYN with data");
    let got = two.server.read(two.now, server, buffer).expect("the hello");
    assert_eq!(got, hello.len());
    two.server.write(two.now, server, &[2; 3000]).expect("room for the flight");
    two.server.answer(two.now, server);
    two.carry(false, Checksum::Verify);
    let got = two.client.read(two.now, client, buffer).expect("the flight");
    two.client.write(two.now, client, &[3; 80]).expect("room for the last words");
    two.settle();
    let more = two.client.read(two.now, client, buffer).unwrap_or(0);
    assert_eq!(got + more, 3000);
    assert_eq!(two.server.read(two.now, server, buffer), Ok(80));
    two.client.abort(two.now, client);
    two.settle();
    two.client.release(two.now, client);
    two.server.release(two.now, server);
    two.pass_time();
}

fn bench(criterion: &mut Criterion) {
    let plain = Config::default();
    let long = Config { max_super_segment: SLOT, ..Config::default() };
    let mut group = criterion.benchmark_group("bulk in memory");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(BULK as u64));
    for (name, config, checksum) in [
        ("1500-byte packets, checksums verified", &plain, Checksum::Verify),
        ("super-segments, checksums trusted", &long, Checksum::Trusted),
    ] {
        let (mut two, from, to) = established(config);
        group.bench_function(name, |bencher| {
            bencher.iter(|| bulk(&mut two, from, to, checksum));
        });
        let each = |time: Duration| time.as_nanos() as f64 / two.packets.max(1) as f64;
        println!(
            "{name}: {:.0} ns a packet to make, {:.0} ns to take ({} packets, acknowledgments too)",
            each(two.out),
            each(two.taking),
            two.packets
        );
    }
    group.finish();

    let mut group = criterion.benchmark_group("handshake");
    group.throughput(Throughput::Elements(1));
    let mut two = Two::new(&plain);
    let (hello, mut buffer) = (vec![1; 1200], vec![0; 8192]);
    group.bench_function("scripted engine, both sides", |bencher| {
        bencher.iter(|| handshake(&mut two, &hello, &mut buffer));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
