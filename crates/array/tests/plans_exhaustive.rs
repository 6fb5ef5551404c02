//! Every small geometry, every request, every set of missing members within tolerance, against a flat byte vector.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_hazard as harness;

use harness::trees::{declustered, recoverable, spared, trees_without_parity, Losses};
use harness::{subsets, Bench};
use raidlab_array::{MemberState, MirrorRead, ParityRead, ParityWrite, Policy, Rotation, Tree};
use raidlab_types::{CounterRng, Extent, LeafId, RequestError, Seed};

fn policies() -> Vec<Policy> {
    let with = |parity_write, parity_write_tie, parity_read| Policy {
        parity_write,
        parity_write_tie,
        parity_read,
        mirror_read: MirrorRead::RoundRobin,
        ..Policy::default()
    };
    use ParityWrite::*;
    vec![
        with(FewestAccesses, ReadModifyWrite, ParityRead::Skip),
        with(FewestAccesses, ReconstructWrite, ParityRead::ReadThrough),
        with(ReadModifyWrite, ReadModifyWrite, ParityRead::ReadThrough),
        with(ReconstructWrite, ReconstructWrite, ParityRead::Skip),
    ]
}

/// Every extent of every volume: written under every set of missing members, then read back under every larger set that
/// the tree still bears, so that parity is checked and not only data.
fn exhaust(tree: &Tree, member_sectors: u64, policy: Policy, every: u64) {
    let n = tree.leaves();
    let mut rng = Seed::new(n as u64).draws();
    let mut bench = Bench::new(tree, member_sectors, policy);
    bench.fill(&mut rng);
    let mut turn = 0;
    for missing in subsets(n, n - 1) {
        missing.iter().for_each(|&m| bench.set_missing(m, true));
        if bench.has_all_volumes() {
            let kept = bench.members.clone();
            let flat = bench.flat.clone();
            for volume in 0..flat.len() {
                let capacity = flat[volume].len() as u64;
                for lba in 0..capacity {
                    for sectors in 1..=capacity - lba {
                        turn += 1;
                        if turn % every == 0 {
                            one_write(&mut bench, volume, Extent::new(lba, sectors), &missing, &mut rng);
                            bench.members.clone_from(&kept);
                            bench.flat.clone_from(&flat);
                        }
                    }
                }
            }
        } else {
            refuses(&mut bench, &mut rng);
        }
        missing.iter().for_each(|&m| bench.set_missing(m, false));
    }
}

fn one_write(bench: &mut Bench, volume: usize, extent: Extent, missing: &[usize], rng: &mut CounterRng) {
    bench.write(volume, extent, rng).expect("within tolerance");
    // What a missing member holds must not matter.
    missing.iter().for_each(|&m| bench.members[m].iter_mut().for_each(|b| *b ^= 0xFF));
    bench.check(volume, extent, rng);
    bench.check_all(rng);
    let n = bench.members.len();
    let whole = |bench: &Bench, m: usize| bench.views.leaf(LeafId::try_from(m).expect("few members")).is_whole();
    let rebuilding =
        (0..n).any(|m| bench.views.leaf(LeafId::try_from(m).expect("few members")).state == MemberState::Rebuilding);
    for more in 0..n {
        if missing.contains(&more) || !whole(bench, more) {
            continue;
        }
        bench.set_missing(more, true);
        // With one that is rebuilt, what lies behind its valid end may be lost: random plans look at that.
        if bench.has_all_volumes() && !rebuilding {
            bench.check_all(rng);
        }
        bench.set_missing(more, false);
    }
}

/// Every member that can be spared, rebuilt up to every sector, under a sample of writes: read back as it is, with
/// members missing besides, and once the member is believed in what it has been written below its valid end.
fn exhaust_rebuilding(tree: &Tree, member_sectors: u64, policy: Policy, every: u64) {
    let mut rng = Seed::new(member_sectors).draws();
    let mut bench = Bench::new(tree, member_sectors, policy);
    bench.fill(&mut rng);
    let (kept, flat) = (bench.members.clone(), bench.flat.clone());
    let mut turn = 0;
    for leaf in 0..tree.leaves() {
        bench.set_missing(leaf, true);
        let spared = bench.has_all_volumes();
        bench.set_missing(leaf, false);
        for valid in (0..=member_sectors).filter(|_| spared) {
            for volume in 0..flat.len() {
                let capacity = flat[volume].len() as u64;
                for (lba, sectors) in (0..capacity).flat_map(|lba| (1..=capacity - lba).map(move |n| (lba, n))) {
                    turn += 1;
                    if turn % every != 0 {
                        continue;
                    }
                    bench.set_rebuilding(leaf, valid);
                    bench.check_all(&mut rng);
                    one_write(&mut bench, volume, Extent::new(lba, sectors), &[], &mut rng);
                    bench.set_missing(leaf, false);
                    bench.members.clone_from(&kept);
                    bench.flat.clone_from(&flat);
                }
            }
        }
    }
}

