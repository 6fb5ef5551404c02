//! Random schedules of requests and faults against the array, many a second; what one broke is told with its seed.
//!
//! Every promise is checked in every schedule: what is read was written ([`raidlab_hazard::model`]), each loss that may still
//! come leaves all of it readable, requests and rebuilds end, more losses than a level bears give errors and no wrong
//! data. One in a hundred is run a second time, and must do the same operations in the same order.
//!
//! `--weakened` gives the array a deliberate fault (`all`: each in turn): schedules that do not catch it would not catch it in
//! a change either. What breaks a promise is made short before it is told.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the program around schedules knows the clock")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use raidlab_array::Weakness;
use raidlab_hazard::fault::MemberFault;
use raidlab_hazard::schedule::{BrokenPromise, FaultSchedule, CAN_BE_WEAKENED, LEVELS};
use raidlab_hazard::shrink::{catch, shrink, Catch, MOST_FAULTS, MOST_REQUESTS};
use raidlab_types::number::f64_from;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: raidlab-hazard [--schedules N] [--seed S] [--jobs J] [--weakened NAME|all]
       raidlab-hazard --replay SEED [--weakened NAME] [--requests I,J,... --faults FAULT,... --order N]";
const SAME_EVERY: u64 = 100;
const SCHEDULES: u64 = 100_000;

#[derive(Default)]
struct Arguments {
    schedules: u64,
    seed: u64,
    jobs: usize,
    replay: Option<u64>,
    weaknesses: Vec<Weakness>,
    requests: Option<Vec<u64>>,
    faults: Option<Vec<MemberFault>>,
    order: u64,
}

/// The words of a list, each read; `none` is an empty one.
fn list<T: FromStr>(word: &str, value: &str) -> Result<Vec<T>, String> {
    let parts = value.split(',').filter(|part| *part != "none");
    parts.map(|part| part.parse().map_err(|_| format!("{word}: {part} is none of its kind"))).collect()
}

fn weaknesses(value: &str) -> Result<Vec<Weakness>, String> {
    if !CAN_BE_WEAKENED {
        return Err("--weakened: deliberate faults are not built in; build with --features weakened".to_owned());
    }
    let found: Vec<Weakness> =
        Weakness::ALL.iter().copied().filter(|weakness| value == "all" || weakness.word() == value).collect();
    if found.is_empty() {
        let words: Vec<&str> = Weakness::ALL.iter().map(|weakness| weakness.word()).collect();
        return Err(format!("--weakened: {value} is no such fault; accepted: all, {}", words.join(", ")));
    }
    Ok(found)
}

fn arguments() -> Result<Arguments, String> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut found = Arguments { schedules: SCHEDULES, seed: 1, jobs, ..Arguments::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word}: no value\n{USAGE}"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is not a whole number"));
        match word.as_str() {
            "--schedules" => found.schedules = number()?,
            "--seed" => found.seed = number()?,
            "--jobs" => found.jobs = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--replay" => found.replay = Some(number()?),
            "--weakened" => found.weaknesses = weaknesses(&value)?,
            "--requests" => found.requests = Some(list(&word, &value)?),
            "--faults" => found.faults = Some(list(&word, &value)?),
            "--order" => found.order = number()?,
            _ => return Err(format!("{word}: no such option\n{USAGE}")),
        }
    }
    if found.seed > u64::from(u32::MAX) {
        return Err(format!("--seed: {}; accepted: at most {}", found.seed, u32::MAX));
    }
    if found.jobs == 0 || found.jobs > 1024 {
        return Err(format!("--jobs: {}; accepted: 1 to 1024", found.jobs));
    }
    if found.replay.is_some() && found.weaknesses.len() > 1 {
        return Err("--weakened: all with --replay; accepted: the name of one fault".to_owned());
    }
    Ok(found)
}

