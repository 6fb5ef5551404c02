//! `uniform`: every aligned place equally often.
//!
//! Purpose: random access over the whole volume. Invariant: one random word; of the places where the request fits, each
//! has the same chance (a bias below places / 2^64).

use super::AddressSpace;
use crate::error::SpecError;
use raidlab_types::{CounterRng, Lba};

/// Uniform starts.
#[derive(Debug, Clone)]
pub(crate) struct UniformAddress {
    capacity_sectors: u64,
    align_sectors: u64,
    /// The length last asked for and the number of places it fits: sizes repeat, and a division costs as much as the rest.
    last: (u64, u64),
}

impl UniformAddress {
    pub(crate) fn new(site: AddressSpace) -> Result<Self, SpecError> {
        let align_sectors = site.align()?;
        Ok(UniformAddress { capacity_sectors: site.capacity_sectors, align_sectors, last: (0, 0) })
    }

    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors
    }

    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut CounterRng, sectors: u64) -> Lba {
        if self.last.0 != sectors {
            self.last = (sectors, (self.capacity_sectors - sectors) / self.align_sectors + 1);
        }
        rng.below(self.last.1) * self.align_sectors
    }
}

#[cfg(test)]
mod tests {
    use crate::address::test_support::{chi2_equal, site, starts};
    use crate::address::AddressSpace;
    use crate::spec::AddressSpec;

    #[test]
    fn places_are_aligned_and_equally_likely() {
        // 100 sectors, aligned to 8, requests of 8: starts 0, 8, ..., 88 and 92 is no multiple: 12 places.
        // Chi-squared, 11 degrees of freedom: 99.99 % quantile 37.4.
        let mut counts = [0; 12];
        let aligned = AddressSpace { align_bytes: Some(4096), ..site(100) };
        for start in starts(&AddressSpec::Uniform {}, aligned, 8, 60_000) {
            assert_eq!(start % 8, 0);
            counts[(start / 8) as usize] += 1;
        }
        assert!(chi2_equal(&counts) < 37.4, "{counts:?}");
    }

    #[test]
    fn a_request_as_long_as_the_volume_begins_at_its_beginning() {
        assert_eq!(starts(&AddressSpec::Uniform {}, site(100), 100, 3), [0, 0, 0]);
    }
}
