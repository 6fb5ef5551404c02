//! Nothing is allocated per request in steady state: a run a hundred times as long allocates no more.

mod common;

use common::{config, count, direct, requests, run, run_direct, workload, Place};
use raidlab_array::{Rotation, Tree};
use raidlab_live::direct::DirectConfig;
use raidlab_live::{EmulatedContent, Emulation, LiveConfig, TargetSpec};
use raidlab_load::{Recorder, SizeSpec};
use raidlab_types::{KIB, MIB};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator, with a count beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a run, without the histogram of each second of its clock: made once, and copied into the result.
fn allocations(run: impl FnOnce() -> Recorder) -> u64 {
    let before = CALLS.load(Ordering::Relaxed);
    let recorder = run();
    let calls = CALLS.load(Ordering::Relaxed) - before;
    calls.saturating_sub(2 * recorder.snapshots().count() as u64)
}

/// One test, as the count is that of the whole process.
#[test]
fn a_longer_run_allocates_no_more() {
    arrays();
    plain_targets();
}

fn arrays() {
    let place = Place::new();
    let memory = vec![TargetSpec::Memory { size_bytes: 4 * MIB }];
    let text = r#"{"kind":"fixed","capacity_bytes":4194304,"read_us":100,"write_us":100}"#;
    let device = Box::new(serde_json::from_str(text).expect("a device"));
    let emulated = vec![TargetSpec::Emulated { device, content: EmulatedContent::Memory }];
    for (targets, n, speed) in
        [(memory, 200_000, 1.0), (place.files(5, 4 * MIB), 20_000, 1.0), (emulated, 100_000, 1000.0)]
    {
        let tree = Tree::parity(1, 5, 64 * KIB, Rotation::LeftSymmetric);
        let cell = |n| LiveConfig {
            targets: targets.clone(),
            workload: workload(0.5, SizeSpec::Fixed { bytes: 8 * KIB }),
            limits: requests(n),
            emulation: Emulation { speed, ..Emulation::default() },
            ..config(tree.clone())
        };
        run(&cell(1000));
        let count = |n| allocations(|| run(&cell(n)).recorder);
        let (short, long) = (count(n / 10), count(n));
        // Slots grow when the machine happens to reorder more than before.
        assert!(long < short + 200, "{short} allocations in a short run, {long} in a long one");
    }
}

/// Each way in which a request of the direct engine can go, reads and writes, several sizes; the window of all workers.
fn plain_targets() {
    let place = Place::new();
    let null = TargetSpec::Null { size_bytes: 4 * MIB };
    let memory = TargetSpec::Memory { size_bytes: 4 * MIB };
    let sizes = SizeSpec::Table { bytes: vec![4 * KIB, 64 * KIB], weights: vec![3.0, 1.0] };
    let cases = [(vec![null], 400_000), (vec![memory], 100_000), (place.files(2, 4 * MIB), 20_000)];
    for (targets, n) in cases {
        for workers in [1, 2] {
            let cell = |n| DirectConfig {
                workers,
                workload: workload(0.5, sizes.clone()),
                measure: count(n),
                ..direct(targets.clone())
            };
            run_direct(&cell(1000));
            let count = |n| allocations(|| run_direct(&cell(n)).recorder);
            let (short, long) = (count(n / 10), count(n));
            // Blocks of memory are taken when first needed.
            assert!(long < short + 200, "{short} allocations in a short run, {long} in a long one of {targets:?}");
        }
    }
}
