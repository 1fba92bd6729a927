//! How long a packet of an established connection takes among 10,000 others, small and full-size,
//! with records given out at the end and after the handshake; and how long handshakes take.
#![allow(missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use observe::{HandOut, Limits, LinkType, Tracker};
use units::Time;

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

/// A full-size frame with the headers of another.
fn filled(frame: &[u8]) -> Vec<u8> {
    let mut out = frame.to_vec();
    out.resize(1514, 0);
    out[16..18].copy_from_slice(&1500u16.to_be_bytes());
    out
}

struct Load {
    opening: Vec<common::Frame>,
    small: Vec<Vec<u8>>,
    full: Vec<Vec<u8>>,
}

fn load(connections: usize) -> Load {
    let opening: Vec<_> = common::frames("tls1.2.pcap").into_iter().take(OPENING).collect();
    let client = opening[0].1[26..30].to_vec();
    let is_up = |frame: &[u8]| frame[26..30] == client[..];
    let up = opening.iter().rev().find(|frame| is_up(&frame.1)).expect("a frame up").1.clone();
    let down = opening.iter().rev().find(|frame| !is_up(&frame.1)).expect("a frame down").1.clone();
    let ack = |frame: &[u8]| {
        let mut out = frame[..54].to_vec();
        out[16..18].copy_from_slice(&40u16.to_be_bytes());
        out
    };
    let (mut small, mut full) = (Vec::new(), Vec::new());
    // A stride that is prime to the number visits every connection, never neighbours in turn.
    for step in 0..connections {
        let number = step * 7919 % connections;
        small.push(between(&ack(&up), number, true));
        small.push(between(&ack(&down), number, false));
        full.push(between(&filled(&up), number, true));
        full.push(between(&filled(&down), number, false));
    }
    Load { opening, small, full }
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

fn established(criterion: &mut Criterion) {
    let load = load(CONNECTIONS);
    for (mode, hand_out) in
        [("at_end", HandOut::AtEnd), ("after_handshake", HandOut::AfterHandshake)]
    {
        let (mut tracker, mut at) = open(&load, CONNECTIONS, hand_out);
        let mut group = criterion.benchmark_group(format!("established/{mode}"));
        group.sample_size(15).measurement_time(Duration::from_secs(2));
        group.warm_up_time(Duration::from_millis(500));
        for (name, frames) in [("small", &load.small), ("full", &load.full)] {
            group.throughput(Throughput::Elements(frames.len() as u64));
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    for frame in frames {
                        at += Duration::from_nanos(300);
                        let len = frame.len();
                        tracker.handle_packet(at, LinkType::Ethernet, black_box(frame), len);
                    }
                });
            });
        }
        group.finish();
    }
}

fn handshakes(criterion: &mut Criterion) {
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

criterion_group!(benches, established, handshakes);
criterion_main!(benches);
