//! Random plans beyond the exhaustive ones: nested trees, unequal members, data offsets, missing members, bad sectors.
//!
//! Which reads must succeed is asked of an independent statement of the levels, sector by sector (`harness::trees`).

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use raidlab_hazard as harness;

use harness::trees::{random_tree, recoverable, sound, text, Losses, ReplayLine};
use harness::{as_md_in_parts, random_policy, Bench};
use proptest::prelude::*;
use raidlab_array::plan::BadExtent;
use raidlab_array::{Layout, Tree};
use raidlab_types::{CounterRng, Extent, RequestError, Seed};

/// A bench over members of unequal sizes, filled; `None` where a member is too small for the tree's chunks.
fn random_bench(tree: &Tree, rng: &mut CounterRng) -> Option<(Bench, Vec<u64>)> {
    let sizes: Vec<u64> = (0..tree.leaves()).map(|_| 12 + rng.below(12)).collect();
    let policy = random_policy(rng);
    let policy = as_md_in_parts(rng, policy);
    let mut bench = Bench::with_sizes(tree, &sizes, policy, 1)?;
    bench.fill(rng);
    Some((bench, sizes))
}

fn random_extent(bench: &Bench, rng: &mut CounterRng) -> Extent {
    let capacity = bench.whole(0).sectors;
    let lba = rng.below(capacity);
    let most = if rng.below(3) == 0 { capacity - lba } else { (capacity - lba).min(9) };
    Extent::new(lba, 1 + rng.below(most))
}

/// Takes members out while the tree bears it.
fn lose_some(bench: &mut Bench, rng: &mut CounterRng) -> Vec<usize> {
    let mut missing = Vec::new();
    for _ in 0..rng.below(4) {
        let leaf = rng.below(bench.members.len() as u64) as usize;
        bench.set_missing(leaf, true);
        if bench.has_all_volumes() {
            missing.push(leaf);
        } else {
            bench.set_missing(leaf, missing.contains(&leaf));
        }
    }
    missing
}

/// Replaces members, missing ones or others, by such as are rebuilt up to some sector and hold garbage behind it.
fn rebuild_some(bench: &mut Bench, rng: &mut CounterRng) {
    for _ in 0..rng.below(3) {
        let leaf = rng.below(bench.members.len() as u64) as usize;
        let sectors = bench.members[leaf].len() as u64;
        // What is not whole has missed writes.
        let valid = if bench.views.leaf(leaf as u32).is_whole() { rng.below(sectors + 1) } else { 0 };
        bench.set_rebuilding(leaf, valid);
        if !bench.has_all_volumes() {
            bench.set_missing(leaf, true);
        }
    }
}

/// Makes a few sectors of the members unreadable, and their content garbage.
fn spoil(bench: &mut Bench, rng: &mut CounterRng) {
    for _ in 0..rng.below(5) {
        let leaf = rng.below(bench.members.len() as u64) as u32;
        let offset = bench.layout.data_offset(leaf);
        let sectors = bench.members[leaf as usize].len() as u64 - offset;
        let bad = BadExtent { leaf, extent: Extent::new(rng.below(sectors), 1) };
        if !bench.bad.contains(&bad) {
            bench.members[leaf as usize][(offset + bad.extent.lba) as usize] ^= 0x3C;
            bench.bad.push(bad);
        }
    }
}

fn with_losses<T>(sizes: &[u64], bench: &Bench, ask: impl FnOnce(&Losses) -> T) -> T {
    ask(&Losses {
        members: sizes,
        missing: &|leaf| !bench.views.leaf(leaf as u32).writes(),
        bad: &|leaf, lba| {
            let sector = Extent::new(lba, 1);
            let is_bad = bench.bad.iter().any(|b| b.leaf == leaf as u32 && b.extent.overlaps(sector));
            is_bad || !bench.views.leaf(leaf as u32).reads(sector)
        },
        spare: &|leaf| bench.views.spare_of(&bench.layout, leaf as u32),
    })
}

fn readable(tree: &Tree, sizes: &[u64], bench: &Bench, extent: Extent) -> bool {
    with_losses(sizes, bench, |losses| (extent.lba..extent.end()).all(|lba| recoverable(tree, 0, losses, lba)))
}

/// Reads must succeed exactly where the content can be given back; writes must where all of it can.
fn one_request(tree: &Tree, sizes: &[u64], bench: &mut Bench, rng: &mut CounterRng) {
    let extent = random_extent(bench, rng);
    if rng.below(2) == 0 {
        let expected = readable(tree, sizes, bench, extent);
        let mut user = vec![0; extent.sectors as usize];
        match bench.run(0, false, extent, &mut user, rng) {
            Ok(()) => assert_eq!(user, bench.flat[0][extent.lba as usize..extent.end() as usize], "reading {extent}"),
            Err(RequestError::BeyondTolerance { .. }) => assert!(!expected, "{extent} could have been read"),
            Err(other) => panic!("{other}"),
        }
    } else {
        let must = with_losses(sizes, bench, |losses| sound(tree, 0, losses));
        let done = bench.write(0, extent, rng);
        assert!(done.is_ok() || !must, "{extent} could have been written: {done:?}");
    }
}

