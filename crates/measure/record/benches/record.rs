//! Appending and reading samples.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use record::{Manifest, Outcome, Recorder, Run, Sample, Session};

fn sample(repeat: u32) -> Sample {
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    Sample {
        study: "handshake".into(),
        point: text(&[("mode", "tls13"), ("rtt", "20ms"), ("loss", "0"), ("library", "rustls")]),
        repeat,
        seed: u64::from(repeat),
        at_unix_ms: 1_750_000_000_000,
        outcome: Outcome::Completed,
        values: ["ready_ms", "think_ms", "first_byte_ms", "up_bytes", "down_bytes", "cpu_ms"]
            .map(|name| (name.to_owned(), 40.123_456_789 + f64::from(repeat)))
            .into(),
        labels: text(&[("cipher_suite", "TLS13_AES_128_GCM_SHA256"), ("group", "X25519")]),
        attachments: Vec::new(),
        command: "wiretax handshake --rtt 20ms --mode tls13 --repeat 1 --seed 7".into(),
    }
}

fn manifest() -> Manifest {
    Manifest::new(serde_json::Value::Null, Session::begin(false))
}

fn benchmarks(criterion: &mut Criterion) {
    const COUNT: u32 = 10_000;
    let root = tempfile::tempdir().expect("a temporary folder");
    let mut group = criterion.benchmark_group("record");
    group.sample_size(10).measurement_time(std::time::Duration::from_secs(2));
    group.throughput(Throughput::Elements(u64::from(COUNT)));
    let mut folder = 0;
    group.bench_function("append", |bencher| {
        bencher.iter_batched(
            || {
                folder += 1;
                Recorder::create(root.path().join(folder.to_string()), manifest())
                    .expect("a recorder")
            },
            |mut recorder| {
                for repeat in 0..COUNT {
                    recorder.record(black_box(&sample(repeat))).expect("a sample recorded");
                }
                recorder
            },
            BatchSize::PerIteration,
        );
    });
    let dir = root.path().join("read");
    let mut recorder = Recorder::create(&dir, manifest()).expect("a recorder");
    for repeat in 0..COUNT {
        recorder.record(&sample(repeat)).expect("a sample recorded");
    }
    drop(recorder);
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let (_, samples) = Run::stream(&dir).expect("a run");
            samples.map(|sample| sample.expect("a sample").values["ready_ms"]).sum::<f64>()
        });
    });
    group.finish();
}

criterion_group!(group, benchmarks);
criterion_main!(group);
