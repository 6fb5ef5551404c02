//! `lognormal`: heavy-tailed sizes, rounded to the nearest sector.
//!
//! Purpose: file sizes as they are found. `mean_bytes` is the mean of the size itself; the logarithm's mean is
//! `ln(mean) - sigma^2 / 2`. Rounding is to the nearest sector, at least one; that lifts the mean where a
//! good part lies below half a sector, so choose means of several sectors.
//! Invariant: one random word a size.
//! Reference: J. R. Douceur and W. J. Bolosky, *A Large-Scale Study of File-System Contents*, SIGMETRICS 1999.

use super::SizeLimits;
use crate::draw;
use crate::error::{mean_sectors, positive, SpecError};
use raidlab_types::CounterRng;

/// Log-normal sizes.
#[derive(Debug, Clone)]
pub(crate) struct Lognormal {
    /// Mean of the logarithm of the size in sectors.
    mu: f64,
    sigma: f64,
    room: SizeLimits,
}

impl Lognormal {
    pub(crate) fn new(key: &str, mean_bytes: f64, sigma: f64, room: SizeLimits) -> Result<Self, SpecError> {
        let mean = mean_sectors(key, mean_bytes, room.sector_bytes, room.longest_sectors)?;
        let sigma = positive(key, "sigma", sigma)?;
        Ok(Lognormal { mu: libm::log(mean) - 0.5 * sigma * sigma, sigma, room })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> u64 {
        self.room.nearest(libm::exp(self.mu + self.sigma * draw::normal(rng)))
    }
}

#[cfg(test)]
mod tests {
    use crate::size::test_support::{moments, sizes, ROOM};
    use crate::spec::SizeSpec;

    #[test]
    fn mean_and_median_are_those_asked_for() {
        // Mean 250 sectors, sigma 0.8: deviation 250 * sqrt(exp(0.64) - 1) = 236.7; five standard errors.
        let mut seen = sizes(&SizeSpec::Lognormal { mean_bytes: 1_024_000.0, sigma: 0.8 }, ROOM, 100_000);
        let (mean, _) = moments(&seen);
        assert!((mean - 250.0).abs() < 5.0 * 236.7 / 316.0, "mean {mean}");
        seen.sort_unstable();
        // Median 250 * exp(-0.32) = 181.5; the standard error of the median is 1.2533 * 0.8 * 181.5 / 316 = 0.58.
        assert!((seen[50_000] as f64 - 181.5).abs() < 3.0, "median {}", seen[50_000]);
    }
}
