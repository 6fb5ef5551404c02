//! Schedules: a tree, a policy, requests and faults, all drawn from one seed.

use crate::machine::{FaultRates, Machine};
use crate::trees::{copies_of, random_layout, random_tree, text, ReplayLine};
use crate::{as_md_in_parts, random_policy};
use raidlab_array::{Policy, Rotation, Tree};
use raidlab_types::{CounterRng, Seed};

/// The kinds of trees that schedules are drawn from.
pub const LEVELS: [&str; 10] = [
    "raid0",
    "raid1",
    "raid10",
    "raid10 of copies",
    "raid01",
    "raid5",
    "raid6",
    "raid50",
    "two volumes",
    "nested as it comes",
];

/// One of [`LEVELS`], and a tree of it.
fn common_tree(rng: &mut CounterRng) -> (usize, Tree) {
    let rotation = Rotation::ALL[rng.below(6) as usize];
    let chunk = 1 + rng.below(3);
    let level = rng.below(LEVELS.len() as u64) as usize;
    let tree = match level {
        0 => Tree::raid0(3, chunk),
        1 => Tree::raid1(2 + rng.below(2) as usize),
        2 => Tree::raid10(2, chunk),
        3 => {
            let layout = random_layout(rng);
            copies_of(layout, layout.copies as usize + rng.below(3) as usize, chunk)
        }
        4 => Tree::raid01(2, chunk),
        5 => Tree::parity(1, 3 + rng.below(3) as usize, chunk, rotation),
        6 => Tree::parity(2, 4 + rng.below(3) as usize, chunk, rotation),
        7 => Tree::striped_parity(1, 2, 3, chunk, rotation),
        8 => Tree::Independent { children: vec![Tree::raid1(2), Tree::parity(1, 3, chunk, rotation)] },
        _ => random_tree(rng, 2),
    };
    (level, tree)
}

fn random_machine_policy(rng: &mut CounterRng) -> Policy {
    let policy = random_policy(rng);
    let policy = as_md_in_parts(rng, policy);
    // Mostly windows of one stripe, so that requests have many.
    Policy { window_bytes: [1, 1, 8, 1 << 20][rng.below(4) as usize], windows_in_flight: rng.below(4) as u32, ..policy }
}

/// One run of 40 requests, all of it drawn from `seed`; `None` where a member is too small for the tree.
pub fn ran(seed: u64, trouble: FaultRates) -> Option<Machine> {
    let mut rng = Seed::new(seed).draws();
    let (level, tree) = common_tree(&mut rng);
    let sizes: Vec<u64> = (0..tree.leaves()).map(|_| 6 + rng.below(10)).collect();
    let policy = random_machine_policy(&mut rng);
    let depth = 1 + rng.below(12) as usize;
    let _replay =
        ReplayLine(format!("run({seed}, {trouble:?}): depth {depth}, {} of {sizes:?}, {policy:?}", text(&tree)));
    let mut machine = Machine::new(&tree, &sizes, policy, trouble, rng)?;
    machine.level = level;
    machine.run(40, depth);
    if !trouble.beyond || (trouble.deaths == 0 && machine.is_sound()) {
        machine.check();
    }
    Some(machine)
}

/// What may go wrong in schedules of any seed: each alone, all at once, and more than the levels bear.
const MIXES: [FaultRates; 6] = [
    FaultRates { deaths: 0, bad_sectors: 0, write_errors: 0, replacements: 0, beyond: false },
    FaultRates { deaths: 30, bad_sectors: 0, write_errors: 10, replacements: 0, beyond: false },
    FaultRates { deaths: 0, bad_sectors: 100, write_errors: 0, replacements: 0, beyond: false },
    FaultRates { deaths: 40, bad_sectors: 0, write_errors: 0, replacements: 150, beyond: false },
    FaultRates { deaths: 40, bad_sectors: 20, write_errors: 5, replacements: 150, beyond: false },
    FaultRates { deaths: 20, bad_sectors: 50, write_errors: 10, replacements: 50, beyond: true },
];

/// The schedule of a seed, with the faults that go with it. `None` where a member would be too small for the tree.
///
/// # Panics
/// Where the array breaks a promise: what it broke is the message.
pub fn schedule(seed: u64) -> Option<Machine> {
    ran(seed, MIXES[(seed % MIXES.len() as u64) as usize])
}
