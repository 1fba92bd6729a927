//! Frames per second through the model: a plain delay, a rate with CoDel, a trace.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use linkmodel::{Frame, Link, LinkConfig, Profile};
use units::Time;

/// Frames of one iteration.
const FRAMES: u64 = 10_000;

/// A frame of 1514 bytes that is only a number, so that the model alone is measured.
struct Token(u64);

impl Frame for Token {
    fn len(&self) -> usize {
        1514
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Token(self.0))
    }

    fn flip_bit(&mut self, bit: usize) {
        self.0 ^= 1 << (bit % 64);
    }
}

/// Sends a frame each `gap` and polls whenever one enters, as a busy pump does.
fn send(link: &mut Link<Token>, now: &mut Time, gap: Duration) {
    for number in 0..FRAMES {
        *now += gap;
        let _refused = black_box(link.handle_frame(*now, Token(number)));
        black_box(link.next_event());
        while let Some(output) = link.poll(*now) {
            black_box(output);
        }
    }
}

fn config(text: &str) -> LinkConfig {
    let profile = Profile::parse(&format!("[forward]\n{text}"));
    profile.unwrap_or_else(|error| panic!("{text}: {error}")).path.forward
}

fn bench(criterion: &mut Criterion) {
    // One frame each microsecond, and links that carry them all.
    let millisecond = ["1"; 1000].join(", ");
    let trace = format!("delay = \"10ms\"\nrate = {{ trace = [{millisecond}] }}");
    let trace = format!("{trace}\nqueue = {{ packets = 5000 }}");
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(FRAMES));
    for (name, text) in [
        ("delay", "delay = \"10ms\""),
        ("loss and jitter", "delay = \"10ms\"\nloss = \"1%\"\njitter = { normal = \"1ms\" }"),
        ("rate and CoDel", "delay = \"10ms\"\nrate = \"13gbit\"\nqueue = { codel = {} }"),
        ("trace", &trace),
    ] {
        let mut link = Link::new(config(text), 1).expect("the configuration is valid");
        let mut now = Time::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| send(&mut link, &mut now, Duration::from_micros(1)));
        });
        assert_eq!(link.counters().dropped.queue_full.frames, 0, "{name} cannot carry the load");
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
