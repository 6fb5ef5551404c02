//! The run's clock: nanoseconds since its start; and waking up in time.
//!
//! Purpose: a time for every request when it goes and when it comes back, at a cost that does not show. Where the kernel
//! itself trusts the processor's time stamp counter, it is read directly (some ten nanoseconds, no call); elsewhere the
//! system's monotonic clock.
//!
//! Invariants:
//! - The counter is used only if it runs at one rate in every state of the processor (`constant_tsc`, `nonstop_tsc`) and
//!   is the kernel's own clock source, which also means that the kernel has found it equal on all processors.
//! - Its rate is measured against CLOCK_MONOTONIC_RAW over at least [`BASELINE_NS`], and over the whole life of the
//!   process when a later run starts, so the error of a rate is below some millionths.
//!
//! Reference: Documentation/virt/kvm/x86/timekeeping.rst of the kernel; clock_gettime(2).

use raidlab_types::number::u64_from;
use raidlab_types::{Duration, Instant};
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use rustix::time::{clock_gettime, ClockId};
use std::num::NonZeroU64;
use std::sync::OnceLock;

/// Least time over which the rate of the counter is measured.
const BASELINE_NS: u64 = 20_000_000;
/// Most ticks that reading the system's clock may take, for a sighting to be of use: a thousandth of the baseline or less.
const WIDEST_TICKS: u64 = 20_000;

/// Started once a stage; read as often as one likes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// The processor's counter.
    Tsc {
        /// Where it stood at the start.
        start: u64,
        /// Nanoseconds of a tick, in 2^-64.
        tick_ns: u64,
    },
    /// The system's clock.
    System(std::time::Instant),
}

impl Clock {
    /// Starts it, on the best source there is.
    pub(crate) fn start() -> Clock {
        match tsc::tick_ns() {
            Some(tick_ns) => Clock::Tsc { start: tsc::read(), tick_ns },
            None => {
                tracing::debug!("the processor's counter is not trusted, falling back to the system's clock");
                Clock::System(std::time::Instant::now())
            }
        }
    }

    /// The same, started that much earlier.
    pub(crate) fn earlier_by(self, by: Duration) -> Clock {
        match self {
            Clock::Tsc { start, tick_ns } => {
                let ticks = u64_from((u128::from(by.as_ns()) << 64) / u128::from(tick_ns));
                Clock::Tsc { start: start.saturating_sub(ticks), tick_ns }
            }
            Clock::System(start) => {
                let by = std::time::Duration::from_nanos(by.as_ns());
                Clock::System(start.checked_sub(by).unwrap_or(start))
            }
        }
    }

    /// What its times are read from.
    pub(crate) fn source(&self) -> &'static str {
        match self {
            Clock::Tsc { .. } => "tsc",
            Clock::System(_) => "clock_gettime",
        }
    }

    /// Time since the start.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            // Another processor's counter may lag by some ticks: before the start is at the start.
            Clock::Tsc { start, tick_ns } => {
                let ticks = tsc::read().saturating_sub(*start);
                Instant::from_ns(((u128::from(ticks) * u128::from(*tick_ns)) >> 64) as u64)
            }
            Clock::System(start) => Instant::from_ns(u64_from(start.elapsed().as_nanos())),
        }
    }
}

/// The counter and the system's raw clock, read together.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    ticks: u64,
    raw_ns: u64,
}

impl Sighting {
    /// The closest of several tries: between the two readings of the counter lies the least time. None where even that is
    /// so much that the two say little about one another.
    fn take() -> Option<Sighting> {
        let one = |_| {
            let before = tsc::read();
            let raw_ns = raw_ns();
            let width = tsc::read().saturating_sub(before);
            (width, Sighting { ticks: before + width / 2, raw_ns })
        };
        let (width, sighting) = (0..32).map(one).min_by_key(|&(width, _)| width)?;
        (width < WIDEST_TICKS).then_some(sighting)
    }

    /// Nanoseconds of a tick in 2^-64, from here to `later`; none where a tick is a nanosecond or longer.
    fn tick_ns(self, later: Sighting) -> Option<u64> {
        let (ticks, ns) = (later.ticks.checked_sub(self.ticks)?, later.raw_ns.checked_sub(self.raw_ns)?);
        (ticks > ns && ns > 0).then(|| u64_from((u128::from(ns) << 64) / u128::from(ticks)))
    }
}

/// The clock that nobody adjusts.
fn raw_ns() -> u64 {
    let time = clock_gettime(ClockId::MonotonicRaw);
    u64_from(time.tv_sec) * 1_000_000_000 + u64_from(time.tv_nsec)
}