/// Every sector that can be given back holds what was written, with what is missing and bad now and with one more gone.
fn check(tree: &Tree, sizes: &[u64], bench: &mut Bench, rng: &mut CounterRng) {
    let readable_sectors = |bench: &mut Bench, rng: &mut CounterRng| {
        for lba in 0..bench.whole(0).sectors {
            let extent = Extent::new(lba, 1);
            if readable(tree, sizes, bench, extent) {
                bench.check(0, extent, rng);
            }
        }
    };
    readable_sectors(bench, rng);
    for more in 0..bench.members.len() {
        if bench.views.leaf(more as u32).is_whole() {
            bench.set_missing(more, true);
            if bench.has_all_volumes() {
                readable_sectors(bench, rng);
            }
            bench.set_missing(more, false);
        }
    }
}

fn scenario(seed: u64) {
    let mut rng = Seed::new(seed).draws();
    let tree = random_tree(&mut rng, 3);
    let Some((mut bench, sizes)) = random_bench(&tree, &mut rng) else { return };
    let _replay = ReplayLine(format!("scenario({seed}): {} of {sizes:?} under {:?}", text(&tree), bench.policy));
    let (members, flat) = (bench.members.clone(), bench.flat.clone());
    for _ in 0..3 {
        lose_some(&mut bench, &mut rng);
        rebuild_some(&mut bench, &mut rng);
        for _ in 0..4 {
            one_request(&tree, &sizes, &mut bench, &mut rng);
        }
        check(&tree, &sizes, &mut bench, &mut rng);
        spoil(&mut bench, &mut rng);
        for _ in 0..3 {
            one_request(&tree, &sizes, &mut bench, &mut rng);
        }
        check(&tree, &sizes, &mut bench, &mut rng);
        // What was missing or bad has stale content, and filling would not repair stripes partly beyond the capacity.
        bench.bad.clear();
        (0..bench.members.len()).for_each(|m| bench.set_missing(m, false));
        bench.members.clone_from(&members);
        bench.flat.clone_from(&flat);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_hold_their_content(seed in any::<u64>()) {
        scenario(seed);
    }
}

/// Wide arrays, where columns, bands and coefficients have room to go wrong.
#[test]
fn wide_arrays_hold_their_content() {
    for (i, rotation) in raidlab_array::Rotation::ALL.into_iter().enumerate() {
        for (parities, n) in [(1, 12), (2, 12), (2, 40)] {
            let tree = Tree::parity(parities, n, 3, rotation);
            let mut rng = Seed::new(i as u64).child(n as u64).draws();
            let (mut bench, sizes) = random_bench(&tree, &mut rng).expect("members are large enough");
            for _ in 0..20 {
                let missing = lose_some(&mut bench, &mut rng);
                spoil(&mut bench, &mut rng);
                (0..4).for_each(|_| one_request(&tree, &sizes, &mut bench, &mut rng));
                bench.bad.clear();
                missing.iter().for_each(|&m| bench.set_missing(m, false));
                bench.fill(&mut rng);
            }
        }
    }
}

#[test]
fn the_second_statement_agrees_with_the_layout() {
    for seed in 0..500 {
        let mut rng = Seed::new(seed).draws();
        let tree = random_tree(&mut rng, 3);
        let sizes: Vec<u64> = (0..tree.leaves()).map(|_| 12 + rng.below(12)).collect();
        let Ok(layout) = Layout::new(&tree, &sizes, 1) else { continue };
        // Sectors of the map that hold data must be the first holders that the second statement asks.
        let map = layout.map(24);
        for (leaf, cells) in map.cells.iter().enumerate() {
            for (row, cell) in cells.iter().enumerate() {
                if let raidlab_array::MapCell::Data { lba, .. } = cell {
                    let asked = std::cell::Cell::new(false);
                    let bad = |l: usize, at: u64| {
                        asked.set(asked.get() || (l == leaf && at == row as u64 * map.cell_sectors));
                        true
                    };
                    recoverable(
                        &tree,
                        0,
                        &Losses { members: &sizes, missing: &|_| false, bad: &bad, spare: &|_| None },
                        *lba,
                    );
                    assert!(asked.get(), "seed {seed}: {} leaf {leaf} row {row}", text(&tree));
                }
            }
        }
    }
}
