//! A bus that several disks share.
//!
//! Purpose: each disk prices a command as a whole when it begins, so it knows then when it will want the bus. It books the
//! bus from that time on, as long as it keeps it; what another has booked it waits for.
//!
//! Invariants: one disk at a time has the bus; who has it keeps it to the end of its hold. A disk that begins later gets a
//! gap before another's hold only if it is through by then; where both ask for the same time, the one whose command began
//! first has it, where a real bus would give it to the one that asked first or has the higher number.

use crate::timeline::Timeline;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct Bookings {
    line: Timeline,
    holds: u64,
    wait_ns: u64,
}

/// A bus that several disks share; clones are the same bus.
#[derive(Debug, Clone, Default)]
pub struct SharedBus(Arc<Mutex<Bookings>>);

impl SharedBus {
    fn bookings(&self) -> MutexGuard<'_, Bookings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Timeline::hold`].
    fn hold(&self, now: u64, from: u64, end_of: impl Fn(u64) -> u64) -> (u64, u64) {
        let mut bookings = self.bookings();
        let (start, end) = bookings.line.hold(now, from, end_of);
        bookings.holds += 1;
        bookings.wait_ns += start - from;
        (start, end)
    }

    /// How often it was held, how long, and how long disks waited for it, since the totals were started; in ns, up to `now`.
    pub fn totals(&self, now: u64) -> (u64, u64, u64) {
        let bookings = self.bookings();
        (bookings.holds, bookings.line.busy(now), bookings.wait_ns)
    }

    /// Starts the totals anew.
    pub fn reset_totals(&self, now: u64) {
        let mut bookings = self.bookings();
        (bookings.holds, bookings.wait_ns) = (0, 0);
        bookings.line.reset(now);
    }
}

/// The bus as a disk sees it that turns to a command at `now`: its own, unless it shares one.
#[derive(Debug, Clone, Copy)]
pub(super) struct BusAccess<'a> {
    pub now: u64,
    pub shared: Option<&'a SharedBus>,
}

impl BusAccess<'_> {
    /// Takes the bus for a hold that begins not before `from` and ends at `end_of` its beginning; when it does both.
    #[inline]
    pub(super) fn hold(self, from: u64, end_of: impl Fn(u64) -> u64) -> (u64, u64) {
        match self.shared {
            None => (from, end_of(from)),
            Some(bus) => bus.hold(self.now, from.max(self.now), end_of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_waits_and_who_does_not_never_does() {
        let bus = SharedBus::default();
        let (ours, theirs) = (BusAccess { now: 5, shared: Some(&bus) }, BusAccess { now: 8, shared: Some(&bus) });
        assert_eq!(ours.hold(100, |start| start + 50), (100, 150));
        assert_eq!(theirs.hold(120, |start| start + 10), (150, 160));
        assert_eq!(theirs.hold(20, |start| start + 10), (20, 30), "before it is free");
        assert_eq!(bus.totals(155), (3, 65, 30));
        bus.reset_totals(155);
        assert_eq!(bus.totals(200), (0, 5, 0));
        assert_eq!(BusAccess { now: 8, shared: None }.hold(120, |start| start + 10), (120, 130));
    }
}
