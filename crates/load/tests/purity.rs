//! Request i of a stream is a function of (seed, stream, i): whatever completes when, and whatever else changes.

mod common;

use common::*;
use proptest::prelude::*;
use raidlab_load::{
    AddressSpec, Align, ArrivalSpec, Load, LoadSpec, SizeSpec, StepOp, StepSpec, VolumeSpec, WorkloadSpec,
};
use raidlab_types::{Request, RequestKind, Seed};
use std::collections::BTreeMap;

fn step(op: StepOp) -> StepSpec {
    StepSpec { op, size: None, address: None, same_extent_as: None }
}

fn workloads() -> Vec<WorkloadSpec> {
    let exponential = SizeSpec::Exponential { mean_bytes: 6144.0 };
    let sequential = |streams| AddressSpec::Sequential { streams };
    let listed = AddressSpec::Listed { offset_bytes: vec![4096, 0, 65536, 4096, 512] };
    let mixed = AddressSpec::Mixed { sequential: 0.2, local: 0.3, local_sd_bytes: Some(1e6), alike: true };
    let write_back = StepSpec { same_extent_as: Some(0), ..step(StepOp::Write) };
    let log = StepSpec { address: Some(sequential(1)), size: Some(exponential.clone()), ..step(StepOp::Write) };
    vec![
        WorkloadSpec { size: exponential.clone(), ..workload() },
        WorkloadSpec { size: exponential.clone(), volumes: VolumeSpec::Even, ..workload() },
        WorkloadSpec { size: exponential.clone(), volumes: VolumeSpec::Weights(vec![1.0, 3.0]), ..workload() },
        WorkloadSpec { size: exponential.clone(), address: sequential(3), ..workload() },
        WorkloadSpec { size: exponential.clone(), task: Some(vec![step(StepOp::Read), log, write_back]), ..workload() },
        WorkloadSpec { size: exponential.clone(), address: listed, ..workload() },
        WorkloadSpec { size: exponential, address: mixed, align: Some(Align::SECTOR), ..workload() },
    ]
}

/// Requests of 2 volumes, in order of issue, with service times from `order`.
fn run(load: &LoadSpec, workload: &WorkloadSpec, order: u64) -> Vec<Request> {
    let mut load = Load::new(load, workload, &requests(0, 600), &[VOLUME; 2], 512, Seed::new(9)).unwrap();
    let mut rng = Seed::new(order).draws();
    let mut serve = |now: u64, _: &Request| now + 1 + rng.below(1000);
    drive(&mut load, &mut serve, |_, _| {}).into_iter().map(|d| Request { tag: 0, ..d.request }).collect()
}

/// How often each request occurs among the first 300: order aside.
fn contents(requests: &[Request]) -> BTreeMap<(u32, u64, u64, bool), u32> {
    let mut contents = BTreeMap::new();
    for r in requests {
        *contents.entry((r.volume, r.extent.lba, r.extent.sectors, r.kind == RequestKind::Read)).or_insert(0) += 1;
    }
    contents
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn open_loops_ask_the_same_in_the_same_order(first: u64, second: u64) {
        let arrival = ArrivalSpec::Poisson { rate_per_s: 1e7 };
        let load = LoadSpec::Open { arrival, max_in_flight: Some(20) };
        // But for longer tasks, whose later steps follow completions.
        for workload in workloads().iter().filter(|w| w.task.is_none()) {
            let (a, b) = (run(&load, workload, first), run(&load, workload, second));
            let n = a.len().min(b.len());
            prop_assert_eq!(&a[..n], &b[..n]);
        }
    }

    #[test]
    fn one_lane_asks_the_same_at_any_depth_and_order(first: u64, second: u64, depth in 1u32..40) {
        for workload in [&workloads()[0], &workloads()[2]] {
            let a = run(&LoadSpec::Closed { depth }, workload, first);
            let b = run(&LoadSpec::Closed { depth: 8 }, workload, second);
            let n = a.len().min(b.len());
            prop_assert_eq!(&a[..n], &b[..n]);
        }
    }

    #[test]
    fn every_lane_asks_the_same_whatever_the_others_do(first: u64, second: u64) {
        // Even volumes: the requests of each volume, in order.
        let workload = &workloads()[1];
        let load = LoadSpec::Closed { depth: 8 };
        let (a, b) = (run(&load, workload, first), run(&load, workload, second));
        for volume in 0..2 {
            let of = |all: &[Request]| all.iter().copied().filter(|r| r.volume == volume).collect::<Vec<_>>();
            let (a, b) = (of(&a), of(&b));
            let n = a.len().min(b.len());
            prop_assert!(n > 200);
            prop_assert_eq!(&a[..n], &b[..n]);
        }
    }

    #[test]
    fn tasks_ask_the_same_though_their_steps_interleave(first: u64, second: u64) {
        // At depth 4 tasks k and k + 1 may overtake each other, so compare what the first 100 ask for in all:
        // a run of 600 requests has begun at least 200 tasks, and nearly all of the first hundred are complete.
        let workload = &workloads()[4];
        let load = LoadSpec::Closed { depth: 4 };
        let (a, b) = (run(&load, workload, first), run(&load, workload, second));
        let (a, b) = (contents(&a), contents(&b));
        let common = a.iter().filter(|(key, count)| b.get(key) == Some(count)).count();
        prop_assert!(common > 550, "{} of {} and {}", common, a.len(), b.len());
    }
}

#[test]
fn another_size_moves_no_address_and_another_mix_moves_neither() {
    let base = WorkloadSpec { align: Some(Align::SECTOR), ..workload() };
    let load = LoadSpec::Closed { depth: 4 };
    let fixed = run(&load, &base, 1);
    let mixed = run(&load, &WorkloadSpec { read_fraction: 0.2, ..base.clone() }, 1);
    let sized = run(&load, &WorkloadSpec { size: SizeSpec::Exponential { mean_bytes: 8192.0 }, ..base }, 1);
    for ((a, b), c) in fixed.iter().zip(&mixed).zip(&sized) {
        assert_eq!((a.volume, a.extent), (b.volume, b.extent));
        // The place is the same share of the places where the request fits.
        assert_eq!((a.volume, a.kind), (c.volume, c.kind));
        assert!(a.extent.lba.abs_diff(c.extent.lba) < 256, "{a:?} {c:?}");
    }
    // Common random numbers: what reads in the lesser mix reads in the greater too.
    assert!(fixed.iter().zip(&mixed).all(|(a, b)| b.kind != RequestKind::Read || a.kind == RequestKind::Read));
}
