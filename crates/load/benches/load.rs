//! What the generator costs a request, so that it is known not to be the bottleneck.
//!
//! `cycle`: the whole of it (poll, completion, two times recorded) against an array that answers in order, 0.25 to 4.3 us
//! after a request entered; closed loops at depth 32. `record`: one time recorded here, and by the crate whose buckets these are.
//! Run: `cargo bench -p raidlab-load`.

#![allow(missing_docs)] // The functions that criterion's macros make have none.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use raidlab_load::{
    AddressSpec, ArrivalSpec, Generator, Limit, Limits, Load, LoadSpec, SizeSpec, StepOp, StepSpec, Times, Volume,
    VolumeSpec, WorkloadSpec,
};
use raidlab_types::{Instant, RequestTag, Seed};
use std::collections::VecDeque;
use std::hint::black_box;

#[path = "../tests/common/mod.rs"]
mod common;

const BATCH: u64 = 10_000;
const VOLUME: Volume = Volume { capacity_sectors: 1 << 31 };
const FIXED: SizeSpec = SizeSpec::Fixed { bytes: 8192 };
const UNIFORM: AddressSpec = AddressSpec::Uniform {};
const CLOSED: LoadSpec = LoadSpec::Closed { depth: 32 };

fn workload(size: SizeSpec, address: AddressSpec) -> WorkloadSpec {
    WorkloadSpec { size, address, ..common::workload() }
}

/// A load and an array that answers each request, in order, 250 ns after it entered.
struct Loop {
    load: Load,
    queue: VecDeque<(u64, RequestTag)>,
    now: u64,
}

impl Loop {
    fn new(load: &LoadSpec, workload: &WorkloadSpec, volumes: usize) -> Self {
        let limits = Limits { measure: Limit { requests: Some(u64::MAX), duration_s: None }, ..Limits::default() };
        let load = Load::new(load, workload, &limits, &vec![VOLUME; volumes], 512, Seed::new(1)).unwrap();
        let mut cycle = Loop { load, queue: VecDeque::with_capacity(4096), now: 0 };
        cycle.run(BATCH);
        cycle
    }

    /// Until so many requests have completed.
    fn run(&mut self, requests: u64) {
        let mut left = requests;
        while left > 0 {
            while let Some(request) = self.load.poll_request(Instant::from_ns(self.now)) {
                self.queue.push_back((self.now + 250 + (request.extent.lba & 0xFFF), request.tag));
            }
            let arrival = self.load.poll_timeout().map_or(u64::MAX, Instant::as_ns);
            if self.queue.front().is_none_or(|&(at, _)| arrival < at) {
                self.now = arrival;
                continue;
            }
            let (at, tag) = self.queue.pop_front().expect("looked at above");
            self.now = self.now.max(at);
            self.load.handle_done(Instant::from_ns(self.now), tag, true);
            left -= 1;
        }
    }
}

fn cycle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cycle");
    group.throughput(Throughput::Elements(BATCH));
    let mut bench = |name: &str, load: &LoadSpec, workload: &WorkloadSpec, volumes: usize| {
        let mut cycle = Loop::new(load, workload, volumes);
        group.bench_function(name, |bencher| bencher.iter(|| cycle.run(BATCH)));
    };
    bench("closed_fixed_uniform", &CLOSED, &workload(FIXED, UNIFORM), 1);
    let sequential = AddressSpec::Sequential { streams: 1 };
    bench("closed_fixed_sequential", &CLOSED, &workload(FIXED, sequential), 1);
    bench("closed_exponential_uniform", &CLOSED, &workload(SizeSpec::Exponential { mean_bytes: 6144.0 }, UNIFORM), 1);
    let normal = SizeSpec::Normal { mean_bytes: 1.5e6, sd_bytes: 0.5e6 };
    bench("closed_normal_uniform", &CLOSED, &workload(normal, UNIFORM), 1);
    let zipf = AddressSpec::Zipf { theta: 0.99 };
    bench("closed_fixed_zipf", &CLOSED, &workload(FIXED, zipf), 1);
    let even = WorkloadSpec { volumes: VolumeSpec::Even, ..workload(FIXED, UNIFORM) };
    bench("closed_fixed_even_8_volumes", &CLOSED, &even, 8);
    let hold = LoadSpec::Hold { percentile: 90.0, target_ms: 0.004, initial_depth: 32, max_depth: 64 };
    bench("hold_fixed_uniform", &hold, &workload(FIXED, UNIFORM), 1);
    let open = LoadSpec::Open { arrival: ArrivalSpec::Poisson { rate_per_s: 1e6 }, max_in_flight: None };
    bench("open_poisson_fixed_uniform", &open, &workload(FIXED, UNIFORM), 1);
    let step = |op, same_extent_as| StepSpec { op, size: None, address: None, same_extent_as };
    let task = Some(vec![step(StepOp::Read, None), step(StepOp::Write, Some(0))]);
    bench("closed_task_of_two", &CLOSED, &WorkloadSpec { task, ..workload(FIXED, UNIFORM) }, 1);
    group.finish();
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(BATCH));
    let mut rng = Seed::new(2).draws();
    let values: Vec<u64> = (0..BATCH).map(|_| 5_000_000 + rng.below(20_000_000)).collect();
    let mut times = Times::new();
    let mut histogram = times.histogram();
    group.bench_function("times", |bencher| bencher.iter(|| values.iter().for_each(|&v| times.record(black_box(v)))));
    group.bench_function("hdrhistogram", |bencher| {
        bencher.iter(|| values.iter().for_each(|&v| histogram.saturating_record(black_box(v))))
    });
    group.finish();
}

criterion_group!(benches, cycle, record);
criterion_main!(benches);
