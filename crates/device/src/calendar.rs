//! What a device will do next, in order of time.
//!
//! Invariants:
//! - Entries lie in descending order of time, of equal times the earlier entered last, so that the next one is the last and
//!   popping it moves nothing. A serial device holds one entry at a time (two while it prepays a write), a parallel
//!   one about as many as it has servers: insertion by shifting is cheaper than a heap at these sizes.
//! - Entries are small; what they finish lies in a slab and is written and read once.

use crate::service::Completion;
use raidlab_types::number::u32_from;
use raidlab_types::{Instant, OpKind};
use slab::Slab;

/// An operation in service, or one that is complete and not yet handed out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationInService {
    pub completion: Completion,
    pub sectors: u64,
    /// Device time spent after this read on the write that follows it.
    pub paired_ns: u64,
    pub kind: OpKind,
    /// The write of a prepaid pair: counted, but its time was spent with the read.
    pub prepaid: bool,
}

/// What an entry finishes: an index into the slab, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CalendarSlot(u32);

impl CalendarSlot {
    /// Nothing is finished; a server becomes free.
    pub(crate) const NONE: CalendarSlot = CalendarSlot(u32::MAX);
}

/// One thing that will happen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub at: Instant,
    /// The operation that completes, if any.
    pub slot: CalendarSlot,
    /// Whether a server becomes free.
    pub releases: bool,
}

/// The device's future.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    entries: Vec<Due>,
    running: Slab<OperationInService>,
}

impl Calendar {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Calendar { entries: Vec::with_capacity(capacity), running: Slab::with_capacity(capacity) }
    }

    /// Enters a completion, at its own time behind everything that happens then or earlier.
    #[inline(always)]
    pub(crate) fn finish(&mut self, running: OperationInService, releases: bool) {
        let at = running.completion.done;
        let slot = CalendarSlot(u32_from(self.running.insert(running)));
        self.insert(Due { at, slot, releases });
    }

    /// Operations in service, or complete and not yet handed out.
    #[inline]
    pub(crate) fn operations(&self) -> usize {
        self.running.len()
    }

    /// Enters the moment at which a server becomes free without anything being complete.
    pub(crate) fn release(&mut self, at: Instant) {
        self.insert(Due { at, slot: CalendarSlot::NONE, releases: true });
    }

    #[inline]
    fn insert(&mut self, due: Due) {
        let mut place = self.entries.len();
        self.entries.push(due);
        while place > 0 && self.entries[place - 1].at <= due.at {
            self.entries[place] = self.entries[place - 1];
            place -= 1;
        }
        self.entries[place] = due;
    }

    /// When the next thing happens.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.entries.last().map(|due| due.at)
    }

    /// Takes the next thing out if it has happened at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Due> {
        if self.entries.last()?.at <= now {
            self.entries.pop()
        } else {
            None
        }
    }

    /// What a popped entry finishes.
    #[inline(always)]
    pub(crate) fn take(&mut self, slot: CalendarSlot) -> Option<OperationInService> {
        self.running.try_remove(slot.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Service;
    use raidlab_types::OpId;

    fn running(id: u64, done: u64) -> OperationInService {
        let (at, done) = (Instant::ZERO, Instant::from_ns(done));
        let completion = Service::default().completion(OpId(id), at, at, done);
        OperationInService { completion, sectors: 1, paired_ns: 0, kind: OpKind::Read, prepaid: false }
    }

    #[test]
    fn entries_come_out_by_time_then_in_order_of_entry() {
        let mut calendar = Calendar::with_capacity(1);
        calendar.finish(running(1, 7), true);
        calendar.finish(running(2, 3), true);
        calendar.finish(running(3, 7), false);
        calendar.release(Instant::from_ns(5));
        assert_eq!(calendar.next_at(), Some(Instant::from_ns(3)));
        assert!(calendar.pop(Instant::from_ns(2)).is_none());
        let mut order = Vec::new();
        while let Some(due) = calendar.pop(Instant::from_ns(9)) {
            let id = calendar.take(due.slot).map(|running| running.completion.id.0);
            order.push((due.at.as_ns(), id, due.releases));
        }
        assert_eq!(order, [(3, Some(2), true), (5, None, true), (7, Some(1), true), (7, Some(3), false)]);
        assert_eq!(calendar.operations(), 0, "all places are free again");
        calendar.finish(running(4, 9), true);
        assert!(calendar.running.iter().all(|(place, _)| place < 3), "and used again");
    }
}
