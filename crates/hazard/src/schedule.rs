//! Schedules: a tree, a policy, requests and faults, all drawn from one seed.

use crate::fault::{FaultRates, MemberFault, MemberFaultKind};
use crate::machine::{FaultSource, Machine};
use crate::trees::{copies_of, fewest_spares, random_layout, random_tree, spared, text, ReplayLine};
use crate::{as_md_in_parts, random_policy};
use raidlab_array::{MirrorRead, Policy, Rotation, SitOut, Tree, Weakness};
use raidlab_types::{CounterRng, Seed};
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The kinds of trees that schedules are drawn from.
pub const LEVELS: [&str; 11] = [
    "raid0",
    "raid1",
    "raid10",
    "raid10 of copies",
    "raid01",
    "raid5",
    "raid6",
    "raid50",
    "two volumes",
    "declustered",
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
        9 => {
            let (n, parities) = (4 + rng.below(4) as usize, 1 + rng.below(2) as u32);
            let width = parities + 1 + rng.below(n as u64 - u64::from(parities)).min(2) as u32;
            // That needs no draw of its own, so that all others stay what they were.
            let spares = if rotation.name().starts_with("left") { 0 } else { fewest_spares(n, width) };
            spared(n, width, parities, spares, 1 + rng.below(2))
        }
        _ => random_tree(rng, 2),
    };
    (level, tree)
}

fn random_machine_policy(rng: &mut CounterRng) -> Policy {
    let policy = random_policy(rng);
    let policy = as_md_in_parts(rng, policy);
    // Mostly windows of one stripe, so that requests have many.
    let window_bytes = [1, 1, 8, 1 << 20][rng.below(4) as usize];
    let windows_in_flight = rng.below(4) as u32;
    // Units of the array's own work: two, or many; and rows that are read whole.
    let stripe_cache_size = [0, 16][rng.below(2) as usize];
    // As md's own mirrors would: that needs no draw of its own, so that all others stay what they were.
    let resync_barrier = matches!(policy.mirror_read, MirrorRead::Md { .. });
    // Nor do these.
    let bad_blocks = windows_in_flight > 1;
    let max_read_errors = (windows_in_flight == 3 && window_bytes == 1).then_some(u32::from(stripe_cache_size > 0));
    // Whoever is slow for a few steps is read last for some more.
    let sit_out = (windows_in_flight == 2).then_some(SitOut { times: 1.5, hold: 10, rest: 60 });
    Policy {
        window_bytes,
        windows_in_flight,
        stripe_cache_size,
        resync_barrier,
        max_read_errors,
        bad_blocks,
        sit_out,
        ..policy
    }
}

/// What may go wrong in schedules of any seed: each alone, all at once, and more than the levels bear.
pub const MIXES: [FaultRates; 6] = [
    FaultRates { rot: true, ..NOTHING },
    FaultRates { deaths: 30, write_errors: 10, rot: true, ..NOTHING },
    FaultRates { bad_sectors: 100, scrubs: 20, ..NOTHING },
    FaultRates { deaths: 40, replacements: 150, scrubs: 10, rot: true, ..NOTHING },
    FaultRates { deaths: 40, bad_sectors: 20, write_errors: 5, replacements: 150, scrubs: 10, ..NOTHING },
    FaultRates { deaths: 20, bad_sectors: 50, write_errors: 10, replacements: 50, scrubs: 10, beyond: true, ..NOTHING },
];

const NOTHING: FaultRates =
    FaultRates { deaths: 0, bad_sectors: 0, write_errors: 0, replacements: 0, scrubs: 0, rot: false, beyond: false };

/// Requests of a schedule as it is drawn.
const REQUESTS: u64 = 40;

/// Whether arrays can be given deliberate faults: whether these are built in.
pub const CAN_BE_WEAKENED: bool = cfg!(feature = "weakened");

/// One run in full: of which array what is asked, what goes wrong, and in which order it all happens.
#[derive(Debug, Clone)]
pub struct FaultSchedule {
    /// The array and the requests.
    pub seed: u64,
    pub rates: FaultRates,
    /// Which of the seed's requests are offered, by number.
    pub requests: Vec<u64>,
    /// What goes wrong, instead of what the seed draws.
    pub faults: Option<Vec<MemberFault>>,
    /// The order of everything.
    pub order: u64,
    /// The array's deliberate fault, if it has one.
    pub weakness: Option<Weakness>,
}

