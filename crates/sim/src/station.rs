//! A station: c first-come-first-served servers.
//!
//! Invariants: work conserving; jobs start in order of arrival; `busy_ns` is the sum of the costs of finished jobs.

use raidlab_types::{Duration, Instant};
use std::collections::VecDeque;

/// A station and what waits for it.
#[derive(Debug)]
pub(crate) struct Station {
    pub name: &'static str,
    pub servers: u32,
    busy: u32,
    waiting: VecDeque<(u32, Duration)>,
    pub visits: u64,
    pub busy_ns: u64,
}

impl Station {
    pub fn new(name: &'static str, servers: u32) -> Self {
        Station { name, servers, busy: 0, waiting: VecDeque::new(), visits: 0, busy_ns: 0 }
    }

    /// A job arrives; the time it finishes if a server is free, else it waits.
    #[inline]
    pub fn arrive(&mut self, now: Instant, job: u32, cost: Duration) -> Option<Instant> {
        if self.busy == self.servers {
            self.waiting.push_back((job, cost));
            return None;
        }
        self.busy += 1;
        Some(self.start(now, cost))
    }

    /// A server has finished; the next job in line and the time it finishes.
    #[inline]
    pub fn finish(&mut self, now: Instant) -> Option<(u32, Instant)> {
        match self.waiting.pop_front() {
            Some((job, cost)) => Some((job, self.start(now, cost))),
            None => {
                self.busy -= 1;
                None
            }
        }
    }

    fn start(&mut self, now: Instant, cost: Duration) -> Instant {
        self.visits += 1;
        self.busy_ns += cost.as_ns();
        now + cost
    }

    /// Starts the totals anew, as at the end of a warm-up.
    pub fn reset_totals(&mut self) {
        (self.visits, self.busy_ns) = (0, 0);
    }
}
