//! Time of a check, by the number of streams: `cargo bench -p streamsan-check`.
//!
//! Figures for `docs/benchmarks.md` come from `benches/checker.py`, which also measures memory and CSAN's engine.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamsan_check::{Config, check};
use streamsan_trace::Trace;

mod generated;

use generated::Generated;

const OPERATIONS: u64 = 100_000;

fn by_streams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("check");
    group.throughput(Throughput::Elements(OPERATIONS)).sample_size(20);
    for streams in [2, 8, 32, 256, 2048] {
        let trace: Trace = Generated::new(streams, OPERATIONS, 1).in_memory();
        group.bench_function(BenchmarkId::from_parameter(streams), |bencher| {
            bencher.iter(|| check(&trace, &Config::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, by_streams);
criterion_main!(benches);
