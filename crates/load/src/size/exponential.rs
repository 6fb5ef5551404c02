//! `exponential`: many small requests, few large ones, in whole sectors.
//!
//! Purpose: the small sizes of Chen et al. (1990): mean 6 KB in whole 4 KB sectors, "1.5 sectors on average".
//!
//! Rounding. A request has at least one sector, so no plain rounding of an exponential keeps its mean when that is near a
//! sector: rounded up, a mean of 1.5 becomes 2.06 sectors; to the nearest and at least one, 1.76. So the mean of
//! the *rounded* size is what is held: sizes are exponentials rounded up, of the scale that makes the result's mean the one
//! asked for. That is the geometric distribution, the one memoryless distribution on 1, 2, 3, ... sectors
//! (and of all with this mean the one of greatest entropy); over many sectors it is the exponential again.
//!
//! Invariant: mean exactly `mean_bytes`, save what the longest possible request cuts off.

use super::SizeLimits;
use crate::draw;
use crate::error::{mean_sectors, SpecError};
use raidlab_types::number::saturating_u64;
use raidlab_types::CounterRng;

/// Exponential sizes that keep their mean in whole sectors.
#[derive(Debug, Clone)]
pub(crate) struct Exponential {
    /// Mean of the exponential before it is rounded up, in sectors.
    scale_sectors: f64,
    longest_sectors: u64,
}

impl Exponential {
    pub(crate) fn new(key: &str, mean_bytes: f64, room: SizeLimits) -> Result<Self, SpecError> {
        let mean = mean_sectors(key, mean_bytes, room.sector_bytes, room.longest_sectors)?;
        // Rounded up, an exponential of scale s has the mean 1 / (1 - exp(-1/s)); at a mean of exactly one sector the
        // logarithm is infinite and the scale 0, which is right.
        let scale_sectors = -1.0 / libm::log1p(-1.0 / mean);
        Ok(Exponential { scale_sectors, longest_sectors: room.longest_sectors })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> u64 {
        // Rounded up by truncating to an integer and adding one: `f64::ceil` is a slow call on the baseline x86-64. It
        // differs on whole numbers only, where an exponential has no chance to fall.
        saturating_u64(draw::exponential(rng) * self.scale_sectors).saturating_add(1).min(self.longest_sectors)
    }
}

#[cfg(test)]
mod tests {
    use crate::size::test_support::{moments, sizes, ROOM};
    use crate::spec::SizeSpec;

    #[test]
    fn six_kilobytes_are_one_and_a_half_sectors_on_average() {
        // Geometric with mean 1.5 has the standard deviation sqrt(0.75): five standard errors of 100,000 draws.
        let seen = sizes(&SizeSpec::Exponential { mean_bytes: 6144.0 }, ROOM, 100_000);
        let (mean, sd) = moments(&seen);
        assert!((mean - 1.5).abs() < 5.0 * 0.866 / 316.0, "mean {mean}");
        assert!((sd - 0.866).abs() < 0.025, "standard deviation {sd}");
        // Chi-squared over 1, 2, 3, 4, 5 and more sectors, 4 degrees of freedom: 99.99 % quantile 23.5.
        let expected = [2.0 / 3.0, 2.0 / 9.0, 2.0 / 27.0, 2.0 / 81.0, 1.0 / 81.0];
        let mut counts = [0.0; 5];
        seen.iter().for_each(|&s| counts[(s as usize - 1).min(4)] += 1.0);
        let chi2: f64 = counts.iter().zip(expected).map(|(c, p)| (c - p * 1e5f64).powi(2) / (p * 1e5)).sum();
        assert!(chi2 < 23.5, "chi-squared {chi2}");
    }

    #[test]
    fn over_many_sectors_it_is_the_exponential() {
        let (mean, sd) = moments(&sizes(&SizeSpec::Exponential { mean_bytes: 4_096_000.0 }, ROOM, 100_000));
        assert!((mean / 1000.0 - 1.0).abs() < 5.0 / 316.0 && (sd / 1000.0 - 1.0).abs() < 0.05, "{mean} {sd}");
        let (mean, _) = moments(&sizes(&SizeSpec::Exponential { mean_bytes: 4096.0 }, ROOM, 1000));
        assert_eq!(mean, 1.0);
    }
}
