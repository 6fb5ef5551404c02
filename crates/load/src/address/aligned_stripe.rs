//! `aligned_stripe`: requests aligned as in the Berkeley study.
//!
//! Purpose: *aligned* requests of Chen et al. (1990): a stripe or more begins on, or is shifted to end on, a stripe
//! boundary, either with equal chance (the study does not say how often), so at most one stripe is partial; a smaller
//! request begins on a uniformly drawn chunk.
//!
//! Invariant: two random words; of the places where a request fits, each has the same chance.

use super::AddressSpace;
use crate::error::{join, SpecError};
use raidlab_types::{CounterRng, Lba};

/// Stripe-aligned starts.
#[derive(Debug, Clone)]
pub(crate) struct AlignedStripe {
    capacity_sectors: u64,
    stripe_sectors: u64,
    chunk_sectors: u64,
}

impl AlignedStripe {
    pub(crate) fn new(key: &str, stripe_bytes: u64, chunk_bytes: u64, site: AddressSpace) -> Result<Self, SpecError> {
        let stripe_sectors = site.length(key, "stripe", stripe_bytes)?;
        let chunk_sectors = site.length(key, "chunk", chunk_bytes)?;
        if !stripe_sectors.is_multiple_of(chunk_sectors) {
            let message =
                format!("{stripe_bytes} bytes are not whole chunks; accepted: a multiple of {chunk_bytes} bytes");
            return Err(SpecError::new(join(key, "stripe"), message));
        }
        Ok(AlignedStripe { capacity_sectors: site.capacity_sectors, stripe_sectors, chunk_sectors })
    }

    /// Whole stripes only: a request that ends on a boundary must fit too.
    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors / self.stripe_sectors * self.stripe_sectors
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng, sectors: u64) -> Lba {
        let at_end = rng.next_u64() >> 63 == 1;
        if sectors < self.stripe_sectors {
            return rng.below((self.capacity_sectors - sectors) / self.chunk_sectors + 1) * self.chunk_sectors;
        }
        if at_end {
            let first = sectors.div_ceil(self.stripe_sectors);
            let boundaries = self.capacity_sectors / self.stripe_sectors - first + 1;
            return (first + rng.below(boundaries)) * self.stripe_sectors - sectors;
        }
        rng.below((self.capacity_sectors - sectors) / self.stripe_sectors + 1) * self.stripe_sectors
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{chi2_equal, site, starts};
    use crate::spec::AddressSpec;

    const SPEC: AddressSpec = AddressSpec::AlignedStripe { stripe_bytes: 40 * 512, chunk_bytes: 10 * 512 };

    #[test]
    fn long_requests_begin_or_end_on_a_boundary_equally_often() {
        let n = 40_000;
        let seen = starts(&SPEC, site(4000), 55, n);
        assert!(seen.iter().all(|s| s % 40 == 0 || (s + 55) % 40 == 0));
        // Binomial: five standard deviations of n = 40,000 at one half are 500.
        let begin = seen.iter().filter(|&s| s % 40 == 0).count() as i64;
        assert!((begin - 20_000).abs() < 500, "{begin}");
    }

    #[test]
    fn full_stripes_cover_all_stripes_evenly() {
        let mut counts = [0; 10];
        starts(&SPEC, site(400), 40, 20_000).iter().for_each(|s| {
            assert_eq!(s % 40, 0);
            counts[(s / 40) as usize] += 1;
        });
        // 9 degrees of freedom: 99.99 % quantile 33.7.
        assert!(chi2_equal(&counts) < 33.7, "{counts:?}");
    }

    #[test]
    fn small_requests_begin_on_any_chunk() {
        let mut counts = [0; 40];
        starts(&SPEC, site(400), 10, 40_000).iter().for_each(|s| {
            assert_eq!(s % 10, 0);
            counts[(s / 10) as usize] += 1;
        });
        // 39 degrees of freedom: 99.99 % quantile 81.
        assert!(chi2_equal(&counts) < 81.0, "{counts:?}");
    }
}