/// Whether the processor promises a counter of one rate in all states, and the kernel keeps its own time by it.
fn is_trusted(cpuinfo: &str, clock_source: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or("");
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    has("constant_tsc") && has("nonstop_tsc") && clock_source.trim() == "tsc"
}

#[cfg(target_arch = "x86_64")]
mod tsc {
    use super::*;

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has it.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Nanoseconds of a tick in 2^-64, if the counter can be trusted.
    pub(super) fn tick_ns() -> Option<u64> {
        static FIRST: OnceLock<Option<Sighting>> = OnceLock::new();
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        let first = FIRST.get_or_init(|| {
            let source = text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
            is_trusted(&text("/proc/cpuinfo"), &source).then(Sighting::take).flatten()
        });
        let first = (*first)?;
        let passed_ns = raw_ns().saturating_sub(first.raw_ns);
        std::thread::sleep(std::time::Duration::from_nanos(BASELINE_NS.saturating_sub(passed_ns)));
        first.tick_ns(Sighting::take()?)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod tsc {
    pub fn read() -> u64 {
        0
    }

    pub fn tick_ns() -> Option<u64> {
        None
    }
}

/// While it lives, the kernel wakes this thread when its time has come and not, to save power, up to 50 us later.
#[derive(Debug)]
pub(crate) struct PromptWakes {
    before_ns: Option<NonZeroU64>,
}

impl PromptWakes {
    pub(crate) fn new() -> PromptWakes {
        let before_ns = current_timer_slack().ok().and_then(NonZeroU64::new);
        // What is refused costs time, and nothing else.
        let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
        PromptWakes { before_ns }
    }
}

impl Drop for PromptWakes {
    fn drop(&mut self) {
        // None asks for the thread's default.
        let _ = set_current_timer_slack(self.before_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn it_agrees_with_the_clock_of_the_system() {
        let before_start = raw_ns();
        let clock = Clock::start();
        let after_start = raw_ns();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(2));
            let (before, now, after) = (raw_ns(), clock.now().as_ns(), raw_ns());
            // What lies between two readings bounds the third, however late this thread is woken; 100 millionths are left
            // for the rate (and for the system's clock being steered, where that is the source).
            let (least, most) = (before - after_start, after - before_start);
            let slack = 1000 + most / 10_000;
            assert!(now + slack >= least && now <= most + slack, "{least} <= {now} <= {most} with {clock:?}");
        }
    }

    #[test]
    fn one_that_started_earlier_is_ahead_by_that() {
        let clock = Clock::start();
        let earlier = clock.earlier_by(Duration::from_ns(5_000_000_000));
        let (before, now, after) = (clock.now().as_ns(), earlier.now().as_ns(), clock.now().as_ns());
        // A tick and its rounding.
        assert!(now + 10 >= before + 5_000_000_000 && now <= after + 5_000_000_010, "{before} {now} {after}");
    }

    #[test]
    fn it_never_runs_backwards_not_even_from_one_processor_to_another() {
        let clock = Clock::start();
        let (latest, over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let seen = latest.load(Ordering::SeqCst);
                        // Or the counter is read while the load is still on its way.
                        #[cfg(target_arch = "x86_64")]
                        // SAFETY: waits for earlier instructions, no more.
                        unsafe {
                            std::arch::x86_64::_mm_lfence()
                        };
                        let now = clock.now().as_ns();
                        assert!(now >= seen, "{now} after {seen}");
                        latest.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
            let mut last = clock.now();
            for _ in 0..1_000_000 {
                let now = clock.now();
                assert!(now >= last, "{now:?} after {last:?}");
                last = now;
            }
            over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_counter_is_trusted_only_with_all_three() {
        let flags = "processor : 0\nflags\t\t: fpu tsc constant_tsc rdtscp nonstop_tsc lm\n";
        assert!(is_trusted(flags, "tsc\n"));
        assert!(!is_trusted(flags, "hpet\n"));
        assert!(!is_trusted(flags, ""));
        assert!(!is_trusted("flags : tsc nonstop_tsc", "tsc"));
        assert!(!is_trusted("flags : tsc constant_tsc", "tsc"));
    }

    #[test]
    fn a_rate_is_ticks_over_nanoseconds() {
        let first = Sighting { ticks: 1000, raw_ns: 500 };
        let quarter = first.tick_ns(Sighting { ticks: 1000 + 4_000_000, raw_ns: 500 + 1_000_000 });
        assert_eq!(quarter, Some(1 << 62));
        assert_eq!(first.tick_ns(Sighting { ticks: 1100, raw_ns: 700 }), None, "slower than a nanosecond");
    }
}
