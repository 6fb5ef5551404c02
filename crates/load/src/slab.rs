//! The tasks in flight: slots with a free list.
//!
//! Purpose: a task's state found by its request's tag, which is the slot's number. Slots are reused, the last freed
//! first (its memory is still in the cache); there are never more than were in flight at once.
//!
//! Invariants: a tag is unique among those in flight; completing a request that is not in flight panics, for it means
//! that the driver has lost count. Nothing is allocated but to grow beyond the room taken in advance.

use raidlab_types::number::{u32_from, usize_from};
use raidlab_types::{Instant, RequestKind, RequestTag};

/// A task's current request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// When it was meant to arrive: for a later step, the end of the one it depends on.
    pub(crate) intended: Instant,
    /// When it was issued: handed to the driver.
    pub(crate) issued: Instant,
    pub(crate) bytes: u64,
    pub(crate) lane: u32,
    /// Number of the step within the task.
    pub(crate) step: u16,
    pub(crate) kind: RequestKind,
    /// Whether it is in flight (rather than waiting to be polled).
    pub(crate) in_flight: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Slab {
    tasks: Vec<Task>,
    free: Vec<u32>,
}

impl Slab {
    pub(crate) fn with_room(slots: usize) -> Self {
        Slab { tasks: Vec::with_capacity(slots), free: Vec::with_capacity(slots) }
    }

    /// Tasks in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tasks.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, task: Task) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        // The task is passed to nobody by reference, so it is written from registers straight to its place.
        self.tasks[slot as usize] = task;
        slot
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        self.tasks.push(Task {
            intended: Instant::ZERO,
            issued: Instant::ZERO,
            bytes: 0,
            lane: 0,
            step: 0,
            kind: RequestKind::Read,
            in_flight: false,
        });
        // The free list must have room for all slots, so that freeing never allocates.
        if self.free.capacity() < self.tasks.len() {
            self.free.reserve(self.tasks.capacity());
        }
        u32_from(self.tasks.len() - 1)
    }

    /// The task whose request is in flight under this tag.
    #[inline]
    pub(crate) fn in_flight(&mut self, tag: RequestTag) -> &mut Task {
        match self.tasks.get_mut(usize_from(tag)) {
            Some(task) if task.in_flight => task,
            _ => not_in_flight(tag),
        }
    }

    /// The task of this slot.
    #[inline]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut Task {
        &mut self.tasks[slot as usize]
    }

    /// Frees the slot of a task whose request is no longer in flight.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        debug_assert!(!self.tasks[slot as usize].in_flight);
        self.free.push(slot);
    }
}

#[cold]
fn not_in_flight(tag: RequestTag) -> ! {
    panic!("request {tag} is not in flight: completed twice, or never issued")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        intended: Instant::ZERO,
        issued: Instant::ZERO,
        bytes: 0,
        lane: 0,
        step: 0,
        kind: RequestKind::Read,
        in_flight: false,
    };

    #[test]
    fn slots_are_reused_last_freed_first() {
        let mut slab = Slab::with_room(1);
        assert_eq!([slab.insert(TASK), slab.insert(TASK), slab.insert(TASK)], [0, 1, 2]);
        slab.remove(0);
        slab.remove(2);
        assert_eq!((slab.len(), slab.insert(TASK), slab.insert(TASK), slab.insert(TASK)), (1, 2, 0, 3));
    }

    #[test]
    #[should_panic(expected = "request 0 is not in flight")]
    fn what_is_not_in_flight_cannot_complete() {
        let mut slab = Slab::with_room(1);
        slab.insert(TASK);
        slab.in_flight(0);
    }
}
