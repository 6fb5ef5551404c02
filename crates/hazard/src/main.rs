//! Random schedules of requests and faults against the array, many a second; what one broke is told with its seed.
//!
//! Every promise is checked in every schedule: what is read was written ([`raidlab_hazard::model`]), each loss that may still
//! come leaves all of it readable, requests and rebuilds end, more losses than a level bears give errors and no wrong
//! data. One in a hundred is run a second time, and must do the same operations in the same order.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the program around schedules knows the clock")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use raidlab_hazard::schedule::{schedule, LEVELS};
use raidlab_types::number::f64_from;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: raidlab-hazard [--schedules N] [--seed S] [--jobs J] | --replay SEED";
const SAME_EVERY: u64 = 100;

struct Arguments {
    schedules: u64,
    seed: u64,
    jobs: u64,
    replay: Option<u64>,
}

fn arguments() -> Result<Arguments, String> {
    let jobs = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut found = Arguments { schedules: 10_000, seed: 1, jobs, replay: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word}: no value; {USAGE}"))?;
        let number: u64 = value.parse().map_err(|_| format!("{word}: {value} is not a whole number"))?;
        match word.as_str() {
            "--schedules" => found.schedules = number,
            "--seed" if number <= u64::from(u32::MAX) => found.seed = number,
            "--seed" => return Err(format!("--seed: {number} is above {}", u32::MAX)),
            "--jobs" if number > 0 => found.jobs = number,
            "--jobs" => return Err("--jobs: 0 is none; accepted: 1 or more".to_owned()),
            "--replay" => found.replay = Some(number),
            _ => return Err(format!("{word}: no such option; {USAGE}")),
        }
    }
    Ok(found)
}

/// ScheduleCounts of all that was run.
#[derive(Default)]
struct ScheduleCounts {
    begun: AtomicU64,
    done: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    rebuilt: AtomicU64,
    of_level: [AtomicU64; LEVELS.len()],
    broken: AtomicBool,
}

impl ScheduleCounts {
    /// Runs one schedule; whether every promise was kept.
    fn run(&self, seed: u64) -> bool {
        let told = std::panic::catch_unwind(|| {
            let Some(machine) = schedule(seed) else { return };
            if seed.is_multiple_of(SAME_EVERY) {
                let again = schedule(seed).map(|machine| machine.digest);
                assert_eq!(again, Some(machine.digest), "the same seed did other operations");
            }
            self.done.fetch_add(1, Relaxed);
            self.succeeded.fetch_add(machine.succeeded, Relaxed);
            self.failed.fetch_add(machine.failed, Relaxed);
            self.rebuilt.fetch_add(machine.rebuilt, Relaxed);
            self.of_level[machine.level].fetch_add(1, Relaxed);
        });
        if told.is_err() {
            eprintln!("broken: raidlab-hazard --replay {seed}");
        }
        told.is_ok()
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
            "{} requests done, {} refused, {} members rebuilt",
            self.succeeded.load(Relaxed),
            self.failed.load(Relaxed),
            self.rebuilt.load(Relaxed)
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

fn main() -> ExitCode {
    let asked = match arguments() {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("raidlab-hazard: {message}");
            return ExitCode::from(2);
        }
    };
    let kept = match asked.replay {
        Some(seed) => ScheduleCounts::default().run(seed),
        None => run_all(&asked),
    };
    ExitCode::from(u8::from(!kept))
}
