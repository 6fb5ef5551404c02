//! Random arrays under random loads with random failures, for as long as one likes; every byte is checked.
//!
//! `cargo test -p raidlab-live --test soak` runs a few; `RAIDLAB_SOAK_S=600 cargo test ...` runs ten minutes. A failure
//! names its seed, and `RAIDLAB_SOAK_SEED=N` runs that one alone.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "numbers here are small")]

mod common;

use common::{assert_verified, config, requests, try_run, workload, Place};
use raidlab_array::{ChunkAccesses, MirrorRead, ParityRead, ParityWrite, Policy, Rotation, Tree};
use raidlab_live::{ContentMode, Fault, FaultKind, LiveConfig, TargetSpec};
use raidlab_load::{LoadSpec, SizeSpec};
use raidlab_types::{CounterRng, LeafId, Seed, KIB, MIB};

fn pick<T: Copy>(random: &mut CounterRng, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

/// A tree at most `levels` deep, narrow enough for a small machine.
fn tree(random: &mut CounterRng, levels: u32) -> Tree {
    if levels == 0 {
        return Tree::Member { data_offset_bytes: pick(random, &[0, 0, 4 * KIB, 20 * KIB]) };
    }
    let chunk_bytes = pick(random, &[1, 2, 4, 7]) * 4 * KIB;
    let child = tree(random, levels - 1 - random.clone().below(u64::from(levels)) as u32);
    let children = |n: u64| vec![child.clone(); n as usize];
    match random.below(5) {
        4 => {
            let (parities, n) = (1 + random.below(2) as u32, 4 + random.below(3) as u32);
            let width = parities + 1 + random.below(u64::from(n - parities)) as u32;
            Tree::Declustered { width, parities, spares: 0, chunk_bytes, children: children(u64::from(n)) }
        }
        0 => Tree::Stripe { chunk_bytes, children: children(1 + random.below(4)) },
        1 => Tree::Mirror { children: children(2 + random.below(2)) },
        kind => {
            let parities = kind as u32 - 1;
            let rotation = pick(random, &Rotation::ALL);
            Tree::Parity { parities, rotation, chunk_bytes, children: children(3 + random.below(4)) }
        }
    }
}

fn policy(random: &mut CounterRng) -> Policy {
    let nearest = MirrorRead::Nearest { queue_override: Some(2) };
    let writes = [ParityWrite::ReadModifyWrite, ParityWrite::ReconstructWrite, ParityWrite::FewestAccesses];
    Policy {
        mirror_read: pick(random, &[MirrorRead::Primary, MirrorRead::RoundRobin, MirrorRead::ShortestQueue, nearest]),
        parity_write: pick(random, &writes),
        parity_write_tie: pick(random, &writes),
        parity_read: pick(random, &[ParityRead::Skip, ParityRead::ReadThrough]),
        parity_row_bytes: pick(random, &[0, 4 * KIB]),
        chunk_accesses: pick(random, &[ChunkAccesses::Joined, ChunkAccesses::Apart]),
        window_bytes: pick(random, &[4 * KIB, 64 * KIB, 8 * MIB]),
        windows_in_flight: pick(random, &[1, 2, 4]),
        ..Policy::default()
    }
}

/// Losses that the tree bears whichever they are: some from the start, the others in mid-run; and unreadable sectors of
/// one member where one more could be borne. (Not in a nested tree that has lost members too: a write to a group that
/// lacks a member and finds sectors unreadable fails, even where the level above could do without the group.)
fn losses(random: &mut CounterRng, tree: &Tree) -> (Vec<LeafId>, Vec<Fault>) {
    let mut leaves: Vec<LeafId> = (0..tree.leaves() as LeafId).collect();
    let is_flat = tree.children().iter().all(|child| child.children().is_empty());
    let (mut missing, mut faults) = (Vec::new(), Vec::new());
    for left in (0..tree.tolerance()).rev() {
        let leaf = leaves.swap_remove(random.below(leaves.len() as u64) as usize);
        let after_operations = random.below(400);
        match random.below(5) {
            0 => missing.push(leaf),
            1 => faults.push(Fault { leaf, after_operations, kind: FaultKind::Gone }),
            2 => faults.push(Fault { leaf, after_operations, kind: FaultKind::TakenOut }),
            3 if left == 0 && (is_flat || (missing.is_empty() && faults.is_empty())) => {
                let kind = FaultKind::Media { every: 1 + random.below(20) };
                faults.push(Fault { leaf, after_operations: 0, kind });
            }
            _ => {}
        }
    }
    (missing, faults)
}

fn cell(seed: u64, place: &Place) -> LiveConfig {
    let mut random = Seed::new(seed).named("soak").draws();
    let levels = pick(&mut random, &[1, 1, 2, 2, 3]);
    let tree = tree(&mut random, levels);
    let (missing, faults) = losses(&mut random, &tree);
    let size_bytes = pick(&mut random, &[64, 100, 300]) * 4 * KIB;
    // Memory answers at once; files (as a rule on a disk) in any order, but take longer.
    let targets = match seed % 4 {
        0 => place.files(tree.leaves(), size_bytes),
        _ => vec![TargetSpec::Memory { size_bytes }],
    };
    let longest = pick(&mut random, &[1, 9, 40]);
    let bytes: Vec<u64> = (1..=longest).map(|sectors| sectors * 4 * KIB).collect();
    let weights = bytes.iter().map(|&b| 1.0 / b as f64).collect();
    let read_fraction = pick(&mut random, &[0.1, 0.5, 0.8]);
    LiveConfig {
        seed,
        policy: policy(&mut random),
        targets,
        missing,
        faults,
        content: ContentMode::Verify,
        load: LoadSpec::Closed { depth: pick(&mut random, &[1, 4, 16, 64]) },
        workload: workload(read_fraction, SizeSpec::Table { bytes, weights }),
        limits: requests(1500),
        sector_bytes: Some(4096),
        ..config(tree)
    }
}

#[test]
fn random_arrays_keep_their_content() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("RAIDLAB_SOAK_S").unwrap_or(5);
    let seeds = match number("RAIDLAB_SOAK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..u64::MAX,
    };
    let place = Place::new();
    let (started, mut runs) = (std::time::Instant::now(), 0);
    for seed in seeds.take_while(|_| started.elapsed().as_secs() < seconds) {
        let cell = cell(seed, &place);
        // Some shapes do not fit their members (a chunk of a level above no multiple of the one below): not our matter.
        let Ok(result) = try_run(&cell) else { continue };
        let name = format!("seed {seed}: {:?}, missing {:?}, {:?}", cell.tree, cell.missing, cell.faults);
        assert_verified(&name, &result);
        assert_eq!(result.recorder.all().failed, 0, "{name}");
        runs += 1;
    }
    println!("{runs} arrays");
    assert!(runs > 0);
}