fn refuses(bench: &mut Bench, rng: &mut CounterRng) {
    for volume in 0..bench.flat.len() {
        let node = bench.layout.volume_node(volume);
        let mut byte = [0];
        for write in [false, true] {
            let result = bench.run(volume, write, Extent::new(0, 1), &mut byte, rng);
            let refused = matches!(result, Err(RequestError::BeyondTolerance { .. }));
            assert_eq!(refused, bench.views.is_lost(node), "volume {volume} write {write}");
        }
    }
}

#[test]
fn parity_all_rotations() {
    for rotation in Rotation::ALL {
        for (parities, widths) in [(1, 2..=5), (2, 3..=5)] {
            for n in widths {
                for chunk in 1..=3u64 {
                    let tree = Tree::parity(parities, n, chunk, rotation);
                    for (i, policy) in policies().into_iter().enumerate() {
                        // Every extent for the first policy, a seeded-by-position sample of one in three for the others.
                        exhaust(&tree, chunk * 2, policy, if i == 0 && chunk < 3 { 1 } else { 3 });
                    }
                }
            }
        }
    }
}

#[test]
fn members_that_are_being_rebuilt() {
    let raid5 = |n, chunk| Tree::parity(1, n, chunk, Rotation::LeftSymmetric);
    let mut trees = trees_without_parity();
    trees.extend(Rotation::ALL.map(|rotation| Tree::parity(1, 4, 2, rotation)));
    trees.extend(Rotation::ALL.map(|rotation| Tree::parity(2, 5, 2, rotation)));
    trees.push(Tree::Mirror { children: vec![raid5(3, 1), raid5(3, 1)] });
    trees.push(Tree::striped_parity(1, 2, 3, 2, Rotation::RightAsymmetric));
    for tree in trees {
        for (i, policy) in policies().into_iter().enumerate() {
            exhaust_rebuilding(&tree, 6, policy, 31 + i as u64);
        }
    }
}

#[test]
fn wide_parity() {
    for (parities, n) in [(1, 7), (2, 6), (2, 7)] {
        for policy in policies() {
            let tree = Tree::parity(parities, n, 2, Rotation::LeftAsymmetric);
            exhaust(&tree, 4, policy, 29);
        }
    }
}

#[test]
fn stripes_that_are_spread_over_more_members() {
    for (n, width, parities) in [(3, 2, 1), (4, 3, 1), (5, 3, 1), (5, 5, 1), (4, 3, 2), (5, 3, 2), (5, 4, 2)] {
        for policy in policies() {
            exhaust(&declustered(n, width, parities, 1), u64::from(width) * 2, policy, 23);
            exhaust(&declustered(n, width, parities, 2), u64::from(width) * 2, policy, 11);
            exhaust_rebuilding(&declustered(n, width, parities, 1), u64::from(width) * 2, policy, 57);
        }
    }
}

/// Every member in a distributed spare, which is filled up to every sector, and back on a new one; then any other missing: what
/// can be given back is, before and after a write.
fn exhaust_spares(tree: &Tree, member_sectors: u64, policy: Policy, every: u64) {
    let mut rng = Seed::new(member_sectors).draws();
    let mut bench = Bench::new(tree, member_sectors, policy);
    bench.fill(&mut rng);
    let (kept, flat) = (bench.members.clone(), bench.flat.clone());
    let (n, capacity, mut turn) = (tree.leaves(), flat[0].len() as u64, 0);
    for (leaf, other) in (0..n).flat_map(|leaf| (0..n).map(move |other| (leaf, other))) {
        for valid in (0..=member_sectors).chain([u64::MAX]) {
            for (lba, sectors) in (0..capacity).flat_map(|lba| (1..=capacity - lba).map(move |n| (lba, n))) {
                turn += 1;
                if turn % every != 0 {
                    continue;
                }
                bench.set_missing(leaf, true);
                bench.set_spared(leaf, 0, valid);
                bench.members[leaf].iter_mut().for_each(|byte| *byte ^= 0xFF);
                match turn / every % 3 {
                    0 if other != leaf && tree.spares() > 1 && (valid == u64::MAX || tree.losses_borne() > 1) => {
                        bench.set_missing(other, true);
                        bench.set_spared(other, 1, valid);
                    }
                    1 if valid == u64::MAX => {
                        bench.members[leaf].clone_from(&kept[leaf]);
                        bench.set_rebuilding(leaf, lba);
                    }
                    _ => {}
                }
                let done = bench.write(0, Extent::new(lba, sectors), &mut rng);
                assert!(done.is_ok(), "{leaf} {other} {valid}: {done:?}");
                bench.check_all(&mut rng);
                bench.set_missing(other, true);
                check_each(tree, &mut bench, &mut rng);
                (0..n).for_each(|leaf| bench.set_missing(leaf, false));
                bench.members.clone_from(&kept);
                bench.flat.clone_from(&flat);
            }
        }
    }
}

