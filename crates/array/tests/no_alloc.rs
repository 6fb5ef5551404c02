//! Planning and the running array allocate nothing per request once their pools have grown.
//!
//! One test in this binary, so that no other test's allocations are counted.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

use counting_allocator::allocations;
use raidlab_array::plan::{MemberViews, Planner, Scratch};
use raidlab_array::{
    Array, ArrayOp, Layout, MemberState, Plan, Policy, RebuildThrottle, Rotation, SitOut, Tree, WriteAfter,
};
use raidlab_types::{CounterRng, Duration, Extent, Instant, OpId, Request, RequestKind, Seed};

struct Case {
    name: &'static str,
    tree: Tree,
    kind: RequestKind,
    sectors: u64,
    missing: &'static [u32],
    policy: Policy,
}

const SECTOR: u32 = 512;
const CHUNK: u64 = 64 << 10;

fn cases() -> Vec<Case> {
    use RequestKind::{Read, Write};
    let by_rows = Policy { parity_row_bytes: 4096, ..Policy::default() };
    let early = Policy { write_after: WriteAfter::OwnRead, ..Policy::default() };
    let cached = Policy { stripe_cache_size: 256, max_read_errors: Some(20), ..by_rows };
    let watched = Policy { sit_out: Some(SitOut { times: 2.0, hold: 100_000_000_000, rest: 1 }), ..Policy::default() };
    let gated = Policy { resync_barrier: true, ..Policy::default() };
    let with = |policy, name, tree: &Tree, kind, sectors, missing| {
        let tree = tree.clone();
        Case { name, tree, kind, sectors, missing, policy }
    };
    let case = |name, tree: &Tree, kind, sectors, missing| with(Policy::default(), name, tree, kind, sectors, missing);
    let raid0 = Tree::raid0(8, CHUNK);
    let raid10 = Tree::raid10(4, CHUNK);
    let far2 = Tree::parse("raid10(5, layout=far2)").expect("a tree");
    let raid5 = Tree::parity(1, 5, CHUNK, Rotation::LeftSymmetric);
    let raid6 = Tree::parity(2, 6, CHUNK, Rotation::LeftSymmetric);
    let spared = Tree::parse("declustered(7, width=3, spares=1)").expect("a tree");
    let raid50 = Tree::striped_parity(1, 2, 5, CHUNK, Rotation::LeftSymmetric);
    vec![
        case("raid0 small read", &raid0, Read, 8, &[]),
        case("raid0 large write of many windows", &raid0, Write, 40_000, &[]),
        case("raid10 read", &raid10, Read, 8, &[]),
        case("raid10 write", &raid10, Write, 8, &[]),
        case("far copies, read", &far2, Read, 700, &[]),
        case("far copies, write", &far2, Write, 700, &[]),
        case("far copies, one missing, read", &far2, Read, 700, &[1]),
        case("raid5 read-modify-write", &raid5, Write, 8, &[]),
        case("raid5 full stripe", &raid5, Write, 512, &[]),
        case("raid5 degraded read", &raid5, Read, 8, &[1]),
        case("raid5 degraded write", &raid5, Write, 300, &[1]),
        case("raid6 read-modify-write", &raid6, Write, 8, &[]),
        case("raid6 full stripe", &raid6, Write, 512, &[]),
        case("raid6 two missing, read", &raid6, Read, 300, &[0, 3]),
        case("raid6 two missing, write", &raid6, Write, 300, &[0, 3]),
        with(watched, "raid5 read where who is slow is read last", &raid5, Read, 8, &[]),
        case("raid50 write", &raid50, Write, 700, &[2]),
        case("beside distributed spare space, write", &spared, Write, 300, &[]),
        case("beside distributed spare space, one missing, read", &spared, Read, 300, &[1]),
        with(by_rows, "raid5 page by rows", &raid5, Write, 8, &[]),
        with(early, "raid5 page after its own read", &raid5, Write, 8, &[]),
        with(by_rows, "raid5 part of a page by rows", &raid5, Write, 3, &[]),
        with(by_rows, "raid6 several stripes by rows", &raid6, Write, 700, &[]),
        with(gated, "raid1 beside what takes turns with it", &Tree::raid1(2), Write, 8, &[]),
        with(gated, "raid10 beside what takes turns with it", &Tree::raid10(3, 64 << 10), Read, 300, &[]),
        with(cached, "raid5 page in the stripe cache", &raid5, Write, 8, &[]),
        with(cached, "raid6 more rows than the stripe cache has", &raid6, Write, 700, &[]),
    ]
}

fn layout(case: &Case) -> Layout {
    Layout::new(&case.tree, &vec![1 << 20; case.tree.leaves()], SECTOR).expect("compiles")
}

fn random_extent(case: &Case, capacity: u64, rng: &mut CounterRng) -> Extent {
    // Full stripes begin where stripes do, everything else on 4 KiB.
    let align = if case.sectors == 512 { 512 } else { 8 };
    Extent::new(rng.below((capacity - case.sectors) / align) * align, case.sectors)
}

