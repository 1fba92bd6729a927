//! What the statistics of a run cost: a sweep's fit, a comparison of two runs.

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use stats::{Bootstrap, Cell, CompareOptions, Confidence, Sample, compare_cells, fit_medians};

/// Values that look like times: the same each run, spread by a fixed recurrence.
fn samples(count: usize, base: f64) -> Vec<f64> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    (0..count).map(|_| base + next() * next()).collect()
}

fn benchmarks(criterion: &mut Criterion) {
    let cells: Vec<(f64, Vec<f64>)> =
        [0.4, 11.6, 20.0, 50.0, 85.5, 200.0].map(|x| (x, samples(20, 2.0 * x))).into();
    let cells: Vec<Cell> = cells.iter().map(|(x, samples)| Cell { x: *x, samples }).collect();
    criterion.bench_function("fit_medians/6x20", |b| {
        b.iter(|| fit_medians(black_box(&cells), Bootstrap::default(), Confidence::C95));
    });
    let run = |base: f64| -> BTreeMap<String, Vec<f64>> {
        (0..100).map(|i| (format!("cell {i}"), samples(20, base))).collect()
    };
    let (a, b) = (run(10.0), run(10.1));
    criterion.bench_function("compare_cells/100x20", |bencher| {
        bencher.iter(|| compare_cells(black_box(&a), &b, CompareOptions::default()));
    });
    let many = samples(1_000_000, 1.0);
    criterion.bench_function("quantiles/1M", |b| {
        b.iter(|| Sample::new(black_box(&many)).map(|s| s.median_estimate(Confidence::C95)));
    });
}

criterion_group! {
    name = group;
    config = Criterion::default().sample_size(10).measurement_time(std::time::Duration::from_secs(2));
    targets = benchmarks
}
criterion_main!(group);