/// Reads every sector that can be given back, and is refused every other.
fn check_each(tree: &Tree, bench: &mut Bench, rng: &mut CounterRng) {
    let sizes: Vec<u64> = bench.members.iter().map(|member| member.len() as u64).collect();
    for lba in 0..bench.whole(0).sectors {
        let losses = Losses {
            members: &sizes,
            missing: &|leaf| !bench.views.leaf(leaf as u32).writes(),
            bad: &|leaf, lba| !bench.views.leaf(leaf as u32).reads(Extent::new(lba, 1)),
            spare: &|leaf| bench.views.spare_of(&bench.layout, leaf as u32),
        };
        if recoverable(tree, 0, &losses, lba) {
            bench.check(0, Extent::new(lba, 1), rng);
        } else {
            let refused = bench.run(0, false, Extent::new(lba, 1), &mut [0], rng);
            assert!(matches!(refused, Err(RequestError::BeyondTolerance { .. })), "sector {lba}: {refused:?}");
        }
    }
}

#[test]
fn distributed_spares() {
    for (n, width, parities, spares) in
        [(3, 2, 1, 1), (4, 3, 1, 1), (5, 2, 1, 1), (5, 3, 1, 2), (4, 3, 2, 1), (5, 3, 2, 2)]
    {
        for policy in policies() {
            for chunk in [1, 2] {
                let tree = spared(n, width, parities, spares, chunk);
                exhaust(&tree, 4, policy, 23);
                exhaust_rebuilding(&tree, 4, policy, 57);
                exhaust_spares(&tree, 4, policy, 17);
            }
        }
    }
}

#[test]
fn levels_without_parity() {
    for tree in trees_without_parity() {
        for policy in policies() {
            exhaust(&tree, 6, policy, 2);
        }
    }
}

#[test]
fn nested_parity() {
    let raid5 = |n, chunk| Tree::parity(1, n, chunk, Rotation::LeftSymmetric);
    let trees = [
        Tree::striped_parity(1, 2, 3, 1, Rotation::LeftSymmetric),
        Tree::striped_parity(1, 2, 3, 2, Rotation::RightAsymmetric),
        // An outer chunk that is no multiple of the inner stripe.
        Tree::Stripe { chunk_bytes: 1, children: vec![raid5(3, 2), raid5(3, 2)] },
        Tree::Stripe { chunk_bytes: 3, children: vec![raid5(3, 2), raid5(3, 2)] },
        Tree::Mirror { children: vec![raid5(3, 1), raid5(3, 1)] },
        Tree::Parity {
            parities: 1,
            rotation: Rotation::LeftSymmetric,
            chunk_bytes: 2,
            children: vec![Tree::raid1(2), Tree::raid1(2), Tree::raid1(2)],
        },
        Tree::Parity {
            parities: 1,
            rotation: Rotation::LeftAsymmetric,
            chunk_bytes: 1,
            children: vec![raid5(3, 1), raid5(3, 1), raid5(3, 1)],
        },
        Tree::Parity {
            parities: 2,
            rotation: Rotation::LeftSymmetric,
            chunk_bytes: 1,
            children: vec![Tree::raid0(2, 1), Tree::member(), Tree::member(), Tree::member()],
        },
    ];
    for tree in trees {
        for policy in policies() {
            let every = if tree.leaves() > 8 { 97 } else { 13 };
            exhaust(&tree, 6, policy, every);
        }
    }
}
