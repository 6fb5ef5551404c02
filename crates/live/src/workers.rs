//! Threads that work while this one watches.
//!
//! Purpose: readers of files and streams of bytes run on threads of their own; the caller's observer is no thread's but
//! the caller's, and must be asked about seven times a second.
//!
//! Invariant: all threads are gone when `run_watched` returns; a panic of one is passed on.

use crate::config::PULSE;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Counts a thread as ended when it is dropped, whatever ended it, and wakes the watcher.
struct Ends<'a> {
    running: &'a AtomicUsize,
    watcher: Thread,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Release);
        self.watcher.unpark();
    }
}

/// Runs each of `works` on a thread and calls `watch` now and then while any does; the answers are in their order.
pub(crate) fn run_watched<T: Send, F: FnOnce() -> T + Send>(works: Vec<F>, watch: &mut dyn FnMut()) -> Vec<T> {
    let running = AtomicUsize::new(works.len());
    thread::scope(|scope| {
        let spawn = |work: F| {
            let ends = Ends { running: &running, watcher: thread::current() };
            scope.spawn(move || {
                let _ends = ends;
                work()
            })
        };
        let threads: Vec<_> = works.into_iter().map(spawn).collect();
        let pulse = Duration::from_nanos(PULSE.as_ns());
        let mut next = Instant::now() + pulse;
        while running.load(Ordering::Acquire) > 0 {
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
            // Threads that end wake this one before its time; and nobody is told of what is over.
            if running.load(Ordering::Acquire) > 0 && Instant::now() >= next {
                watch();
                next = Instant::now() + pulse;
            }
        }
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_in_order_and_a_panic_is_passed_on() {
        let works: Vec<_> = (0..5).map(|i| move || i * i).collect();
        assert_eq!(run_watched(works, &mut || ()), [0, 1, 4, 9, 16]);
        assert!(run_watched(Vec::<fn()>::new(), &mut || ()).is_empty());
        let (told, until_told) = std::sync::mpsc::channel();
        run_watched(vec![move || until_told.recv()], &mut || {
            let _ = told.send(());
        });
        let broken = std::panic::catch_unwind(|| run_watched(vec![|| panic!("on purpose")], &mut || ()));
        assert!(broken.is_err());
    }
}
