//! Points and lengths of time in whole nanoseconds, on whichever clock the caller keeps.

use crate::number::{f64_from, saturating_u64};
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

/// A point in time: nanoseconds since the start of the run, on the virtual or the real clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than every point a run can reach; the usual "never".
    pub const MAX: Instant = Instant(u64::MAX);

    /// The point `ns` nanoseconds after the start.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Instant(ns)
    }

    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero where `earlier` is in fact later.
    #[inline]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);

    /// `ns` nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Duration(ns)
    }

    /// `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Duration(us * 1_000)
    }

    /// `ms` milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Duration(ms * 1_000_000)
    }

    /// The nearest whole nanosecond to `seconds`; negative and non-finite values count as zero.
    #[inline]
    pub fn from_s_f64(seconds: f64) -> Self {
        Duration(saturating_u64(seconds * 1e9 + 0.5))
    }

    /// Nanoseconds.
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Seconds as a floating-point number, for reports only.
    #[inline]
    pub fn as_s_f64(self) -> f64 {
        f64_from(self.0) / 1e9
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, d: Duration) -> Instant {
        Instant(self.0 + d.0)
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        self.0 += d.0;
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, d: Duration) -> Duration {
        Duration(self.0 + d.0)
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        self.0 += d.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0 - d.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_saturates_and_seconds_round() {
        assert_eq!(Instant::from_ns(5).since(Instant::from_ns(9)), Duration::ZERO);
        assert_eq!(Duration::from_s_f64(1.5e-9).as_ns(), 2);
        assert_eq!(Duration::from_s_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_s_f64(-1.0), Duration::ZERO);
        assert_eq!((Instant::ZERO + Duration::from_ms(2)).as_ns(), 2_000_000);
    }
}
