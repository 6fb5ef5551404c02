//! A distribution of times: HDR buckets and an exact sum.
//!
//! Purpose: percentiles to three significant digits from 1 ns to an hour in fixed memory (270 KB), and means that carry
//! no rounding of buckets. Longer times count as an hour in the buckets but in full in the sum.
//!
//! The buckets are exactly those of an `hdrhistogram::Histogram` with bounds 1 to [`LONGEST_NS`] and
//! [`SIGNIFICANT_DIGITS`], kept as a bare array: recording is a shift and an add. That crate's `saturating_record` (which
//! also keeps a total, a minimum and a maximum) takes 1.8 times as long in a tight loop; in the whole cycle of a request,
//! with two records each, it costs some 550 instead of 420 instructions. [`Times::histogram`] converts.
//!
//! Bucket b holds 1024 values of width `2^b` ns, from `1024 * 2^b` on; the first 2048 ns are counted singly. So the index is
//! `b * 1024 + (ns >> b)`, with b the number of bits of `ns` beyond eleven.
//!
//! Invariants: recording allocates nothing; distributions of several recorders add up exactly, so percentiles are always
//! those of all values together, never averages of percentiles.
//!
//! Reference: G. Tene, HdrHistogram, <http://hdrhistogram.org>.

use hdrhistogram::Histogram;
use raidlab_types::number::{f64_from, saturating_u64};

/// The longest time told apart: one hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits kept.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// 2000 values must be told apart for three digits: eleven bits.
const SINGLE_BITS: u32 = 11;
const HALF: usize = 1 << (SINGLE_BITS - 1);
pub(super) const BUCKETS: usize = index_of(LONGEST_NS) + 1;

/// The bucket that counts `ns`.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "in constants there is no other way, and what is left has eleven bits"
)]
const fn index_of(ns: u64) -> usize {
    let shift = (u64::BITS - SINGLE_BITS) - (ns | (2 * HALF as u64 - 1)).leading_zeros();
    shift as usize * HALF + (ns >> shift) as usize
}

/// The longest time that bucket `index` counts.
pub(super) const fn upper_end(index: usize) -> u64 {
    if index < 2 * HALF {
        return index as u64;
    }
    let shift = index / HALF - 1;
    (((index - shift * HALF) as u64 + 1) << shift) - 1
}

/// Times recorded, in nanoseconds.
#[derive(Debug, Clone)]
pub struct Times {
    counts: Box<[u64; BUCKETS]>,
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
        let counts = vec![0; BUCKETS].into_boxed_slice().try_into();
        Times { counts: counts.expect("as long as it was made"), sum_ns: 0 }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[index_of(ns.min(LONGEST_NS))] += 1;
        self.sum_ns += u128::from(ns);
    }

    /// Counts one time here and one there; mostly they are the same, and then its bucket is worked out once.
    #[inline]
    pub(super) fn record_both(&mut self, ns: u64, other: &mut Times, other_ns: u64) {
        let index = index_of(ns.min(LONGEST_NS));
        self.counts[index] += 1;
        self.sum_ns += u128::from(ns);
        let index = if other_ns == ns { index } else { index_of(other_ns.min(LONGEST_NS)) };
        other.counts[index] += 1;
        other.sum_ns += u128::from(other_ns);
    }

    /// How many each bucket counts.
    pub(super) fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// Forgets all that was recorded.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.sum_ns = 0;
    }

    /// Adds all that `other` has counted.
    pub fn merge(&mut self, other: &Times) {
        self.counts.iter_mut().zip(other.counts.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_ns += other.sum_ns;
    }

    /// How many times were recorded (added up at each call).
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their exact sum.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Their exact mean; 0 where there are none.
    pub fn mean_ns(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => f64_from(self.sum_ns) / f64_from(count),
        }
    }

    /// The time that `percentile` per cent (0 to 100) did not exceed: the upper end of its bucket; 0 where there are none.
    pub fn percentile_ns(&self, percentile: f64) -> u64 {
        // The smallest number of values that is at least this share of them, and at least one.
        let wanted = saturating_u64((percentile.clamp(0.0, 100.0) / 100.0 * f64_from(self.count())).ceil()).max(1);
        let mut seen = 0;
        let reached = self.columns().find(|&(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, |(ns, _)| ns)
    }

    /// The share of times at or below `ns`, to the resolution of the buckets; 0 where there are none.
    pub fn share_within(&self, ns: u64) -> f64 {
        let within: u64 = self.counts[..=index_of(ns.min(LONGEST_NS))].iter().sum();
        match self.count() {
            0 => 0.0,
            count => f64_from(within) / f64_from(count),
        }
    }

    /// The buckets as columns: the upper end of each that holds any, and how many, in ascending order.
    pub fn columns(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        counts.filter(|(_, &count)| count > 0).map(|(index, &count)| (upper_end(index), count))
    }

    /// The same as a histogram of the `hdrhistogram` crate, for its queries and serialised forms.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = new_histogram();
        for (ns, count) in self.columns() {
            histogram.saturating_record_n(ns, count);
        }
        histogram
    }
}

fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, SIGNIFICANT_DIGITS).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_are_those_of_the_crate(values in prop::collection::vec((0u64..64, any::<u64>()), 1..200)) {
            // Of every magnitude, up to the longest.
            let values: Vec<u64> = values.iter().map(|(shift, v)| (v >> shift).min(LONGEST_NS)).collect();
            let (mut times, mut histogram) = (Times::new(), new_histogram());
            values.iter().for_each(|&v| { times.record(v); histogram.saturating_record(v); });
            let theirs: Vec<_> =
                histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
            prop_assert_eq!(times.columns().collect::<Vec<_>>(), theirs);
            for percentile in [0.1, 1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
                let (mine, theirs) = (times.percentile_ns(percentile), histogram.value_at_percentile(percentile));
                prop_assert_eq!(mine, theirs, "percentile {}", percentile);
            }
            prop_assert_eq!(times.histogram().len(), values.len() as u64);
        }
    }

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
