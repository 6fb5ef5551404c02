//! A distribution of times: an HDR histogram and an exact sum.
//!
//! Purpose: percentiles to three significant digits from 1 ns to an hour in fixed memory (270 KB), and means that carry
//! no rounding of buckets. Longer times count as an hour in the histogram but in full in the sum.
//!
//! Invariants: recording allocates nothing; histograms of several recorders add up exactly, so percentiles are always
//! those of all values together, never averages of percentiles.
//!
//! Reference: G. Tene, HdrHistogram, <http://hdrhistogram.org>.

use hdrhistogram::Histogram;

/// The longest time told apart: one hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Times recorded, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Times {
    histogram: Histogram<u64>,
    sum_ns: u128,
}

impl Default for Times {
    fn default() -> Self {
        Times::new()
    }
}

impl Times {
    /// Nothing recorded yet; all memory is taken here.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS);
        Times { histogram: histogram.expect("constant bounds are valid"), sum_ns: 0 }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
        self.sum_ns += u128::from(ns);
    }

    /// Adds all that `other` has counted.
    pub fn merge(&mut self, other: &Times) {
        self.histogram.add(&other.histogram).expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their exact sum.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Their exact mean; 0 where there are none.
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum_ns as f64 / count as f64,
        }
    }

    /// The time that `percentile` per cent (0 to 100) did not exceed: the upper end of its bucket; 0 where there are none.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        self.histogram.value_at_percentile(percentile)
    }

    /// The share of times at or below `ns`, to the resolution of the buckets; 0 where there are none.
    pub fn share_within(&self, ns: u64) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.histogram.count_between(0, ns.min(LONGEST_NS)) as f64 / count as f64,
        }
    }

    /// The histogram as columns: the upper end of each bucket that holds any, and how many, in ascending order.
    pub fn columns(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// The underlying histogram.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_exact_and_percentiles_keep_three_digits() {
        let mut times = Times::new();
        (1..=100_000).for_each(|ns| times.record(ns));
        assert_eq!(times.sum_ns(), 5_000_050_000);
        assert_eq!(times.mean_ns(), 50_000.5);
        let p90 = times.percentile_ns(90.0) as f64;
        assert!((p90 / 90_000.0 - 1.0).abs() < 1e-3, "{p90}");
        assert!((times.share_within(25_000) - 0.25).abs() < 1e-3);
    }

    #[test]
    fn columns_hold_every_value_and_merge_adds() {
        let (mut first, mut second) = (Times::new(), Times::new());
        [0, 5, 5, 1_000_000].iter().for_each(|&ns| first.record(ns));
        [5, u64::MAX].iter().for_each(|&ns| second.record(ns));
        first.merge(&second);
        let columns: Vec<(u64, u64)> = first.columns().collect();
        assert_eq!(columns[..2], [(0, 1), (5, 3)]);
        assert_eq!(columns.iter().map(|c| c.1).sum::<u64>(), 6);
        assert_eq!(first.count(), 6);
        assert_eq!(first.sum_ns(), u128::from(u64::MAX) + 1_000_015);
        assert!(columns[3].0 >= LONGEST_NS);
    }

    #[test]
    fn nothing_recorded_is_zero_everywhere() {
        let times = Times::new();
        assert_eq!((times.count(), times.mean_ns(), times.percentile_ns(99.0)), (0, 0.0, 0));
        assert_eq!((times.share_within(5), times.columns().count()), (0.0, 0));
    }
}
