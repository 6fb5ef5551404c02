//! What must hold of every system, kept and asserted in debug builds: nothing is lost, and Little's law.
//!
//! Purpose: whenever nothing is in flight, as much has left as has entered, every member operation that was started is
//! done, and the number in flight summed over time is exactly the sum of the times that requests were there: Little's
//! law from empty to empty, in whole nanoseconds, with no chance in it. The load's own record must say the same.
//!
//! Invariant: in release builds every method is empty and nothing is kept.
//!
//! Reference: J. D. C. Little, *A Proof for the Queuing Formula: L = lambda W*, Operations Research 9 (1961); for sample
//! paths S. Stidham, *A Last Word on L = lambda W*, Operations Research 22 (1974).

use raidlab_array::Array;
use raidlab_load::Recorder;
use raidlab_types::number::usize_from;
use raidlab_types::{Instant, RequestTag};

/// The account of one run.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// By tag: when the request in flight under it entered.
    entered_at: Vec<Option<Instant>>,
    in_flight: u64,
    /// Requests that have entered and left, operations that were started and are done.
    entered: u64,
    left: u64,
    started: u64,
    done: u64,
    /// Request-nanoseconds in flight until `changed`, and the sum of the times of those that have left.
    area: u128,
    times: u128,
    changed: Instant,
}

impl Ledger {
    const KEPT: bool = cfg!(debug_assertions);

    /// A request sets out from its client.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, tag: RequestTag) {
        if !Self::KEPT {
            return;
        }
        let tag = usize_from(tag);
        if tag >= self.entered_at.len() {
            self.entered_at.resize(tag + 1, None);
        }
        let before = self.entered_at[tag].replace(now);
        assert!(before.is_none(), "request {tag} entered at {now:?} while another of its tag was in flight");
        self.pass(now);
        self.in_flight += 1;
        self.entered += 1;
    }

    /// Its client has been told.
    #[inline]
    pub(crate) fn leave(&mut self, now: Instant, tag: RequestTag) {
        if !Self::KEPT {
            return;
        }
        let entered = self.entered_at.get_mut(usize_from(tag)).and_then(Option::take);
        let Some(entered) = entered else { panic!("request {tag} left at {now:?} without having entered") };
        self.pass(now);
        self.in_flight -= 1;
        self.left += 1;
        self.times += u128::from(now.since(entered).as_ns());
    }

    /// A member operation is started.
    #[inline]
    pub(crate) fn start(&mut self) {
        self.started += u64::from(Self::KEPT);
    }

    /// A member operation is done.
    #[inline]
    pub(crate) fn complete(&mut self) {
        self.done += u64::from(Self::KEPT);
    }

    fn pass(&mut self, now: Instant) {
        assert!(now >= self.changed, "time ran backwards from {:?} to {now:?}", self.changed);
        self.area += u128::from(self.in_flight) * u128::from(now.since(self.changed).as_ns());
        self.changed = now;
    }

    /// Whether nothing is in flight; never in release builds.
    #[inline]
    pub(crate) fn is_to_be_checked(&self) -> bool {
        Self::KEPT && self.in_flight == 0
    }

    /// Asserts what holds when nothing is in flight. `array`: one that must be idle then, and its members with it.
    /// `recorder`: of a load whose requests are those counted here.
    pub(crate) fn check(&self, array: Option<&Array>, recorder: Option<&Recorder>) {
        assert_eq!(self.entered, self.left, "requests entered and left");
        assert_eq!(self.area, self.times, "Little's law at {:?}: in flight over time, and sum of times", self.changed);
        if let Some(array) = array {
            assert_eq!(self.started, self.done, "member operations started and done at {:?}", self.changed);
            assert_eq!(array.check_idle(), Ok(()), "what an array without requests still has");
        }
        let Some(recorder) = recorder else { return };
        assert_eq!(recorder.in_flight_ns(self.changed), self.area, "the load's account of what is in flight");
        let (read, write) = (recorder.read(), recorder.write());
        // Where all that ever entered was counted, the recorded times are those very times.
        let counted_all = read.requests + write.requests == self.left && recorder.is_measuring();
        if counted_all {
            assert_eq!(read.service.sum_ns() + write.service.sum_ns(), self.times, "the times recorded");
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use raidlab_array::{Layout, Policy, Tree};

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    fn idle_array() -> Array {
        Array::new(Layout::new(&Tree::member(), &[64], 512).unwrap(), Policy::default())
    }

    #[test]
    fn times_add_up_to_what_was_in_flight() {
        let mut ledger = Ledger::default();
        let events = [(5, 0, true), (7, 1, true), (9, 0, false), (9, 0, true), (20, 1, false), (30, 0, false)];
        for (ns, tag, enters) in events {
            match enters {
                true => ledger.enter(at(ns), tag),
                false => ledger.leave(at(ns), tag),
            }
        }
        assert!(ledger.is_to_be_checked());
        ledger.check(Some(&idle_array()), None);
        assert_eq!((ledger.area, ledger.times), (4 + 13 + 21, 38));
    }

    #[test]
    #[should_panic(expected = "without having entered")]
    fn a_request_leaves_once() {
        let mut ledger = Ledger::default();
        ledger.enter(at(1), 3);
        ledger.leave(at(2), 3);
        ledger.leave(at(2), 3);
    }

    #[test]
    #[should_panic(expected = "member operations started and done")]
    fn lost_operations_are_found() {
        let mut ledger = Ledger::default();
        ledger.enter(at(1), 0);
        ledger.start();
        ledger.leave(at(2), 0);
        ledger.check(Some(&idle_array()), None);
    }

    #[test]
    #[should_panic(expected = "Little's law")]
    fn an_unequal_account_is_found() {
        let mut ledger = Ledger::default();
        ledger.enter(at(1), 0);
        ledger.leave(at(2), 0);
        ledger.times += 1;
        ledger.check(None, None);
    }
}