/// Runs a schedule; one in a hundred twice.
fn run(schedule: &FaultSchedule) -> Result<Option<raidlab_hazard::machine::Machine>, BrokenPromise> {
    let ran = schedule.run()?;
    if let Some(machine) = ran.as_ref().filter(|_| schedule.seed.is_multiple_of(SAME_EVERY)) {
        let again = schedule.run()?.map(|machine| machine.digest);
        if again != Some(machine.digest) {
            let what = "the same seed did other operations".to_owned();
            return Err(BrokenPromise { what, step: machine.now, offered: machine.offered, faults: Vec::new() });
        }
    }
    Ok(ran)
}

/// Tells of a broken promise, at once and then in short.
fn tell(schedule: FaultSchedule, broken: BrokenPromise) {
    eprintln!("broken: {}\n  --replay {}, to be made short", broken.what, schedule.seed);
    let (schedule, broken) = shrink(schedule, broken);
    eprintln!("broken: {}\n  {}\n  raidlab-hazard {schedule}", broken.what, schedule.tree());
}

/// ScheduleCounts of all that was run.
#[derive(Default)]
struct ScheduleCounts {
    begun: AtomicU64,
    done: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    rebuilt: AtomicU64,
    spared: AtomicU64,
    worn_out: AtomicU64,
    sat_out: AtomicU64,
    scrubbed: AtomicU64,
    rotten: AtomicU64,
    of_level: [AtomicU64; LEVELS.len()],
    broken: AtomicBool,
}

impl ScheduleCounts {
    /// Runs one schedule; whether every promise was kept.
    fn run(&self, seed: u64) -> bool {
        let schedule = FaultSchedule::of(seed);
        match run(&schedule) {
            Ok(None) => {}
            Ok(Some(machine)) => {
                self.done.fetch_add(1, Relaxed);
                self.succeeded.fetch_add(machine.succeeded, Relaxed);
                self.failed.fetch_add(machine.failed, Relaxed);
                self.rebuilt.fetch_add(machine.rebuilt, Relaxed);
                self.spared.fetch_add(machine.spared, Relaxed);
                self.worn_out.fetch_add(machine.worn_out, Relaxed);
                self.sat_out.fetch_add(machine.sat_out, Relaxed);
                self.scrubbed.fetch_add(machine.scrubbed, Relaxed);
                self.rotten.fetch_add(machine.rotten, Relaxed);
                self.of_level[machine.level].fetch_add(1, Relaxed);
            }
            Err(broken) => {
                tell(schedule, broken);
                return false;
            }
        }
        true
    }

    /// Runs schedules until none is left, or one has broken a promise.
    fn work(&self, first: u64, schedules: u64) {
        while !self.broken.load(Relaxed) {
            let number = self.begun.fetch_add(1, Relaxed);
            if number >= schedules {
                return;
            }
            if !self.run(first + number) {
                self.broken.store(true, Relaxed);
            }
        }
    }

    fn print(&self, took: Duration) {
        let done = self.done.load(Relaxed);
        let per_s = f64_from(done) / took.as_secs_f64();
        println!("{done} schedules in {:.1} s, {per_s:.0} a second", took.as_secs_f64());
        println!(
            "{} requests done, {} refused, {} members taken out for read errors, {} times one sat out, {} rebuilt, \
             {} begun in distributed spares, {} scrubs, {} rotten sectors mended",
            self.succeeded.load(Relaxed),
            self.failed.load(Relaxed),
            self.worn_out.load(Relaxed),
            self.sat_out.load(Relaxed),
            self.rebuilt.load(Relaxed),
            self.spared.load(Relaxed),
            self.scrubbed.load(Relaxed),
            self.rotten.load(Relaxed)
        );
        for (level, count) in LEVELS.iter().zip(&self.of_level) {
            println!("  {:4.1} %  {level}", 100.0 * f64_from(count.load(Relaxed)) / f64_from(done.max(1)));
        }
    }
}

