//! A station: c servers, first come, first served.
//!
//! Who comes first is served first, so when a job will be finished is known as it arrives: it takes the server that is free
//! the soonest. No queue is kept.
//!
//! Invariants:
//! - Work conserving; jobs start in order of arrival.
//! - A server with work beyond now is busy until then without a gap, so that what it has done by now is what it was given
//!   less that rest: `busy_ns` is exact for every window.

use crate::result::StationResult;
use raidlab_device::SharedBus;
use raidlab_types::number::u32_from;
use raidlab_types::{Duration, Instant};

/// A station and what it was given.
#[derive(Debug)]
pub(crate) struct Station {
    pub name: String,
    /// When each server will be free.
    free_at: Vec<Instant>,
    pub visits: u64,
    /// Work of all jobs since the totals were last cleared.
    work_ns: u64,
    pub wait_ns: u64,
    /// Where it is the bus of disks, which take it themselves.
    pub bus: Option<SharedBus>,
}

impl Station {
    pub(crate) fn new(name: &str, servers: u32) -> Self {
        let free_at = vec![Instant::ZERO; servers as usize];
        Station { name: name.to_string(), free_at, visits: 0, work_ns: 0, wait_ns: 0, bus: None }
    }

    /// What it did since the totals were last cleared, up to `now`.
    pub(crate) fn result(&self, now: Instant) -> StationResult {
        let (visits, busy_ns, wait_ns) = match &self.bus {
            Some(bus) => bus.totals(now.as_ns()),
            None => (self.visits, self.busy_ns(now), self.wait_ns),
        };
        StationResult { name: self.name.clone(), visits, busy_ns, wait_ns, servers: u32_from(self.free_at.len()) }
    }

    /// A job arrives that takes a server for `cost`; when it will be finished.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, cost: Duration) -> Instant {
        let free_at = match &mut self.free_at[..] {
            [only] => only,
            many => {
                let soonest = (0..many.len()).min_by_key(|&i| many[i]).unwrap_or(0);
                &mut many[soonest]
            }
        };
        let start = now.max(*free_at);
        *free_at = start + cost;
        self.visits += 1;
        self.work_ns += cost.as_ns();
        self.wait_ns += start.since(now).as_ns();
        *free_at
    }

    /// Work that another station does is counted here too, as a part of it that has a name of its own.
    pub(crate) fn note(&mut self, cost: Duration) {
        self.visits += 1;
        self.work_ns += cost.as_ns();
    }

    /// Time servers have worked since the totals were started, up to `now`.
    fn busy_ns(&self, now: Instant) -> u64 {
        self.work_ns.saturating_sub(self.rest_ns(now))
    }

    /// Work given and not yet done.
    fn rest_ns(&self, now: Instant) -> u64 {
        self.free_at.iter().map(|&at| at.max(now).since(now).as_ns()).sum()
    }

    /// Starts the totals anew, as at the end of a warm-up; what is in hand then is still to be done.
    pub(crate) fn reset_totals(&mut self, now: Instant) {
        if let Some(bus) = &self.bus {
            bus.reset_totals(now.as_ns());
        }
        (self.visits, self.wait_ns) = (0, 0);
        self.work_ns = self.rest_ns(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn jobs_wait_for_the_server_that_is_free_the_soonest() {
        let mut station = Station::new("bus", 2);
        let cost = |ns| Duration::from_ns(ns);
        let done = [(0, 100), (0, 30), (10, 30), (10, 30), (200, 5)].map(|(t, c)| station.arrive(at(t), cost(c)));
        assert_eq!(done, [at(100), at(30), at(60), at(90), at(205)]);
        assert_eq!((station.visits, station.wait_ns), (5, 20 + 50));
        assert_eq!(station.busy_ns(at(205)), 195);
    }

    #[test]
    fn what_was_done_by_now_is_exact() {
        let mut station = Station::new("bus", 1);
        station.arrive(at(0), Duration::from_ns(100));
        station.arrive(at(0), Duration::from_ns(100));
        assert_eq!(station.busy_ns(at(150)), 150);
        station.reset_totals(at(150));
        assert_eq!((station.busy_ns(at(150)), station.busy_ns(at(170)), station.visits), (0, 20, 0));
        assert_eq!(station.busy_ns(at(500)), 50);
    }
}
