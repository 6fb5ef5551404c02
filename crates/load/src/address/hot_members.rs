//! `hot_members`: some members are asked more often than others.
//!
//! Purpose: the unaligned requests of Chen et al. (1990): the stripe uniform over the volume, the disk within it drawn
//! from unequal weights. The study's weights are not printed, so they are a named parameter.
//!
//! Invariants: the chunk in which a request begins has exactly the chance of its weight (save in the last stripes, where
//! long requests no longer fit); with an alignment below the chunk, a request that fits a chunk stays within it, so that
//! the weight is the member's; a longer one begins at the beginning of its chunk. Two or three random words.

use super::AddressSpace;
use crate::draw::WeightTable;
use crate::error::{join, weighted, SpecError};
use raidlab_types::{CounterRng, Lba};

/// Starts with unequal chances for the chunks of a stripe.
#[derive(Debug, Clone)]
pub(crate) struct HotMembers {
    capacity_sectors: u64,
    chunk_sectors: u64,
    stripe_sectors: u64,
    align_sectors: u64,
    columns: WeightTable,
}

impl HotMembers {
    pub(crate) fn new(key: &str, weights: &[f64], chunk_bytes: u64, site: AddressSpace) -> Result<Self, SpecError> {
        let columns = weighted(key, "weights", weights)?;
        let chunk_sectors = site.length(key, "chunk", chunk_bytes)?;
        let stripe_sectors = chunk_sectors.saturating_mul(weights.len() as u64);
        if stripe_sectors > site.capacity_sectors {
            let most = site.capacity_sectors / weights.len() as u64 * u64::from(site.sector_bytes);
            let message = format!(
                "a stripe of {} chunks of {chunk_bytes} bytes exceeds the volume; accepted: at most {most} bytes",
                weights.len()
            );
            return Err(SpecError::new(join(key, "chunk"), message));
        }
        let align_sectors = site.align()?;
        if !chunk_sectors.is_multiple_of(align_sectors) {
            let align = align_sectors * u64::from(site.sector_bytes);
            let message = format!("{align} bytes; accepted: what the chunk of {chunk_bytes} bytes is a multiple of");
            return Err(SpecError::new("workload.align", message));
        }
        Ok(HotMembers {
            capacity_sectors: site.capacity_sectors,
            chunk_sectors,
            stripe_sectors,
            align_sectors,
            columns,
        })
    }

    /// A request must fit from the last chunk of the first stripe on, whichever column is drawn.
    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors - (self.stripe_sectors - self.chunk_sectors)
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng, sectors: u64) -> Lba {
        let column = self.columns.draw(rng) as u64 * self.chunk_sectors;
        // What is taken up from the beginning of the chunk: all of the chunk, if the request may lie anywhere in it.
        let taken = sectors.max(self.chunk_sectors);
        let stripes = self.capacity_sectors.saturating_sub(column + taken) / self.stripe_sectors + 1;
        let start = rng.below(stripes) * self.stripe_sectors + column;
        if sectors >= self.chunk_sectors || self.align_sectors == self.chunk_sectors {
            return start;
        }
        let places = (self.chunk_sectors - sectors) / self.align_sectors + 1;
        start + rng.below(places) * self.align_sectors
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{chi2_equal, site, starts};
    use crate::address::AddressSpace;
    use crate::spec::AddressSpec;

    #[test]
    fn columns_by_weight_and_stripes_uniform() {
        // 4 columns of 10 sectors, 25 stripes, starts on chunks. Chi-squared: 3 and 24 degrees of freedom, 99.99 %
        // quantiles 21.1 and 58.6.
        let weights = vec![1.0, 2.0, 3.0, 4.0];
        let spec = AddressSpec::HotMembers { weights, chunk_bytes: 5120 };
        let aligned = AddressSpace { align_bytes: Some(5120), ..site(1000) };
        let (mut columns, mut stripes) = ([0.0; 4], [0; 25]);
        for start in starts(&spec, aligned, 10, 50_000) {
            assert_eq!(start % 10, 0);
            columns[(start / 10 % 4) as usize] += 1.0;
            stripes[(start / 40) as usize] += 1;
        }
        let cell = |(k, c): (usize, &f64)| (c - 5000.0 * (k + 1) as f64).powi(2) / (5000.0 * (k + 1) as f64);
        let chi2: f64 = columns.iter().enumerate().map(cell).sum();
        assert!(chi2 < 21.1 && chi2_equal(&stripes) < 58.6, "{columns:?} {stripes:?}");
    }

    #[test]
    fn a_small_request_stays_within_its_chunk() {
        let spec = AddressSpec::HotMembers { weights: vec![0.0, 1.0], chunk_bytes: 5120 };
        let mut offsets = [0; 8];
        for start in starts(&spec, site(200), 3, 16_000) {
            assert_eq!(start / 10 % 2, 1);
            offsets[(start % 10) as usize] += 1;
        }
        // 8 offsets, 7 degrees of freedom: 99.99 % quantile 29.9.
        assert!(chi2_equal(&offsets) < 29.9, "{offsets:?}");
    }
}
