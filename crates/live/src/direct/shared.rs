//! What workers and their supervisor tell one another while a run lasts.
//!
//! Purpose: to stop all together, and where there are several workers to open and close one window for all: at the same
//! time to the nanosecond, after so many requests of all of them.
//!
//! Invariants:
//! - Nothing here blocks. A worker reads a flag a turn and writes a number on a cache line of its own; only while a limit
//!   counts requests of several workers is there a counter that all of them change.
//! - An opening is announced [`AHEAD`] of its time, so that every worker knows of it before it sees an event that late.
//! - Of a limit of n requests exactly n are counted.

use raidlab_load::{Limit, Limits};
use raidlab_types::number::i64_from;
use raidlab_types::{Duration, Instant};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::Thread;

/// How long ahead an opening is announced.
const AHEAD: Duration = Duration::from_ms(1);
/// No time has been said yet.
const UNSAID: u64 = u64::MAX;

/// One number a cache line, so that workers do not slow one another down.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(AtomicU64);

/// Seen by all threads of a run.
#[derive(Debug)]
pub(super) struct Shared {
    supervisor: Thread,
    stopped: AtomicBool,
    /// Workers whose window has opened, and closed.
    opened: AtomicU64,
    closed: AtomicU64,
    ended: AtomicU64,
    completed: Box<[Lane]>,
    /// The window of all workers together.
    pub window: SharedWindow,
}

/// The window of several workers.
#[derive(Debug)]
pub(super) struct SharedWindow {
    opens_at: AtomicU64,
    closes_at: AtomicU64,
    /// Completions still to come before the warm-up is over by count.
    warm_left: AtomicI64,
    warm_until: Instant,
    /// Completions still to be counted, where their number is limited.
    measure_left: Option<AtomicI64>,
}

impl Shared {
    pub(super) fn new(workers: usize, limits: &Limits, supervisor: Thread) -> Shared {
        Shared {
            supervisor,
            stopped: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            completed: (0..workers).map(|_| Lane::default()).collect(),
            window: SharedWindow::new(limits),
        }
    }

    /// All workers are to end.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Worker `number` has completed so many requests.
    #[inline]
    pub(super) fn report(&self, number: u32, completed: u64) {
        self.completed[number as usize].0.store(completed, Ordering::Relaxed);
    }

    /// Requests completed by all.
    pub(super) fn completed(&self) -> u64 {
        self.completed.iter().map(|lane| lane.0.load(Ordering::Relaxed)).sum()
    }

    /// A worker's window has opened, or closed.
    pub(super) fn window_is(&self, open: bool) {
        let count = if open { &self.opened } else { &self.closed };
        count.fetch_add(1, Ordering::Relaxed);
        self.supervisor.unpark();
    }

    /// A worker has nothing more to do.
    pub(super) fn worker_ended(&self) {
        self.ended.fetch_add(1, Ordering::Release);
        self.supervisor.unpark();
    }

    /// Whether all workers have ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire) >= self.completed.len() as u64
    }

    /// Whether a window has opened.
    pub(super) fn has_opened(&self) -> bool {
        self.opened.load(Ordering::Relaxed) > 0
    }

    /// Whether all windows have closed.
    pub(super) fn has_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) >= self.completed.len() as u64
    }
}

impl SharedWindow {
    fn new(limits: &Limits) -> SharedWindow {
        let Limits { warmup, measure } = limits;
        let warm_until = warmup.duration_s.map_or(Instant::ZERO, |s| Instant::ZERO + Duration::from_s_f64(s));
        let warm_requests = warmup.requests.unwrap_or(0);
        SharedWindow {
            // Without requests to wait for, the time is known from the start.
            opens_at: AtomicU64::new(if warm_requests == 0 { warm_until.as_ns() } else { UNSAID }),
            closes_at: AtomicU64::new(UNSAID),
            warm_left: AtomicI64::new(i64_from(warm_requests.min(i64::MAX as u64))),
            warm_until,
            measure_left: measure.requests.map(|n| AtomicI64::new(i64_from(n.min(i64::MAX as u64)))),
        }
    }

