//! How fast the tracker takes frames: a capture of two TLS connections, from memory.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group};
use tracker::{Limits, LinkType, Tracker};

/// Times the capture is repeated in one tracker, each time between other ports.
const COPIES: u16 = 200;

fn handle_packet(criterion: &mut Criterion) {
    for name in ["tls-13draft19-early-data.pcap", "tls1.2.pcap"] {
        let original = crate::common::frames(name);
        let mut frames = Vec::new();
        for copy in 0..COPIES {
            for (at, bytes, len) in &original {
                let mut bytes = bytes.clone();
                // The client's port stands at 34 in frames up, at 36 in frames down.
                let server_first = bytes[34..36] < bytes[36..38];
                let port = if server_first { 36 } else { 34 };
                let client = u16::from_be_bytes([bytes[port], bytes[port + 1]]);
                let client = client.wrapping_sub(copy * 10).to_be_bytes();
                bytes[port..port + 2].copy_from_slice(&client);
                frames.push((*at + Duration::from_secs(u64::from(copy)), bytes, *len));
            }
        }
        let mut group = criterion.benchmark_group("handle_packet");
        group.sample_size(20).measurement_time(Duration::from_secs(3));
        group.throughput(Throughput::Elements(frames.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut tracker = Tracker::new(Limits::default());
                let mut connections = 0;
                for (at, bytes, len) in &frames {
                    tracker.handle_packet(*at, LinkType::Ethernet, black_box(bytes), *len);
                    while tracker.poll_connection().is_some() {
                        connections += 1;
                    }
                }
                connections + tracker.finish().len()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, handle_packet);
