//! How long a packet of an established connection takes among 10,000 others, small and full-size,
//! with records given out at the end and after the handshake; and how long handshakes take.
//!
//! The packet's bytes are in a buffer that is used again and again, as whoever reads a capture has
//! it: the time to read them is another's. Measured is the thread's own time on the processor, so
//! that others on the machine disturb less.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use tracker::{HandOut, Limits, LinkType, Packet, Tracker};
use units::Time;

/// The thread's time on the processor.
struct OwnTime;

fn own_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

impl Measurement for OwnTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        own_time()
    }
    fn end(&self, start: Duration) -> Duration {
        own_time() - start
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

const CONNECTIONS: usize = 10_000;

/// Frames of the handshake and the first data of `tls1.2.pcap`, before its end.
const OPENING: usize = 19;

/// Room for many more than there are.
fn limits(hand_out: HandOut) -> Limits {
    Limits { connections: 2_000_000, hand_out, ..Limits::default() }
}

/// A frame as between another client and the same server.
fn between(frame: &[u8], client: usize, from_client: bool) -> Vec<u8> {
    let mut out = frame.to_vec();
    let address = (10u32 << 24 | client as u32).to_be_bytes();
    let at = if from_client { 26 } else { 30 };
    out[at..at + 4].copy_from_slice(&address);
    out
}

/// Bytes of an Ethernet, IPv4 and TCP header.
const HEADERS: usize = 54;

struct Load {
    opening: Vec<crate::common::Frame>,
    /// Headers of packets up and down, connection after connection.
    headers: Vec<[u8; HEADERS]>,
}

fn load(connections: usize) -> Load {
    let opening: Vec<_> = crate::common::frames("tls1.2.pcap").into_iter().take(OPENING).collect();
    let client = opening[0].1[26..30].to_vec();
    let is_up = |frame: &[u8]| frame[26..30] == client[..];
    let up = opening.iter().rev().find(|frame| is_up(&frame.1)).expect("a frame up").1.clone();
    let down = opening.iter().rev().find(|frame| !is_up(&frame.1)).expect("a frame down").1.clone();
    let mut headers = Vec::new();
    // A stride that is prime to the number visits every connection, never neighbours in turn.
    for step in 0..connections {
        let number = step * 7919 % connections;
        for (frame, from_client) in [(&up, true), (&down, false)] {
            let mut frame = between(&frame[..HEADERS], number, from_client);
            // Without options.
            frame[46] = 0x50;
            headers.push(frame.try_into().expect("the headers"));
        }
    }
    Load { opening, headers }
}

fn drain(tracker: &mut Tracker) {
    while tracker.poll_output().is_some() {}
}

fn open(load: &Load, connections: usize, hand_out: HandOut) -> (Tracker, Time) {
    let client = load.opening[0].1[26..30].to_vec();
    let mut tracker = Tracker::new(limits(hand_out));
    let mut at = Time::ZERO;
    for number in 0..connections {
        for (_, frame, len) in &load.opening {
            at += Duration::from_nanos(300);
            let frame = between(frame, number, frame[26..30] == client[..]);
            tracker.handle_packet(at, LinkType::Ethernet, &frame, *len);
        }
        drain(&mut tracker);
    }
    (tracker, at)
}

fn established(criterion: &mut Criterion<OwnTime>) {
    let load = load(CONNECTIONS);
    for (mode, hand_out) in
        [("at_end", HandOut::AtEnd), ("after_handshake", HandOut::AfterHandshake)]
    {
        let (mut tracker, mut at) = open(&load, CONNECTIONS, hand_out);
        let mut group = criterion.benchmark_group(format!("established/{mode}"));
        group.sample_size(15).measurement_time(Duration::from_secs(2));
        group.warm_up_time(Duration::from_millis(500));
        for (name, len) in [("small", HEADERS), ("full", 1514)] {
            let mut frame = vec![0; len];
            group.throughput(Throughput::Elements(load.headers.len() as u64));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    for header in &load.headers {
                        at += Duration::from_nanos(300);
                        frame[..HEADERS].copy_from_slice(header);
                        frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
                        tracker.handle_packet(at, LinkType::Ethernet, black_box(&frame), len);
                    }
                });
            });
            // Frames together, as a reader's buffer has them.
            let mut frames = vec![frame; 64];
            group.bench_function(format!("{name}_together"), |bencher| {
                bencher.iter(|| {
                    for headers in load.headers.chunks(64) {
                        for (frame, header) in frames.iter_mut().zip(headers) {
                            frame[..HEADERS].copy_from_slice(header);
                            frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
                        }
                        let link_type = LinkType::Ethernet;
                        let packets: [Packet<'_>; 64] = std::array::from_fn(|number| {
                            at += Duration::from_nanos(300);
                            Packet { at, link_type, bytes: &frames[number], original_len: len }
                        });
                        tracker.handle_packets(black_box(&packets[..headers.len()]));
                    }
                });
            });
            assert_eq!((tracker.counters().other, tracker.counters().stray), (0, 0));
            assert_eq!(tracker.active(), CONNECTIONS);
        }
        group.finish();
    }
}

fn handshakes(criterion: &mut Criterion<OwnTime>) {
    let load = load(1);
    let client = load.opening[0].1[26..30].to_vec();
    let mut frames = Vec::new();
    for number in 0..1000 {
        for (_, frame, len) in &load.opening {
            frames.push((between(frame, number, frame[26..30] == client[..]), *len));
        }
    }
    for (mode, hand_out) in
        [("at_end", HandOut::AtEnd), ("after_handshake", HandOut::AfterHandshake)]
    {
        let mut group = criterion.benchmark_group(format!("handshakes/{mode}"));
        group.sample_size(15).measurement_time(Duration::from_secs(2));
        group.warm_up_time(Duration::from_millis(500));
        group.throughput(Throughput::Elements(frames.len() as u64));
        group.bench_function("tls1.2", |bencher| {
            bencher.iter_batched(
                || Tracker::new(limits(hand_out)),
                |mut tracker| {
                    let mut at = Time::ZERO;
                    for (frame, len) in &frames {
                        at += Duration::from_nanos(300);
                        tracker.handle_packet(at, LinkType::Ethernet, black_box(frame), *len);
                        drain(&mut tracker);
                    }
                    tracker
                },
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OwnTime);
    targets = established, handshakes
}