    /// The limits of a worker's own load: what is counted together is counted here.
    pub(super) fn limits_of_one(limits: &Limits) -> Limits {
        let requests = limits.measure.duration_s.is_none().then_some(u64::MAX);
        Limits { warmup: Limit::default(), measure: Limit { requests, ..limits.measure } }
    }

    /// When the window opens, once that is known.
    #[inline]
    pub(super) fn opens_at(&self) -> Option<Instant> {
        said(&self.opens_at)
    }

    /// When the last request was counted, once it was.
    #[inline]
    pub(super) fn closes_at(&self) -> Option<Instant> {
        said(&self.closes_at)
    }

    /// A request completed before the window opened.
    #[inline]
    pub(super) fn warmed_up(&self, now: Instant) {
        if self.opens_at.load(Ordering::Relaxed) == UNSAID && self.warm_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            let at = (now + AHEAD).max(self.warm_until);
            self.opens_at.store(at.as_ns(), Ordering::Relaxed);
        }
    }

    /// A request is about to be counted: whether it may be, and whether it is the last that may.
    #[inline]
    pub(super) fn count(&self, now: Instant) -> CountOutcome {
        let Some(left) = &self.measure_left else { return CountOutcome::Yes };
        match left.fetch_sub(1, Ordering::Relaxed) {
            2.. => CountOutcome::Yes,
            1 => {
                self.closes_at.store(now.as_ns(), Ordering::Relaxed);
                CountOutcome::Last
            }
            _ => CountOutcome::No,
        }
    }
}

fn said(time: &AtomicU64) -> Option<Instant> {
    let ns = time.load(Ordering::Relaxed);
    (ns != UNSAID).then(|| Instant::from_ns(ns))
}

/// Whether a completion counts towards a limit of all workers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountOutcome {
    Yes,
    /// And the window closes with it.
    Last,
    /// The limit was reached before.
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(requests: Option<u64>, duration_s: Option<f64>) -> Limit {
        Limit { requests, duration_s }
    }

    fn shared(workers: usize, limits: Limits) -> Shared {
        Shared::new(workers, &limits, std::thread::current())
    }

    #[test]
    fn a_limit_of_requests_counts_exactly_so_many() {
        let shared = shared(4, Limits { warmup: Limit::default(), measure: limit(Some(100_000), None) });
        let counted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (shared, counted) = (&shared, &counted);
                scope.spawn(move || {
                    let mut now = Instant::from_ns(worker);
                    loop {
                        now += Duration::from_ns(4);
                        match shared.window.count(now) {
                            CountOutcome::No => return,
                            _ => counted.fetch_add(1, Ordering::Relaxed),
                        };
                    }
                });
            }
        });
        assert_eq!(counted.into_inner(), 100_000);
        assert!(shared.window.closes_at().is_some());
    }

    #[test]
    fn an_opening_by_count_is_announced_ahead_and_not_before_its_duration() {
        let limits = |duration_s| Limits { warmup: limit(Some(3), duration_s), measure: limit(Some(1), None) };
        let (soon, late) = (shared(2, limits(None)), shared(2, limits(Some(1.0))));
        for shared in [&soon, &late] {
            (1..=2).for_each(|ns| shared.window.warmed_up(Instant::from_ns(ns)));
            assert_eq!(shared.window.opens_at(), None);
            (3..=9).for_each(|ns| shared.window.warmed_up(Instant::from_ns(ns)));
        }
        assert_eq!(soon.window.opens_at(), Some(Instant::from_ns(1_000_003)));
        assert_eq!(late.window.opens_at(), Some(Instant::from_ns(1_000_000_000)));
        let by_time = shared(2, Limits { warmup: limit(None, Some(2.0)), measure: limit(Some(1), None) });
        assert_eq!(by_time.window.opens_at(), Some(Instant::from_ns(2_000_000_000)));
    }
}