/// A promise that was broken.
#[derive(Debug, Clone)]
pub struct BrokenPromise {
    pub what: String,
    /// The step in which it was seen.
    pub step: u64,
    /// Requests that had been offered, and what had gone wrong.
    pub offered: usize,
    pub faults: Vec<MemberFault>,
}

impl FaultSchedule {
    /// What a seed draws, with the faults that go with it.
    pub fn of(seed: u64) -> FaultSchedule {
        FaultSchedule::with(seed, MIXES[(seed % MIXES.len() as u64) as usize])
    }

    /// What a seed draws, with faults of these rates.
    pub fn with(seed: u64, rates: FaultRates) -> FaultSchedule {
        let requests = (1..=REQUESTS).collect();
        FaultSchedule { seed, rates, requests, faults: None, order: 0, weakness: None }
    }

    /// The array before the first request, and how many are in flight at most; `None` where a member is too small for the
    /// tree.
    fn begin(&self) -> Option<(Machine, usize)> {
        let seed = Seed::new(self.seed);
        let mut rng = seed.child(0).draws();
        let (level, tree) = common_tree(&mut rng);
        let sizes: Vec<u64> = (0..tree.leaves()).map(|_| 6 + rng.below(10)).collect();
        let policy = random_machine_policy(&mut rng);
        let depth = 1 + rng.below(12) as usize;
        let faults = FaultSource { rates: self.rates, given: self.faults.clone() };
        let mut machine = Machine::new(&tree, &sizes, policy, faults, seed.child(1), seed.child(2).child(self.order))?;
        machine.level = level;
        #[cfg(feature = "weakened")]
        self.weakness.into_iter().for_each(|weakness| machine.array.weaken(weakness));
        Some((machine, depth))
    }

    /// Its tree in the grammar that users write.
    pub fn tree(&self) -> String {
        text(&common_tree(&mut Seed::new(self.seed).child(0).draws()).1)
    }

    fn finish(&self, machine: &mut Machine, depth: usize) {
        machine.run(&self.requests, depth);
        if self.rates.rot {
            machine.rot_and_mend();
        }
        if !self.rates.beyond || (self.rates.deaths == 0 && machine.is_sound()) {
            machine.check();
        }
    }

    /// Runs it; `None` where a member is too small for the tree.
    ///
    /// # Errors
    /// The promise that the array broke.
    pub fn run(&self) -> Result<Option<Machine>, BrokenPromise> {
        let Some((mut machine, depth)) = self.begin() else { return Ok(None) };
        match catch_unwind(AssertUnwindSafe(|| self.finish(&mut machine, depth))) {
            Ok(()) => Ok(Some(machine)),
            Err(told) => {
                let text = told.downcast_ref::<String>().map(String::as_str).or(told.downcast_ref::<&str>().copied());
                let what = text.unwrap_or("a panic without a word").to_owned();
                let Machine { now: step, offered, faults, .. } = machine;
                Err(BrokenPromise { what, step, offered, faults })
            }
        }
    }
}

impl FaultSchedule {
    /// FaultSource among what is given to happen: a new member is none, nor are a spare and a scrub.
    pub fn fault_count(&self) -> usize {
        use MemberFaultKind::{Replacement, Scrub, Spare};
        let is_fault = |fault: &&MemberFault| !matches!(fault.kind, Replacement | Spare | Scrub(_));
        self.faults.iter().flatten().filter(is_fault).count()
    }
}

/// The options that repeat it.
impl fmt::Display for FaultSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--replay {}", self.seed)?;
        if let Some(weakness) = self.weakness {
            write!(f, " --weakened {}", weakness.word())?;
        }
        let list = |words: Vec<String>| if words.is_empty() { "none".to_owned() } else { words.join(",") };
        if let Some(faults) = &self.faults {
            let requests = list(self.requests.iter().map(u64::to_string).collect());
            let faults = list(faults.iter().map(MemberFault::to_string).collect());
            write!(f, " --requests {requests} --faults {faults} --order {}", self.order)?;
        }
        Ok(())
    }
}

/// Runs what a seed draws, with faults of these rates; `None` where a member is too small for the tree.
///
/// # Panics
/// Where the array breaks a promise: what it broke is the message.
pub fn ran(seed: u64, rates: FaultRates) -> Option<Machine> {
    let schedule = FaultSchedule::with(seed, rates);
    let _replay = ReplayLine(format!("run({seed}, {rates:?}) of {}", schedule.tree()));
    let (mut machine, depth) = schedule.begin()?;
    schedule.finish(&mut machine, depth);
    Some(machine)
}