/// The same with a member that is rebuilt beside the requests, and that is not done before they are.
fn nothing_is_allocated_beside_a_rebuild() {
    for case in cases().into_iter().filter(|case| case.missing.is_empty() && !case.name.starts_with("raid0")) {
        // What takes turns with requests gets on slowly, and counts by sixteenths.
        let sectors = if case.policy.resync_barrier { 1 << 19 } else { 1 << 28 };
        let sizes = vec![sectors; case.tree.leaves()];
        let mut array = Array::new(Layout::new(&case.tree, &sizes, SECTOR).expect("compiles"), case.policy);
        array.expect_no_bytes();
        array.set_member_state(1, MemberState::Missing);
        let begin = if array.has_spare_for(1) { Array::spare_member } else { Array::replace_member };
        begin(&mut array, Instant::ZERO, 1, RebuildThrottle::Share { fraction: 1.0 }).expect("within tolerance");
        array.handle_time(Instant::ZERO);
        let mut driver = Driver::new();
        run_array(&case, &mut array, &mut driver, 20_000, 48);
        let ran = allocations(|| run_array(&case, &mut array, &mut driver, 4_000, 16));
        assert_eq!(ran, 0, "{}: allocations beside a rebuild", case.name);
        let valid = array.spare_of(1).map_or(array.member(1).valid, |(_, valid)| valid);
        assert!(array.is_rebuilding() && valid > 0, "{}: rebuilt up to {valid}", case.name);
    }
}

/// Operations in flight, what they are drawn with, and the time.
struct Driver {
    flying: Vec<OpId>,
    rng: CounterRng,
    now: Instant,
}

impl Driver {
    fn new() -> Driver {
        Driver { flying: Vec::new(), rng: Seed::new(1).draws(), now: Instant::ZERO }
    }
}

/// Keeps `depth` requests in flight; operations complete in random order, one a millisecond.
fn run_array(case: &Case, array: &mut Array, driver: &mut Driver, requests: u64, depth: u32) {
    let Driver { flying, rng, now } = driver;
    let capacity = array.layout().volumes()[0].capacity_sectors;
    let mut left = requests;
    while left > 0 || array.in_flight() > 0 {
        while left > 0 && array.in_flight() < depth {
            let extent = random_extent(case, capacity, rng);
            let request = Request { tag: left, volume: 0, kind: case.kind, extent, force_unit_access: false };
            array.handle_request(*now, request);
            left -= 1;
        }
        while let Some(op) = array.poll_op() {
            flying.push(match op {
                ArrayOp::Device(o) => o.id,
                ArrayOp::Compute { id, .. } => id,
            });
        }
        if !flying.is_empty() {
            let id = flying.swap_remove(rng.below(flying.len() as u64) as usize);
            array.handle_op_done(*now, id, Ok(()));
        }
        while array.poll_event().is_some() {}
        *now += Duration::from_ns(1_000_000);
        if array.poll_timeout().is_some_and(|due| due <= *now) {
            array.handle_time(*now);
        }
    }
}

/// What planning needs.
struct Planning {
    views: MemberViews,
    scratch: Scratch,
    plan: Plan,
}

fn run_plans(case: &Case, layout: &Layout, planning: &mut Planning, rng: &mut CounterRng, requests: u64) {
    let Planning { views, scratch, plan } = planning;
    let policy = case.policy;
    let volume = layout.volumes()[0];
    for _ in 0..requests {
        let extent = random_extent(case, volume.capacity_sectors, rng);
        let mut planner = Planner { layout, views, policy: &policy, bad: &[], scratch, plan };
        planner.request(layout.volume_node(0), case.kind == RequestKind::Write, extent, 0).expect("within tolerance");
    }
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    for case in cases() {
        let layout = layout(&case);
        let mut array = Array::new(layout.clone(), case.policy);
        array.expect_no_bytes();
        let mut views = MemberViews::new(&layout);
        for &leaf in case.missing {
            array.set_member_state(leaf, MemberState::Missing);
            views.set_state(&layout, leaf, MemberState::Missing);
        }
        let mut planning = Planning { views, scratch: Scratch::default(), plan: Plan::default() };
        let mut driver = Driver::new();
        run_plans(&case, &layout, &mut planning, &mut driver.rng, 2_000);
        let planned = allocations(|| run_plans(&case, &layout, &mut planning, &mut driver.rng, 2_000));
        // Warm with more in flight than is measured, so that every pool has seen its largest.
        run_array(&case, &mut array, &mut driver, 20_000, 48);
        let ran = allocations(|| run_array(&case, &mut array, &mut driver, 4_000, 16));
        assert_eq!((planned, ran), (0, 0), "{}: allocations while planning, while running", case.name);
        assert_eq!(array.check_idle(), Ok(()), "{}", case.name);
    }
    nothing_is_allocated_beside_a_rebuild();
}
