//! What a request costs the array itself: planning alone, and the running state machine from request to event.
//!
//! No bytes move and no device is modelled: operations are completed in the order in which they were handed out, with 32
//! requests in flight. Target on one core: raid0 at most 80 ns, raid5 read-modify-write at most 350 ns a request.

#![allow(clippy::cast_lossless, reason = "numbers here are small")]
// criterion's macros make an undocumented function.
#![allow(missing_docs)]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use raidlab_array::plan::{MemberViews, Planner, Scratch};
use raidlab_array::{Array, ArrayOp, Layout, MemberState, Plan, Policy, Rotation, Tree};
use raidlab_types::{CounterRng, Extent, Instant, OpId, Request, RequestKind, Seed};
use std::collections::VecDeque;
use std::hint::black_box;

const SECTOR: u32 = 512;
const CHUNK: u64 = 64 << 10;
const DEPTH: u32 = 32;

struct Case {
    name: &'static str,
    tree: Tree,
    kind: RequestKind,
    sectors: u64,
    missing: Option<u32>,
}

fn cases() -> Vec<Case> {
    use RequestKind::{Read, Write};
    let case = |name, tree, kind, sectors, missing| Case { name, tree, kind, sectors, missing };
    let raid5 = |n| Tree::parity(1, n, CHUNK, Rotation::LeftSymmetric);
    let raid6 = Tree::parity(2, 10, CHUNK, Rotation::LeftSymmetric);
    let full_stripe = 9 * CHUNK / SECTOR as u64;
    vec![
        case("raid0_read_4k", Tree::raid0(10, CHUNK), Read, 8, None),
        case("raid10_read_4k", Tree::raid10(5, CHUNK), Read, 8, None),
        case("raid10_write_4k", Tree::raid10(5, CHUNK), Write, 8, None),
        case("raid5_read_4k", raid5(10), Read, 8, None),
        case("raid5_rmw_4k", raid5(10), Write, 8, None),
        case("raid5_full_stripe", raid5(10), Write, full_stripe, None),
        case("raid5_degraded_read_4k", raid5(10), Read, 8, Some(3)),
        case("raid6_rmw_4k", raid6, Write, 8, None),
    ]
}

/// Addresses: uniform, on multiples of the request's size (so that full stripes are full).
fn extent(case: &Case, capacity: u64, rng: &mut CounterRng) -> Extent {
    Extent::new(rng.below(capacity / case.sectors) * case.sectors, case.sectors)
}

fn layout(case: &Case) -> Layout {
    Layout::new(&case.tree, &vec![1 << 24; case.tree.leaves()], SECTOR).expect("compiles")
}

fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan");
    group.throughput(Throughput::Elements(1));
    for case in cases() {
        let layout = layout(&case);
        let mut views = MemberViews::new(&layout);
        case.missing.iter().for_each(|&l| views.set_state(&layout, l, MemberState::Missing));
        let (mut scratch, mut plan, policy) = (Scratch::default(), Plan::default(), Policy::default());
        let (volume, write) = (layout.volumes()[0], case.kind == RequestKind::Write);
        let mut rng = Seed::new(1).draws();
        group.bench_function(case.name, |b| {
            b.iter(|| {
                let extent = extent(&case, volume.capacity_sectors, &mut rng);
                let (layout, views, policy, scratch) = (&layout, &views, &policy, &mut scratch);
                let mut planner = Planner { layout, views, policy, bad: &[], scratch, plan: &mut plan };
                planner.request(layout.volume_node(0), write, extent, 0).expect("within tolerance");
                black_box(plan.len())
            })
        });
    }
}

/// The smallest driver: operations wait in a queue and complete in its order.
struct Driver {
    array: Array,
    queue: VecDeque<OpId>,
    rng: CounterRng,
}

impl Driver {
    fn new(case: &Case) -> Driver {
        let mut array = Array::new(layout(case), Policy::default());
        case.missing.iter().for_each(|&l| array.set_member_state(l, MemberState::Missing));
        let mut driver = Driver { array, queue: VecDeque::new(), rng: Seed::new(1).draws() };
        (0..DEPTH).for_each(|_| driver.submit(case));
        driver
    }

    fn submit(&mut self, case: &Case) {
        let capacity = self.array.layout().volumes()[0].capacity_sectors;
        let extent = extent(case, capacity, &mut self.rng);
        let request = Request { tag: 0, volume: 0, kind: case.kind, extent, force_unit_access: false };
        self.array.handle_request(Instant::ZERO, request);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(op) = self.array.poll_op() {
            self.queue.push_back(match op {
                ArrayOp::Device(o) => o.id,
                ArrayOp::Compute { id, .. } => id,
            });
        }
    }

    /// Runs until one request is done, and submits the next.
    fn step(&mut self, case: &Case) {
        while self.array.poll_event().is_none() {
            let id = self.queue.pop_front().expect("something is in flight");
            self.array.handle_op_done(Instant::ZERO, id, Ok(()));
            self.poll();
        }
        self.submit(case);
    }
}

fn run(c: &mut Criterion) {
    let mut group = c.benchmark_group("run");
    group.throughput(Throughput::Elements(1));
    for case in cases() {
        let mut driver = Driver::new(&case);
        group.bench_function(case.name, |b| b.iter(|| driver.step(&case)));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(std::time::Duration::from_secs(2)).warm_up_time(std::time::Duration::from_millis(500));
    targets = plan, run
}
criterion_main!(benches);
