//! What workers and their supervisor tell one another while a run lasts.
//!
//! Invariant: nothing here blocks; a worker reads one flag a turn and writes one number on a cache line of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One number a cache line, so that workers do not slow one another down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicU64);

/// Seen by all threads of a run.
#[derive(Debug)]
pub(super) struct Shared {
    stopped: AtomicBool,
    completed: Box<[Lane]>,
}

impl Shared {
    pub fn new(workers: usize) -> Shared {
        Shared { stopped: AtomicBool::new(false), completed: (0..workers).map(|_| Lane::default()).collect() }
    }

    /// All workers are to end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Worker `number` has completed so many requests.
    #[inline]
    pub fn report(&self, number: u32, completed: u64) {
        self.completed[number as usize].0.store(completed, Ordering::Relaxed);
    }

    /// Requests completed by all.
    pub fn completed(&self) -> u64 {
        self.completed.iter().map(|lane| lane.0.load(Ordering::Relaxed)).sum()
    }
}
