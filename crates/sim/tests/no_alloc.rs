//! A simulation with the host's block layer and a stripe cache allocates nothing per request: three times the requests take
//! as many allocations.
//!
//! One test in this binary, so that no other test's allocations are counted. Disks are so quick that a run takes less than a
//! second of its clock, since each second is a row of the result.

#[path = "../../../tests/counting_allocator.rs"]
mod counting_allocator;

mod common;

use counting_allocator::allocations;
use raidlab_array::{MirrorRead, Policy, Rotation, Tree};

#[test]
fn nothing_is_allocated_in_steady_state() {
    let md = Policy {
        mirror_read: MirrorRead::Md { rotating: false },
        parity_row_bytes: 4096,
        merge_bytes: 1280 << 10,
        plug: true,
        resync_barrier: true,
        ..Policy::default()
    };
    let cached = Policy { stripe_cache_size: 256, ..md };
    let raid5 = Tree::parity(1, 5, 64 << 10, Rotation::LeftSymmetric);
    for (name, tree, policy, read, bytes) in [
        ("raid10, merged", Tree::raid10(2, 64 << 10), md, 0.5, 16 << 10),
        ("raid5 by rows, gathered", raid5.clone(), md, 0.0, 16 << 10),
        ("raid5 in a stripe cache, gathered", raid5.clone(), cached, 0.0, 16 << 10),
        ("raid5 in a stripe cache, several stripes", raid5, cached, 0.3, 512 << 10),
    ] {
        let mut config = common::closed(tree, common::fixed(1.0), common::random(read, bytes), 16);
        config.policy = policy;
        let mut run = |requests| {
            config.limits = common::requests(0, requests);
            allocations(|| drop(raidlab_sim::run(&config).expect("runs")))
        };
        // The first run has grown no pool of the process.
        run(1_000);
        assert_eq!(run(3_000), run(9_000), "{name}");
    }
}
