//! `table`: one of a list of sizes, by weight.
//!
//! Purpose: mixes such as Iometer's File Server pattern. Invariant: sizes stand in ascending order inside, so that the
//! size is monotone in its random word; every one is a whole number of sectors that fits the volume.

use super::SizeLimits;
use crate::draw::WeightTable;
use crate::error::{join, weighted, SpecError};
use raidlab_types::CounterRng;

/// Sizes with weights.
#[derive(Debug, Clone)]
pub(crate) struct SizeTable {
    sectors: Box<[u64]>,
    weighted: WeightTable,
}

impl SizeTable {
    pub(crate) fn new(key: &str, bytes: &[u64], weights: &[f64], room: SizeLimits) -> Result<Self, SpecError> {
        if bytes.len() != weights.len() {
            let message = format!("{} weights for {} sizes; accepted: one each", weights.len(), bytes.len());
            return Err(SpecError::new(join(key, "weights"), message));
        }
        let mut rows = Vec::with_capacity(bytes.len());
        for (index, (&bytes, &weight)) in bytes.iter().zip(weights).enumerate() {
            let name = format!("bytes[{index}]");
            rows.push((room.written(key, &name, bytes)?, weight));
        }
        rows.sort_by_key(|row| row.0);
        let (sectors, weights): (Vec<u64>, Vec<f64>) = rows.into_iter().unzip();
        Ok(SizeTable { sectors: sectors.into(), weighted: weighted(key, "weights", &weights)? })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> u64 {
        self.sectors[self.weighted.draw(rng)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::test_support::sizes;
    use crate::spec::SizeSpec;

    const ROOM: SizeLimits = SizeLimits { sector_bytes: 512, longest_sectors: 1 << 20 };

    #[test]
    fn the_file_server_mix_has_its_shares() {
        // Iometer's File Server pattern. Chi-squared, 7 degrees of freedom: 99.99 % quantile 29.9.
        let kib = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let weights = vec![10.0, 5.0, 5.0, 60.0, 2.0, 4.0, 4.0, 10.0];
        let bytes: Vec<u64> = kib.iter().map(|k| (k * 1024.0) as u64).collect();
        let n = 100_000u64;
        let seen = sizes(&SizeSpec::Table { bytes, weights: weights.clone() }, ROOM, n);
        let share = |k: usize| seen.iter().filter(|&&s| s == 1 << k).count() as f64;
        let chi2: f64 = (0..8).map(|k| (share(k) - weights[k] * 1e3).powi(2) / (weights[k] * 1e3)).sum();
        assert!(chi2 < 29.9, "chi-squared {chi2}");
    }

    #[test]
    fn errors_name_the_entry() {
        let key = |bytes: &[u64], weights: &[f64]| SizeTable::new("size", bytes, weights, ROOM).unwrap_err().key;
        assert_eq!(key(&[512, 700], &[1.0, 1.0]), "size.bytes[1]");
        assert_eq!(key(&[512], &[1.0, 1.0]), "size.weights");
        assert_eq!(key(&[512], &[-1.0]), "size.weights");
        assert_eq!(key(&[], &[]), "size.weights");
    }
}
