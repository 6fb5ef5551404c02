//! The tasks in flight: slots with a free list.
//!
//! Purpose: a task's state found by its request's tag, which is the slot's number. Slots are reused, the last freed
//! first (its memory is still in the cache); there are never more than were in flight at once.
//!
//! Invariants: a tag is unique among those in flight; freeing an empty slot panics, for it means that the driver
//! completed a request twice. Nothing is allocated but to grow beyond the room taken in advance.

use raidlab_types::{Instant, RequestKind};

/// A task and its one request in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    /// When the task was meant to arrive.
    pub(crate) task_intended: Instant,
    /// When its first request entered the array.
    pub(crate) task_issued: Instant,
    /// When the current request was meant to arrive: the end of the one it depends on.
    pub(crate) intended: Instant,
    /// When the current request entered the array.
    pub(crate) issued: Instant,
    /// Bytes of the current request.
    pub(crate) bytes: u64,
    /// Bytes of the requests before.
    pub(crate) bytes_before: u64,
    pub(crate) lane: u32,
    /// Number of the current step.
    pub(crate) step: u16,
    pub(crate) kind: RequestKind,
    /// Whether a request is in flight (rather than waiting to be polled).
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
        if let Some(slot) = self.free.pop() {
            self.tasks[slot as usize] = task;
            return slot;
        }
        self.grow(task)
    }

    #[cold]
    fn grow(&mut self, task: Task) -> u32 {
        self.tasks.push(task);
        // The free list must have room for all slots, so that freeing never allocates.
        if self.free.capacity() < self.tasks.len() {
            self.free.reserve(self.tasks.capacity());
        }
        (self.tasks.len() - 1) as u32
    }

    /// The task whose request is in flight under this tag.
    #[inline]
    pub(crate) fn in_flight(&mut self, tag: u64) -> &mut Task {
        match self.tasks.get_mut(tag as usize) {
            Some(task) if task.in_flight => task,
            _ => panic!("request {tag} is not in flight: completed twice, or never issued"),
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
