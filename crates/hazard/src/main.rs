//! Runs schedules one after the other: `raidlab-hazard --schedules N --seed S`, or one of them: `--replay SEED`.

use raidlab_hazard::machine::FaultRates;
use raidlab_hazard::schedule::ran;
use std::time::Instant;

const FAULTS: FaultRates =
    FaultRates { deaths: 40, replacements: 150, bad_sectors: 20, write_errors: 5, beyond: false };

fn number(name: &str, default: Option<u64>) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    let Some(value) = arguments.next() else { return default };
    let Ok(number) = value.parse() else {
        eprintln!("{name}: {value} is not a whole number");
        std::process::exit(2);
    };
    Some(number)
}

fn main() {
    if let Some(seed) = number("--replay", None) {
        let ran = ran(seed, FAULTS).map(|m| (m.succeeded, m.failed, m.rebuilt));
        return println!("requests done, failed; members rebuilt: {ran:?}");
    }
    let (count, seed) = (number("--schedules", Some(1000)).unwrap_or(0), number("--seed", Some(1)).unwrap_or(0));
    let (began, mut done, mut rebuilt, mut failed) = (Instant::now(), 0_u64, 0, 0);
    for i in 0..count {
        if let Some(machine) = ran((seed << 32) + i, FAULTS) {
            (done, rebuilt, failed) = (done + 1, rebuilt + machine.rebuilt, failed + machine.failed);
        }
    }
    println!("{done} schedules in {:.1?}, {rebuilt} members rebuilt, {failed} requests failed", began.elapsed());
}
