//! From a schedule that breaks a promise to a short one that does.
//!
//! Greedy: half of the requests are left out, then a quarter, then each alone, and so the faults. What is left is tried in a few
//! dozen other orders, with its faults at other times, for the order that broke the promise has lost its meaning without
//! what was left out.

use crate::fault::MemberFault;
use crate::schedule::{BrokenPromise, FaultSchedule};
use raidlab_array::Weakness;
use raidlab_types::{CounterRng, Seed};

/// Orders that are tried before something is said to be needed.
const ORDERS: u64 = 100;

/// Leaves out of `schedule`, which broke a promise so, whatever is not needed to break one.
pub fn shrink(schedule: FaultSchedule, broken: BrokenPromise) -> (FaultSchedule, BrokenPromise) {
    let mut best = (schedule, broken);
    // As it was, with its faults written down and without what came after.
    let written = FaultSchedule { faults: Some(best.1.faults.clone()), ..best.0.clone() };
    let _ = tried(&mut best, written, 1);
    loop {
        let before = size(&best.0);
        leave_out(
            &mut best,
            |schedule| schedule.requests.len(),
            |schedule, from, to| {
                schedule.requests.drain(from..to);
            },
        );
        let faults = |schedule: &FaultSchedule| schedule.faults.as_ref().map_or(0, Vec::len);
        leave_out(&mut best, faults, |schedule, from, to| {
            schedule.faults.get_or_insert_default().drain(from..to);
        });
        leave_out_pairs(&mut best);
        if size(&best.0) == before {
            return best;
        }
    }
}

/// How a deliberate fault was caught.
pub struct Catch {
    /// Which schedule was the first to do it.
    pub schedules: u64,
    /// A short one that does it.
    pub schedule: FaultSchedule,
    pub broken: BrokenPromise,
}

/// What a caught fault may need of a schedule.
pub const MOST_REQUESTS: usize = 12;
pub const MOST_FAULTS: usize = 3;
/// Schedules that are made short before it is believed that none gets shorter.
const SHORTENED: usize = 10;

impl Catch {
    /// Whether it takes no more requests and faults than one may read.
    pub fn is_short(&self) -> bool {
        self.schedule.requests.len() <= MOST_REQUESTS && self.schedule.fault_count() <= MOST_FAULTS
    }
}

/// Looks for schedules that catch the fault, from the seed `first` on, and makes them short until one is.
pub fn catch(weakness: Weakness, first: u64, schedules: u64) -> Option<Catch> {
    let mut catches = (0..schedules).filter_map(|number| {
        let schedule = FaultSchedule { weakness: Some(weakness), ..FaultSchedule::of(first + number) };
        let broken = schedule.run().err()?;
        let (schedule, broken) = shrink(schedule, broken);
        Some(Catch { schedules: number + 1, schedule, broken })
    });
    let found = catches.next()?;
    let schedules = found.schedules;
    let shorter = if found.is_short() { None } else { catches.take(SHORTENED).find(Catch::is_short) };
    Some(Catch { schedules, ..shorter.unwrap_or(found) })
}

fn size(schedule: &FaultSchedule) -> usize {
    schedule.requests.len() + schedule.faults.as_ref().map_or(0, Vec::len)
}

/// Leaves out runs of something of which there are `count`, from long to short.
fn leave_out(
    best: &mut (FaultSchedule, BrokenPromise),
    count: impl Fn(&FaultSchedule) -> usize,
    drain: impl Fn(&mut FaultSchedule, usize, usize),
) {
    let mut run = count(&best.0).div_ceil(2);
    while run > 0 {
        let mut from = 0;
        while from < count(&best.0) {
            let mut candidate = best.0.clone();
            drain(&mut candidate, from, (from + run).min(count(&best.0)));
            if !tried(best, candidate, ORDERS) {
                from += run;
            }
        }
        run = if run == 1 { 0 } else { run.div_ceil(2) };
    }
}

/// Leaves out two faults at once: a loss and the new member after it.
fn leave_out_pairs(best: &mut (FaultSchedule, BrokenPromise)) {
    let count = |best: &(FaultSchedule, BrokenPromise)| best.0.faults.as_ref().map_or(0, Vec::len);
    let mut first = 0;
    while first + 2 < count(best) {
        // Neighbours have been tried.
        let left_out = (first + 2..count(best)).any(|second| {
            let mut candidate = best.0.clone();
            let faults = candidate.faults.get_or_insert_default();
            faults.remove(second);
            faults.remove(first);
            tried(best, candidate, ORDERS)
        });
        first += usize::from(!left_out);
    }
}

/// Takes the candidate if it breaks a promise in one of so many orders.
fn tried(best: &mut (FaultSchedule, BrokenPromise), candidate: FaultSchedule, orders: u64) -> bool {
    let mut rng = Seed::new(candidate.order).draws();
    for order in 0..orders {
        let mut next = candidate.clone();
        if order > 0 {
            next.order = rng.next_u64() >> 32;
            if order % 2 == 0 {
                retime(next.faults.as_deref_mut().unwrap_or_default(), best.1.step, &mut rng);
            }
        }
        if let Err(broken) = next.run() {
            let mut short = next.clone();
            short.requests.truncate(broken.offered);
            short.faults = Some(broken.faults.clone());
            *best = match short.run() {
                Err(broken) => (short, broken),
                Ok(_) => (next, broken),
            };
            return true;
        }
    }
    false
}

/// Other times for faults, in the same order.
fn retime(faults: &mut [MemberFault], last: u64, rng: &mut CounterRng) {
    let mut times: Vec<u64> = faults.iter().map(|_| 1 + rng.below(last + 1)).collect();
    times.sort_unstable();
    faults.iter_mut().zip(times).for_each(|(fault, at)| fault.at = at);
}
