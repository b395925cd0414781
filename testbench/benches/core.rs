//! Microbenchmarks of the switch core: time per packet of one member, and bytes of payload summed per second.
//!
//! `testbench core` compares the core with plain additions under the same loads, in alternating turns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use iswitch_simulation::core_load::{Adder, Load, LoadMode, Reference, Shape};
use strum::IntoEnumIterator as _;

const CACHED_SEGMENTS: usize = 44;
const USUAL_MEMBERS: usize = 4;

fn bench(criterion: &mut Criterion, group: &str, shapes: &[Shape]) {
    let mut group = criterion.benchmark_group(group);
    for shape in shapes {
        group.throughput(Throughput::Bytes(shape.payload_bytes() as u64));
        let Shape { mode, members, segments, .. } = *shape;
        let name = format!("{mode}, {members} members, {segments} segments");
        let mut load = Load::new(*shape);
        let mut rounds = 0;
        group.bench_function(BenchmarkId::new("core", &name), |bencher| {
            bencher.iter_custom(|packets| {
                time(packets, shape, || {
                    load.prepare();
                    rounds += 1;
                    let begin = Instant::now();
                    black_box(load.run());
                    begin.elapsed()
                })
            });
        });
        load.check(rounds);
        let mut reference = Reference::new(*shape);
        for (adder, what) in [(Adder::PLAIN, "plain add"), (Adder::CORE, "SIMD add")] {
            group.bench_function(BenchmarkId::new(what, &name), |bencher| {
                bencher.iter_custom(|packets| {
                    time(packets, shape, || {
                        let begin = Instant::now();
                        reference.run(load.frames(), adder);
                        begin.elapsed()
                    })
                });
            });
        }
    }
    group.finish();
}

/// Returns the time for `packets` packets. Runs as many whole rounds as are needed for that number of packets, and
/// scales the measured time down.
fn time(packets: u64, shape: &Shape, mut round: impl FnMut() -> Duration) -> Duration {
    let rounds = packets.div_ceil(shape.contributions() as u64);
    let total: Duration = (0..rounds).map(|_| round()).sum();
    total.mul_f64(packets as f64 / (rounds * shape.contributions() as u64) as f64)
}

fn modes(criterion: &mut Criterion) {
    let shapes: Vec<_> =
        LoadMode::iter().map(|mode| Shape::new(mode, USUAL_MEMBERS, CACHED_SEGMENTS)).collect();
    bench(criterion, "modes", &shapes);
}

fn members(criterion: &mut Criterion) {
    let shapes = [2, 8, 64].map(|members| Shape::new(LoadMode::Synchronous, members, CACHED_SEGMENTS));
    bench(criterion, "members", &shapes);
}

fn segments(criterion: &mut Criterion) {
    let shapes =
        [10, 1_000, 100_000].map(|segments| Shape::new(LoadMode::Synchronous, USUAL_MEMBERS, segments));
    bench(criterion, "segments", &shapes);
}

fn brief() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}

criterion_group! { name = core; config = brief(); targets = modes, members, segments }
criterion_main!(core);
