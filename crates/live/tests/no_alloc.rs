//! Nothing is allocated per request in steady state: a run a hundred times as long allocates no more.

mod common;

use common::{config, requests, run, workload, Place};
use raidlab_array::{Rotation, Tree};
use raidlab_live::{EmulatedContent, Emulation, LiveConfig, TargetSpec};
use raidlab_load::SizeSpec;
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

fn allocations(cell: &LiveConfig) -> u64 {
    let before = CALLS.load(Ordering::Relaxed);
    run(cell);
    CALLS.load(Ordering::Relaxed) - before
}

#[test]
fn a_longer_run_allocates_no_more() {
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
        let (short, long) = (allocations(&cell(n / 10)), allocations(&cell(n)));
        // A row of the record a second, and slots that grow when the machine happens to reorder more than before.
        assert!(long < short + 200, "{short} allocations in a short run, {long} in a long one");
    }
}
