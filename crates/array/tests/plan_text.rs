//! What a plan prints: the text that users read when they ask what a request costs.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_hazard as harness;

use harness::Bench;
use raidlab_array::{ParityWrite, Policy, Rotation, Tree};
use raidlab_types::{Extent, Seed};

fn printed(tree: &Tree, missing: &[usize], write: bool, extent: Extent) -> String {
    let policy = Policy { parity_write: ParityWrite::ReadModifyWrite, ..Policy::default() };
    let mut bench = Bench::new(tree, 16, policy);
    missing.iter().for_each(|&m| bench.set_missing(m, true));
    let mut user = vec![0; extent.sectors as usize];
    bench.run(0, write, extent, &mut user, &mut Seed::new(1).draws()).expect("within tolerance");
    bench.plan.to_string()
}

#[test]
fn a_read_modify_write() {
    let text = printed(&Tree::parity(1, 4, 4, Rotation::LeftSymmetric), &[], true, Extent::new(5, 1));
    let expected = [
        "  1  read  member 1 [1, 2) into scratch[0..1]  (pair with 3)",
        "  2  read  member 3 [1, 2) into scratch[1..2]  (pair with 4)",
        "  0  xor     3 inputs into scratch[1..2]  after 1 2",
        "  3  write member 1 [1, 2) from user[0..1]  (pair with 1)  after every read",
        "  4  write member 3 [1, 2) from scratch[1..2]  (pair with 2)  after 0 and every read",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_degraded_read() {
    let text = printed(&Tree::parity(1, 3, 2, Rotation::ParityLast), &[0], false, Extent::new(0, 3));
    let expected = [
        "  1  read  member 1 [0, 2) into user[2..3], scratch[1..2]",
        "  2  read  member 2 [0, 2) into scratch[0..1], scratch[2..3]",
        "  0  recover 4 inputs into user[0..1], user[1..2]  after 1 2",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_large_read_gathers_chunks() {
    let text = printed(&Tree::raid0(2, 2), &[], false, Extent::new(0, 8));
    let expected = [
        "  0  read  member 0 [0, 4) into user[0..2], user[4..6]",
        "  1  read  member 1 [0, 4) into user[2..4], user[6..8]",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