fn run_all(asked: &Arguments) -> bool {
    let (counts, began) = (ScheduleCounts::default(), Instant::now());
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..asked.jobs).map(|_| scope.spawn(|| counts.work(asked.seed << 32, asked.schedules))).collect();
        let mut told = began;
        while workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if told.elapsed() >= Duration::from_secs(10) {
                told = Instant::now();
                eprintln!("{} of {} schedules", counts.done.load(Relaxed), asked.schedules);
            }
        }
    });
    counts.print(began.elapsed());
    !counts.broken.load(Relaxed)
}

/// Prints how the fault was caught; whether it was, and in short, and by its own doing.
fn told(weakness: Weakness, caught: Option<&Catch>) -> bool {
    let Some(found) = caught else {
        println!("NOT CAUGHT  {}: {}", weakness.word(), weakness.does());
        return false;
    };
    let Catch { schedules, schedule, broken } = found;
    let (requests, faults) = (schedule.requests.len(), schedule.fault_count());
    let without = FaultSchedule { weakness: None, ..schedule.clone() };
    let is_its_own = without.run().is_ok();
    let word = if !is_its_own {
        "BROKEN WITHOUT IT"
    } else if found.is_short() {
        "caught"
    } else {
        "TOO LONG"
    };
    println!("{word}  {}: {}", weakness.word(), weakness.does());
    println!("  after {schedules} schedules, with {requests} requests and {faults} faults of {}", schedule.tree());
    println!("  {}", broken.what.lines().next().unwrap_or_default());
    println!("  raidlab-hazard {schedule}");
    is_its_own && found.is_short()
}

/// Whether every one of these faults is caught.
fn all_caught(asked: &Arguments) -> bool {
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..asked.jobs {
            scope.spawn(|| {
                while let Some(&weakness) = asked.weaknesses.get(next.fetch_add(1, Relaxed)) {
                    let caught = catch(weakness, asked.seed << 32, asked.schedules);
                    let _one_at_a_time = printing.lock();
                    missed.fetch_add(usize::from(!told(weakness, caught.as_ref())), Relaxed);
                }
            });
        }
    });
    let (all, missed) = (asked.weaknesses.len(), missed.into_inner());
    println!(
        "{} of {all} deliberate faults caught, each by at most {MOST_REQUESTS} requests and {MOST_FAULTS} faults",
        all - missed
    );
    missed == 0
}

/// Repeats a schedule; whether every promise was kept.
fn replayed(seed: u64, asked: Arguments) -> bool {
    let drawn = FaultSchedule::of(seed);
    let requests = asked.requests.unwrap_or_else(|| drawn.requests.clone());
    let weakness = asked.weaknesses.first().copied();
    let schedule = FaultSchedule { requests, faults: asked.faults, order: asked.order, weakness, ..drawn };
    match run(&schedule) {
        Err(broken) => {
            let written = FaultSchedule { faults: Some(broken.faults), ..schedule };
            eprintln!("broken: {}\n  {}\n  raidlab-hazard {written}", broken.what, written.tree());
        }
        Ok(None) => println!("no array: a member is too small for {}", schedule.tree()),
        Ok(Some(machine)) => {
            println!(
                "kept: {} requests done, {} refused, {} members rebuilt",
                machine.succeeded, machine.failed, machine.rebuilt
            );
            return true;
        }
    }
    false
}

fn main() -> ExitCode {
    let asked = match arguments() {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("raidlab-hazard: {message}");
            return ExitCode::from(2);
        }
    };
    // A broken promise is told once it is short; it is met as a panic, many times on the way.
    std::panic::set_hook(Box::new(|_| {}));
    let kept = match asked.replay {
        Some(seed) => replayed(seed, asked),
        None if asked.weaknesses.is_empty() => run_all(&asked),
        None => all_caught(&asked),
    };
    ExitCode::from(u8::from(!kept))
}
