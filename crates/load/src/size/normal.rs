//! `normal`: sizes about a mean, rounded to the nearest sector.
//!
//! Purpose: the large sizes of Chen et al. (1990): mean 1.5 MB, standard deviation not printed.
//!
//! Rounding to the nearest sector keeps mean and deviation (Sheppard: the variance grows by a twelfth of a squared
//! sector). What falls below one sector becomes one, which lifts the mean by `sd * (phi(z) - z * Phi(-z))` at
//! `z = mean / sd`: 0.04 % of a standard deviation at `sd = mean / 3`, 8 % of it at `sd = mean`.
//! Invariant: one random word a size.

use super::SizeLimits;
use crate::draw;
use crate::error::{mean_sectors, positive, SpecError};
use raidlab_types::CounterRng;

/// Normal sizes.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    mean_sectors: f64,
    sd_sectors: f64,
    room: SizeLimits,
}

impl Normal {
    pub(crate) fn new(key: &str, mean_bytes: f64, sd_bytes: f64, room: SizeLimits) -> Result<Self, SpecError> {
        let mean_sectors = mean_sectors(key, mean_bytes, room.sector_bytes, room.longest_sectors)?;
        let sd_sectors = positive(key, "sd", sd_bytes)? / f64::from(room.sector_bytes);
        Ok(Normal { mean_sectors, sd_sectors, room })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> u64 {
        self.room.nearest(self.mean_sectors + self.sd_sectors * draw::normal(rng))
    }
}

#[cfg(test)]
mod tests {
    use crate::size::test_support::{moments, sizes, ROOM};
    use crate::spec::SizeSpec;

    #[test]
    fn mean_and_deviation_are_those_asked_for() {
        // 1.5 MB with a third of it in sectors of 4 KiB; five standard errors of 100,000 draws.
        let spec = SizeSpec::Normal { mean_bytes: 1_536_000.0, sd_bytes: 512_000.0 };
        let (mean, sd) = moments(&sizes(&spec, ROOM, 100_000));
        assert!((mean - 375.05).abs() < 5.0 * 125.0 / 316.0, "mean {mean}");
        assert!((sd / 125.0 - 1.0).abs() < 5.0 / 447.0, "standard deviation {sd}");
    }

    #[test]
    fn what_falls_below_a_sector_becomes_one() {
        let spec = SizeSpec::Normal { mean_bytes: 8192.0, sd_bytes: 8192.0 };
        let seen = sizes(&spec, ROOM, 100_000);
        // One sector: below 1.5 = mean - sd / 4, a share of 0.4013; five standard errors.
        let ones = seen.iter().filter(|&&s| s == 1).count() as f64 / 1e5;
        assert!((ones - 0.4013).abs() < 0.0078, "share {ones}");
    }
}
