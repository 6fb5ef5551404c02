//! What a device will do next, in order of time.
//!
//! Invariant: entries lie in descending order of `(at, sequence)`, so that the next one is the last and popping it moves
//! nothing. A serial device holds one entry at a time (two while it prepays a write), a parallel one as many as
//! it has servers: insertion by shifting is cheaper than a heap at these sizes.

use crate::service::Completion;
use raidlab_types::{Instant, OpKind};

/// A completion with what is needed to account for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    pub completion: Completion,
    pub kind: OpKind,
    pub sectors: u64,
    /// Device time spent after this read on the write that follows it.
    pub paired_ns: u64,
    /// The write of a prepaid pair: counted, but its time was spent with the read.
    pub prepaid: bool,
}

/// One thing that will happen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    pub at: Instant,
    /// The operation that completes, if any.
    pub finished: Option<Finished>,
    /// Whether a server becomes free.
    pub releases: bool,
}

/// The device's future.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    entries: Vec<Due>,
}

impl Calendar {
    pub fn with_capacity(capacity: usize) -> Self {
        Calendar { entries: Vec::with_capacity(capacity) }
    }

    /// Enters `due` behind everything that happens at the same time or earlier.
    #[inline]
    pub fn insert(&mut self, due: Due) {
        let mut place = self.entries.len();
        while place > 0 && self.entries[place - 1].at <= due.at {
            place -= 1;
        }
        self.entries.insert(place, due);
    }

    /// When the next thing happens.
    #[inline]
    pub fn next_at(&self) -> Option<Instant> {
        self.entries.last().map(|due| due.at)
    }

    /// Takes the next thing out if it has happened at `now`.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<Due> {
        if self.entries.last()?.at <= now {
            self.entries.pop()
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(at: u64, releases: bool) -> Due {
        Due { at: Instant::from_ns(at), finished: None, releases }
    }

    #[test]
    fn entries_come_out_by_time_then_in_order_of_entry() {
        let mut calendar = Calendar::with_capacity(4);
        calendar.insert(release(7, true));
        calendar.insert(release(3, true));
        calendar.insert(release(7, false));
        assert_eq!(calendar.next_at(), Some(Instant::from_ns(3)));
        assert!(calendar.pop(Instant::from_ns(2)).is_none());
        let order: Vec<_> =
            std::iter::from_fn(|| calendar.pop(Instant::from_ns(9))).map(|d| (d.at.as_ns(), d.releases)).collect();
        assert_eq!(order, [(3, true), (7, true), (7, false)]);
    }
}
