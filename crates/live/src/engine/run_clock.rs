//! The run's clock where time may go faster: the system's, so many times over.
//!
//! Purpose: at `speed` 5 an emulated disk does in a second what it would do in five. The engine knows only this clock, so
//! arrivals, warm-up, durations and all times reported are the disk's, directly comparable with the simulator; only what
//! concerns people and the system (reports of progress, the longest wait) is in real time, by [`RunClock::real`].
//!
//! Invariant: a double tells nanoseconds apart for a hundred days of the run's time. Like the clock beneath, it may go back
//! by some ticks from one processor to another; the engine's time does not (`Engine::tick`).

use crate::io::Clock;
use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::{Duration, Instant};

/// A clock and how fast it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunClock {
    clock: Clock,
    speed: f64,
}

impl RunClock {
    /// Starts at zero.
    pub(super) fn start(speed: f64) -> RunClock {
        RunClock { clock: Clock::start(), speed }
    }

    /// Starts anew, as fast as before.
    pub(super) fn restart(&mut self) {
        self.clock = Clock::start();
    }

    /// The run's time.
    #[inline]
    pub(super) fn now(&self) -> Instant {
        let now = self.clock.now();
        if self.speed == 1.0 {
            return now;
        }
        Instant::from_ns(saturating_u64(f64_from(now.as_ns()) * self.speed))
    }

    /// A length of real time, on this clock.
    pub(super) fn real(&self, length: Duration) -> Duration {
        Duration::from_s_f64(length.as_s_f64() * self.speed)
    }

    /// Watches the clock until it has come to `until`: sleeping would end tens of microseconds late.
    #[inline]
    pub(super) fn watch(&self, until: Instant) {
        while self.now() < until {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_so_many_times_faster() {
        let (slow, fast) = (RunClock::start(1.0), RunClock::start(1000.0));
        let before = slow.now();
        fast.watch(fast.now() + Duration::from_ms(1000));
        let real = slow.now().since(before);
        assert!(real >= Duration::from_us(999), "a second of the fast clock is a millisecond: {real:?}");
        assert!(fast.now().as_ns() >= 1000 * real.as_ns(), "started before, read after");
        assert_eq!(fast.real(Duration::from_ms(1)), Duration::from_ms(1000));
    }
}
