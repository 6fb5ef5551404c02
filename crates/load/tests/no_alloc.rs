//! The hot path allocates nothing: a counting allocator around whole runs, once they are under way.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod common;
#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use common::*;
use counting_allocator::allocations;
use raidlab_load::trace::{Names, Record, Records, Replay, TraceError, TraceLoad, TraceSpec};
use raidlab_load::{
    AddressSpec, ArrivalSpec, Limits, Load, LoadSpec, RecordSink, RecordedLoad, RequestLog, RequestRecord, SizeSpec,
    StepOp, StepSpec, VolumeSpec, WorkloadSpec,
};
use raidlab_types::{Instant, RequestKind, RequestTag, Seed};

/// Runs `n` requests in a ring of slots, so that the driver allocates nothing either; they complete in a shuffled order.
fn run(load: &mut impl Generator, slots: &mut Vec<RequestTag>, now: &mut u64, n: u64) {
    let mut rng = Seed::new(*now).draws();
    for _ in 0..n {
        while let Some(request) = load.poll_request(Instant::from_ns(*now)) {
            slots.push(request.tag);
        }
        *now += 50_000;
        if !slots.is_empty() {
            let tag = slots.swap_remove(rng.below(slots.len() as u64) as usize);
            load.handle_done(Instant::from_ns(*now), tag, rng.unit() < 0.99);
        }
    }
}

#[test]
fn a_run_under_way_allocates_nothing() {
    let closed = LoadSpec::Closed { depth: 32 };
    let arrival = ArrivalSpec::H2 { rate_per_s: 10_000.0, cv2: 3.0 };
    let open = LoadSpec::Open { arrival, max_in_flight: Some(64) };
    let hold = LoadSpec::Hold { percentile: 90.0, target_ms: 1.0, initial_depth: 4, max_depth: 64 };
    let exponential = WorkloadSpec { size: SizeSpec::Exponential { mean_bytes: 6144.0 }, ..workload() };
    let zipf = WorkloadSpec { address: AddressSpec::Zipf { theta: 0.9 }, ..workload() };
    let sequential = AddressSpec::Sequential { streams: 4 };
    let sequential = WorkloadSpec { address: sequential, ..workload() };
    let mixed = AddressSpec::Mixed { sequential: 0.2, local: 0.3, local_sd_bytes: Some(1e6), alike: true };
    let mixed = WorkloadSpec { address: mixed, ..workload() };
    let even = WorkloadSpec { volumes: VolumeSpec::Even, ..workload() };
    let step = |op, same_extent_as| StepSpec { op, size: None, address: None, same_extent_as };
    let steps = vec![step(StepOp::Read, None), step(StepOp::Read, None), step(StepOp::Write, Some(0))];
    let task = WorkloadSpec { task: Some(steps), ..workload() };
    for load in [&closed, &open, &hold] {
        for workload in [&exponential, &zipf, &sequential, &mixed, &even, &task] {
            let volumes = [VOLUME; 3];
            let limits = requests(1000, u64::MAX);
            let mut under_test = Load::new(load, workload, &limits, &volumes, 512, Seed::new(1)).unwrap();
            let (mut slots, mut now) = (Vec::with_capacity(1024), 0);
            run(&mut under_test, &mut slots, &mut now, 5_000);
            let allocated = allocations(|| run(&mut under_test, &mut slots, &mut now, 50_000));
            assert_eq!(allocated, 0, "{load:?} {workload:?}");
            assert!(under_test.recorder().is_measuring() || matches!(load, LoadSpec::Hold { .. }));
        }
    }
}

/// Takes rows, and gives back the same room.
struct Nowhere;

impl RecordSink for Nowhere {
    fn take(&mut self, rows: &mut Vec<RequestRecord>) {
        rows.clear();
    }
}

#[test]
fn rows_of_single_requests_allocate_nothing() {
    let load = Load::new(
        &LoadSpec::Closed { depth: 32 },
        &workload(),
        &requests(1000, u64::MAX),
        &[VOLUME],
        512,
        Seed::new(1),
    );
    let mut under_test = RecordedLoad::new(load.unwrap(), RequestLog::new(4096, Box::new(Nowhere)), 512);
    let (mut slots, mut now) = (Vec::with_capacity(1024), 0);
    run(&mut under_test, &mut slots, &mut now, 5_000);
    assert_eq!(allocations(|| run(&mut under_test, &mut slots, &mut now, 50_000)), 0);
    assert!(under_test.recorder().all().requests > 20_000);
}

/// One request a microsecond, made in batches.
struct Endless {
    names: Names,
    next: u64,
}

impl Records for Endless {
    fn fill(&mut self, out: &mut Vec<Record>) -> Result<bool, TraceError> {
        for _ in 0..100 {
            let (line, offset_bytes) = (self.next + 1, self.next % 1000 * 4096);
            let kind = if line % 3 == 0 { RequestKind::Write } else { RequestKind::Read };
            let time_ns = self.next * 1000;
            out.push(Record { line, time_ns, volume: 0, kind, offset_bytes, bytes: 4096, response_ns: None });
            self.next += 1;
        }
        Ok(true)
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn file(&self) -> &str {
        "endless"
    }
}

#[test]
fn a_replay_under_way_allocates_nothing() {
    let stamps = LoadSpec::Open { arrival: ArrivalSpec::Trace { speed: 0.01 }, max_in_flight: None };
    for load in [stamps, LoadSpec::Closed { depth: 32 }] {
        let mut names = Names::default();
        names.number(b"disk");
        let spec: TraceSpec = serde_json::from_str(r#"{"file": "endless"}"#).unwrap();
        let replay = Replay { spec, records: Box::new(Endless { names, next: 0 }) };
        let mut under_test = TraceLoad::new(replay, &load, &Limits::default(), &[VOLUME], 512).unwrap();
        let (mut slots, mut now) = (Vec::with_capacity(1024), 0);
        let mut run = |n: u64| {
            for _ in 0..n {
                while let Some(request) = under_test.poll_request(Instant::from_ns(now)) {
                    slots.push(request.tag);
                }
                now += 50_000;
                if let Some(tag) = slots.pop() {
                    under_test.handle_done(Instant::from_ns(now), tag, true);
                }
            }
        };
        run(5_000);
        assert_eq!(allocations(|| run(50_000)), 0, "{load:?}");
        assert!(under_test.recorder().all().requests > 20_000);
    }
}
