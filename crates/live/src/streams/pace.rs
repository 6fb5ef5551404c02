//! When the next block is due, and waiting for it.
//!
//! Invariants:
//! - A paced stream is never ahead of its pace: block i leaves when i + 1 blocks are due, so after any block, and at the
//!   end, bytes over time is at most the rate. One that has fallen behind catches up.
//! - Waiting ends early only if the run is stopped.

use crate::io::Clock;
use raidlab_types::number::{f64_from, saturating_u64};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long before a moment one stops sleeping and watches the clock: waking up takes about as long.
const WATCHFUL_NS: u64 = 60_000;
/// Longest sleep: how late a stop may be noticed.
const LONGEST_NS: u64 = 50_000_000;

/// The clock of a run and the flag that ends it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time<'a> {
    pub clock: Clock,
    pub stop: &'a AtomicBool,
}

impl Time<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        self.clock.now().as_ns()
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until then; the time it has become.
    pub(super) fn wait_until(&self, due_ns: u64) -> u64 {
        loop {
            let now = self.now_ns();
            let left = due_ns.saturating_sub(now);
            if left == 0 || self.stopped() {
                return now;
            }
            match left.saturating_sub(WATCHFUL_NS).min(LONGEST_NS) {
                0 => std::hint::spin_loop(),
                ns => std::thread::sleep(Duration::from_nanos(ns)),
            }
        }
    }
}

/// A constant rate from a start on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pacer {
    start_ns: u64,
    ns_per_byte: f64,
}

impl Pacer {
    pub(super) fn new(start_ns: u64, rate_mb_s: f64) -> Pacer {
        Pacer { start_ns, ns_per_byte: 1000.0 / rate_mb_s }
    }

    /// When so many bytes are due.
    pub(super) fn due_ns(&self, bytes: u64) -> u64 {
        self.start_ns + saturating_u64((f64_from(bytes) * self.ns_per_byte).ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_never_beaten() {
        let pace = Pacer::new(5, 0.3);
        for bytes in [1, 7, 4096, 1 << 30] {
            let elapsed = pace.due_ns(bytes) - 5;
            assert!(bytes as f64 / elapsed as f64 * 1000.0 <= 0.3 * (1.0 + 1e-12));
        }
    }

    #[test]
    fn waiting_ends_when_due_or_stopped_and_not_before() {
        let stop = AtomicBool::new(false);
        let time = Time { clock: Clock::start(), stop: &stop };
        assert!(time.wait_until(3_000_000) >= 3_000_000);
        assert!(time.now_ns() >= 3_000_000);
        stop.store(true, Ordering::Relaxed);
        assert!(time.wait_until(u64::MAX) < u64::MAX);
    }
}
