//! Sessions joined in memory, without IO: small requests answered by a server, and bulk data.

// The library takes its time as an argument; a measurement has none but the clock's.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spdy::{Config, Event, FlowControl, Headers, Priority, Role, Session, Version};
use units::Time;

/// Requests that are on the way together.
const BATCH: usize = 50;
/// The body of a small response, in bytes.
const SMALL: usize = 100;
/// Bytes that a bulk iteration moves.
const BULK: usize = 4 << 20;
/// Bytes that are carried at once: a TLS record.
const RECORD: usize = 16 << 10;

struct Two {
    client: Session,
    server: Session,
    /// Time in the server, and frames that it took and made.
    serving: Duration,
    request: Headers,
    reply: Headers,
    body: Bytes,
}

impl Two {
    fn new(body: usize) -> Two {
        let config = Config { flow: FlowControl::OFF, send_queue: 64 << 10, ..Config::default() };
        let request = Headers::from_pairs([
            (":method", "GET"),
            (":path", "/images/logo-42.png"),
            (":version", "HTTP/1.1"),
            (":host", "www.example.org"),
            (":scheme", "https"),
            ("accept", "image/png,image/*;q=0.8"),
            ("accept-encoding", "gzip,deflate,sdch"),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ]);
        let reply = Headers::from_pairs([
            (":status", "200 OK"),
            (":version", "HTTP/1.1"),
            ("content-type", "image/png"),
            ("content-length", "100"),
        ]);
        let session = |role| Session::new(role, Version::V3_1, config.clone()).expect("a session");
        Two {
            client: session(Role::Client),
            server: session(Role::Server),
            serving: Duration::ZERO,
            request: request.expect("headers"),
            reply: reply.expect("headers"),
            body: Bytes::from(vec![7; body]),
        }
    }

    /// A batch of requests, and their responses whole at the client.
    fn requests(&mut self, count: usize) {
        for _ in 0..count {
            self.client.open(&self.request, Priority::HIGHEST, true).expect("a stream");
        }
        let mut rest: Vec<(spdy::StreamId, Bytes)> = Vec::new();
        let mut ended = 0;
        while ended < count {
            let mut up = Vec::new();
            self.client.write_to(&mut up, RECORD);
            let began = Instant::now();
            self.server.receive(Bytes::from(up));
            while let Some(event) = self.server.poll_event(Time::ZERO) {
                if let Event::Opened { stream, .. } = event {
                    self.server.reply(stream, &self.reply, false).expect("a reply");
                    rest.push((stream, self.body.clone()));
                }
            }
            for (stream, body) in &mut rest {
                self.server.write(*stream, body, true).expect("an open stream");
            }
            rest.retain(|(_, body)| !body.is_empty());
            let mut down = Vec::with_capacity(RECORD);
            self.server.write_to(&mut down, RECORD);
            self.serving += began.elapsed();
            self.client.receive(Bytes::from(down));
            while let Some(event) = self.client.poll_event(Time::ZERO) {
                if let Event::Data { stream, data, fin } = event {
                    self.client.consume(stream, data.len());
                    ended += usize::from(fin);
                    black_box(data);
                }
            }
        }
    }

    /// Time in the server for each frame that it took or made.
    fn report(&self, name: &str) {
        let counters = self.server.counters();
        let frames = [counters.sent, counters.received]
            .map(|traffic| traffic.data_frames + traffic.control_frames)
            .iter()
            .sum::<u64>();
        let each = self.serving.as_nanos() as f64 / frames.max(1) as f64;
        println!("{name}: {each:.0} ns of the server's a frame ({frames} frames)");
    }
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("spdy session");
    group.sample_size(20);
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut two = Two::new(SMALL);
    group.bench_function("small requests, both sides", |bencher| {
        bencher.iter(|| two.requests(BATCH));
    });
    two.report("small requests");
    group.throughput(Throughput::Bytes(BULK as u64));
    let mut two = Two::new(BULK);
    group.bench_function("bulk, both sides", |bencher| {
        bencher.iter(|| two.requests(1));
    });
    two.report("bulk");
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
