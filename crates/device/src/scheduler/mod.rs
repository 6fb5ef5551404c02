//! The order in which a device serves what waits.
//!
//! One file a scheduler. Adding one: a file with a type that implements [`Schedule`], a variant of [`SchedulerSpec`] and of
//! [`Scheduler`] below, a line in each `match`, a test. The list:
//!
//! - `fifo`: in order of arrival.
//!
//! Invariant: what is pushed is taken exactly once, and `take` gives something whenever anything waits (a device never
//! idles while work waits). Writes of pairs that go to the head ([`PairPricing::Head`](crate::PairPricing::Head)) pass
//! before any scheduler and are none of its business.

mod fifo;

use fifo::Fifo;
use raidlab_types::{Instant, OpId, OpKind, Operation};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Which scheduler a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerSpec {
    /// In order of arrival.
    #[default]
    Fifo,
}

/// An operation that waits, in sectors of the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub id: OpId,
    pub kind: OpKind,
    /// The other half of a pair, or [`NO_PAIR`]: an `Option` would be two words to copy from where they were just written.
    pair: u64,
    pub lba: u64,
    pub sectors: u64,
    pub arrived: Instant,
    /// How many operations the device took before it; what random service times are a function of.
    pub sequence: u64,
}

/// Stands for no pair; no operation has this name, for windows and nodes are numbered from 0.
const NO_PAIR: u64 = u64::MAX;

impl Waiting {
    /// The operation as the device counts it: in its own sectors, arrived at `now` after `sequence` others.
    #[inline]
    pub fn new(op: &Operation, sectors_each: u64, now: Instant, sequence: u64) -> Self {
        Waiting {
            id: op.id,
            kind: op.kind,
            pair: op.pair_with.map_or(NO_PAIR, |other| other.0),
            lba: op.extent.lba * sectors_each,
            sectors: op.extent.sectors * sectors_each,
            arrived: now,
            sequence,
        }
    }

    /// The other half of its pair.
    #[inline]
    pub fn pair_with(&self) -> Option<OpId> {
        (self.pair != NO_PAIR).then_some(OpId(self.pair))
    }
}

/// What a scheduler can do.
pub(crate) trait Schedule {
    /// Takes in an operation.
    fn push(&mut self, waiting: Waiting);
    /// The one to serve next, with the arm after sector `position`.
    fn take(&mut self, position: u64) -> Option<Waiting>;
    /// How many wait.
    fn len(&self) -> usize;
}

/// One of the schedulers; an enum, for the call is on the hot path.
#[derive(Debug, Clone)]
enum Scheduler {
    Fifo(Fifo),
}

/// Everything that waits at one device: the scheduler, and before it what goes to the head.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    head: VecDeque<Waiting>,
    scheduler: Scheduler,
}

impl Queue {
    pub fn new(spec: SchedulerSpec) -> Self {
        let scheduler = match spec {
            SchedulerSpec::Fifo => Scheduler::Fifo(Fifo::default()),
        };
        Queue { head: VecDeque::new(), scheduler }
    }

    #[inline]
    pub fn push(&mut self, waiting: Waiting) {
        match &mut self.scheduler {
            Scheduler::Fifo(fifo) => fifo.push(waiting),
        }
    }

    /// Puts `waiting` before everything but what was put there earlier.
    #[inline]
    pub fn push_head(&mut self, waiting: Waiting) {
        self.head.push_back(waiting);
    }

    #[inline]
    pub fn take(&mut self, position: u64) -> Option<Waiting> {
        if !self.head.is_empty() {
            return self.take_head();
        }
        match &mut self.scheduler {
            Scheduler::Fifo(fifo) => fifo.take(position),
        }
    }

    #[cold]
    fn take_head(&mut self) -> Option<Waiting> {
        self.head.pop_front()
    }

    #[inline]
    pub fn len(&self) -> usize {
        let waiting = match &self.scheduler {
            Scheduler::Fifo(fifo) => fifo.len(),
        };
        self.head.len() + waiting
    }
}

#[cfg(test)]
pub(crate) fn waiting(id: u64) -> Waiting {
    Waiting {
        id: OpId(id),
        kind: OpKind::Read,
        pair: NO_PAIR,
        lba: id,
        sectors: 1,
        arrived: Instant::ZERO,
        sequence: id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_passes_first_and_keeps_its_own_order() {
        let mut queue = Queue::new(SchedulerSpec::Fifo);
        [1, 2].into_iter().for_each(|id| queue.push(waiting(id)));
        [8, 9].into_iter().for_each(|id| queue.push_head(waiting(id)));
        assert_eq!(queue.len(), 4);
        let order: Vec<u64> = std::iter::from_fn(|| queue.take(0)).map(|w| w.id.0).collect();
        assert_eq!(order, [8, 9, 1, 2]);
    }
}
