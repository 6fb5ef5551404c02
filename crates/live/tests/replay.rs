//! One array, two clocks, for policies that look at queues and arms: what the array asks of its members on real files is
//! what a fresh array asks when it is told the same things in the same order.
//!
//! (For policies that look at no state the order does not matter either: the simulator and real members are compared
//! request by request in `tests/python/test_two_clocks.py`.)

mod common;

use common::{config, requests, run, workload, Place};
use raidlab_array::{Array, ArrayOp, Layout, MirrorRead, Policy, Rotation, Tree};
use raidlab_live::{ArrayInput, LiveConfig, LiveResult};
use raidlab_load::{LoadSpec, SizeSpec};
use raidlab_types::{Instant, KIB, MIB};

const REQUESTS: u64 = 600;
const CHUNK: u64 = 16 * KIB;

/// Member operations in the order of being handed out: leaf, kind, first sector, sectors.
type Asked = Vec<(u32, raidlab_types::OpKind, u64, u64)>;

/// Tells a fresh array what the live one was told, and lists what it asks.
fn replay(config: &LiveConfig, result: &LiveResult) -> Asked {
    let sector = result.engine.sector_bytes;
    let sizes: Vec<u64> = result.targets.iter().flatten().map(|t| t.size_bytes / u64::from(sector)).collect();
    let mut array = Array::new(Layout::new(&config.tree, &sizes, sector).expect("it ran"), config.policy);
    let mut asked = Vec::new();
    for input in &result.inputs {
        // Times are of no account to an array: it has no timers.
        match *input {
            ArrayInput::Request(request) => array.handle_request(Instant::ZERO, request),
            ArrayInput::Done(id, outcome) => array.handle_op_done(Instant::ZERO, id, outcome),
        }
        while let Some(op) = array.poll_op() {
            if let ArrayOp::Device(op) = op {
                asked.push((op.leaf, op.kind, op.extent.lba, op.extent.sectors));
            }
        }
        while array.poll_event().is_some() {}
    }
    asked
}

fn same_on_both(tree: Tree, mirror_read: MirrorRead) {
    let place = Place::new();
    let mut config = config(tree);
    config.targets = place.files(config.tree.leaves(), 4 * MIB);
    config.policy = Policy { mirror_read, ..Policy::default() };
    config.load = LoadSpec::Closed { depth: 12 };
    let bytes = vec![4 * KIB, 12 * KIB, 60 * KIB];
    config.workload = workload(0.6, SizeSpec::Table { bytes, weights: vec![3.0, 2.0, 1.0] });
    (config.limits, config.trace_requests) = (requests(REQUESTS), u64::MAX);
    let result = run(&config);
    let live: Asked = result.trace.iter().map(|t| (t.leaf, t.kind, t.extent.lba, t.extent.sectors)).collect();
    assert!(live.len() as u64 >= REQUESTS, "{} operations", live.len());
    let mut replayed = replay(&config, &result);
    // The live engine polls after several completions at once: the same operations, perhaps in another order.
    let mut live = live;
    live.sort_unstable_by_key(|o| (o.0, o.2, o.3, o.1 as u8));
    replayed.sort_unstable_by_key(|o| (o.0, o.2, o.3, o.1 as u8));
    assert_eq!(live, replayed, "{:?} under {mirror_read:?}", config.tree);
}

#[test]
fn operations_follow_from_the_order_of_what_happened() {
    let policies = [
        MirrorRead::RoundRobin,
        MirrorRead::ShortestQueue,
        MirrorRead::Nearest { queue_override: None },
        MirrorRead::Nearest { queue_override: Some(2) },
    ];
    for policy in policies {
        same_on_both(Tree::raid10(3, CHUNK), policy);
        same_on_both(Tree::raid1(3), policy);
        let groups = vec![Tree::parity(1, 3, CHUNK, Rotation::LeftSymmetric); 2];
        same_on_both(Tree::Mirror { children: groups }, policy);
    }
}
