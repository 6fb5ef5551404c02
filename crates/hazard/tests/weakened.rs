//! Schedules catch what is deliberately wrong with the array, and make short what catches it.
#![cfg(feature = "weakened")]

use raidlab_array::Weakness;
use raidlab_hazard::schedule::FaultSchedule;
use raidlab_hazard::shrink::{catch, Catch};

/// Seeds of their own, away from those that the program is usually asked for.
const FIRST: u64 = 77 << 32;

/// Whether the fault is caught within so many schedules by what is short, and by nothing that is not its doing. Panics are
/// what schedules are caught by: none is printed, so nothing is said by one here.
fn is_caught(weakness: Weakness, schedules: u64) -> Result<Catch, String> {
    let name = weakness.word();
    let found = catch(weakness, FIRST, schedules).ok_or(format!("{name}: not caught by {schedules} schedules"))?;
    if !found.is_short() {
        return Err(format!("{name}: caught by what is too long: {}", found.schedule));
    }
    let without = FaultSchedule { weakness: None, ..found.schedule.clone() };
    without.run().map_err(|broken| format!("{name}: {} is broken without it: {}", without, broken.what))?;
    Ok(found)
}

fn all_caught(weaknesses: impl Iterator<Item = Weakness>, schedules: u64) -> Result<(), String> {
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<String> = weaknesses.filter_map(|weakness| is_caught(weakness, schedules).err()).collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(missed.join("; "))
}

#[test]
fn those_that_a_few_schedules_catch() -> Result<(), String> {
    use Weakness::{BarrierNotKept, ErrorsAreSwallowed, NewMemberIsBelieved, ValidFromTheBeginning, WritesTakeNoLocks};
    let few = [BarrierNotKept, ErrorsAreSwallowed, NewMemberIsBelieved, ValidFromTheBeginning, WritesTakeNoLocks];
    all_caught(few.into_iter(), 1000)
}

#[test]
#[ignore = "slow"]
fn all_of_them() -> Result<(), String> {
    all_caught(Weakness::ALL.iter().copied(), 100_000)
}

#[test]
fn what_is_given_goes_as_it_went_when_it_was_drawn() -> Result<(), String> {
    for seed in FIRST..FIRST + 60 {
        let drawn = FaultSchedule::of(seed);
        let Some(machine) = drawn.run().map_err(|broken| broken.what)? else { continue };
        let given = FaultSchedule { faults: Some(machine.faults.clone()), ..drawn };
        let again = given.run().map_err(|broken| broken.what)?.map(|machine| machine.digest);
        if again != Some(machine.digest) {
            return Err(format!("{given} did other operations than when its faults were drawn"));
        }
    }
    Ok(())
}
