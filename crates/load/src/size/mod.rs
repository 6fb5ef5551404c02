//! How long requests are.
//!
//! Purpose: sizes in whole sectors, from one random word. Kinds are listed in [`Size`]; to add one, write its file, add
//! a line here and to [`SizeSpec`]. [`Sizes`] offers the same kinds for what is no request: the sizes of files.
//!
//! Invariants:
//! - A size is at least one sector and at most `longest_sectors`, what the address kind can place.
//! - It is a monotone function of its random word, so that common random numbers survive a change of parameters.

mod exponential;
mod lognormal;
mod normal;
mod table;

use crate::error::{join, whole_sectors, SpecError};
use crate::spec::SizeSpec;
use raidlab_types::number::saturating_u64;
use raidlab_types::{CounterRng, Seed};

/// What a size kind must know of the array.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    /// Bytes in a sector.
    pub(crate) sector_bytes: u32,
    /// Sectors of the longest request that can be placed on every volume.
    pub(crate) longest_sectors: u64,
}

impl SizeLimits {
    /// A size that was written down: whole sectors, and no more than the longest request.
    fn written(self, key: &str, name: &str, bytes: u64) -> Result<u64, SpecError> {
        let sectors = whole_sectors(key, name, bytes, self.sector_bytes)?;
        if sectors <= self.longest_sectors {
            return Ok(sectors);
        }
        let most = self.longest_sectors * u64::from(self.sector_bytes);
        let message =
            format!("{bytes} bytes are more than the longest request possible; accepted: at most {most} bytes");
        Err(SpecError::new(join(key, name), message))
    }

    /// The nearest whole number of sectors, at least one and at most the longest. Half a sector rounds up.
    #[inline]
    fn nearest(self, sectors: f64) -> u64 {
        // `as` saturates: a negative size (possible for a normal) becomes 0, then one sector.
        saturating_u64(sectors + 0.5).clamp(1, self.longest_sectors)
    }
}

/// The kinds of sizes.
#[derive(Debug, Clone)]
pub(crate) enum Size {
    /// Every request the same.
    Fixed(u64),
    Exponential(exponential::Exponential),
    Normal(normal::Normal),
    Lognormal(lognormal::Lognormal),
    Table(table::SizeTable),
}

impl Size {
    pub(crate) fn new(spec: &SizeSpec, key: &str, room: SizeLimits) -> Result<Self, SpecError> {
        Ok(match spec {
            SizeSpec::Fixed { bytes } => Size::Fixed(room.written(key, "bytes", *bytes)?),
            SizeSpec::Exponential { mean_bytes } => {
                Size::Exponential(exponential::Exponential::new(key, *mean_bytes, room)?)
            }
            SizeSpec::Normal { mean_bytes, sd_bytes } => {
                Size::Normal(normal::Normal::new(key, *mean_bytes, *sd_bytes, room)?)
            }
            SizeSpec::Lognormal { mean_bytes, sigma } => {
                Size::Lognormal(lognormal::Lognormal::new(key, *mean_bytes, *sigma, room)?)
            }
            SizeSpec::Table { bytes, weights } => Size::Table(table::SizeTable::new(key, bytes, weights, room)?),
        })
    }

    /// Sectors of the next request. Takes exactly one word of `request`, whatever the kind, so that what is drawn after it
    /// does not move when the kind changes; a kind that needs more has a node of the seed tree to itself.
    #[inline]
    pub(crate) fn draw(&self, request: &mut CounterRng) -> u64 {
        let word = request.next_u64();
        let rng = || Seed::new(word).draws();
        match self {
            Size::Fixed(sectors) => *sectors,
            Size::Exponential(kind) => kind.draw(&mut rng()),
            Size::Normal(kind) => kind.draw(&mut rng()),
            Size::Lognormal(kind) => kind.draw(&mut rng()),
            Size::Table(kind) => kind.draw(&mut rng()),
        }
    }
}

/// Sizes of things that are no requests, such as files: item `i` is a function of (seed, i) alone.
#[derive(Debug, Clone)]
pub struct Sizes {
    size: Size,
    unit_bytes: u32,
    seed: Seed,
}

impl Sizes {
    /// Sizes in whole units of `unit_bytes`, at least one and at most `longest_bytes`; errors name keys below `key`.
    pub fn new(
        spec: &SizeSpec,
        key: &str,
        unit_bytes: u32,
        longest_bytes: u64,
        seed: Seed,
    ) -> Result<Sizes, SpecError> {
        let room = SizeLimits { sector_bytes: unit_bytes, longest_sectors: longest_bytes / u64::from(unit_bytes) };
        Ok(Sizes { size: Size::new(spec, key, room)?, unit_bytes, seed })
    }

    /// Bytes of item `i`.
    pub fn bytes(&self, i: u64) -> u64 {
        self.size.draw(&mut self.seed.child(i).draws()) * u64::from(self.unit_bytes)
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::*;

    /// Roomy: 4 KiB sectors, requests up to 4 GiB.
    pub(crate) const ROOM: SizeLimits = SizeLimits { sector_bytes: 4096, longest_sectors: 1 << 20 };

    /// `n` sizes in sectors.
    pub(crate) fn sizes(spec: &SizeSpec, room: SizeLimits, n: u64) -> Vec<u64> {
        let size = Size::new(spec, "workload.size", room).unwrap();
        (0..n).map(|i| size.draw(&mut Seed::new(30).child(i).draws())).collect()
    }

    /// Mean and standard deviation.
    pub(crate) fn moments(values: &[u64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
        (mean, (values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / n).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::test_support::*;
    use super::*;

    #[test]
    fn sizes_of_items_are_whole_units_and_functions_of_the_seed() {
        let spec = SizeSpec::Lognormal { mean_bytes: 160_000.0, sigma: 1.0 };
        let sizes = |seed| Sizes::new(&spec, "sizes", 1, 1 << 30, Seed::new(seed)).unwrap();
        let drawn = |seed| (0..500).map(|i| sizes(seed).bytes(i)).collect::<Vec<u64>>();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        assert!(drawn(1).iter().any(|bytes| bytes % 512 != 0), "units of one byte");
        let small = SizeSpec::Exponential { mean_bytes: 6000.0 };
        let pages = Sizes::new(&small, "sizes", 4096, 8192, Seed::new(1)).unwrap();
        assert!((0..500).all(|i| [4096, 8192].contains(&pages.bytes(i))));
        let error = Sizes::new(&SizeSpec::Fixed { bytes: 0 }, "sizes", 1, 1 << 30, Seed::new(1)).unwrap_err();
        assert_eq!(error.key, "sizes.bytes");
    }

    #[test]
    fn fixed_sizes_are_whole_sectors_that_fit() {
        let room = SizeLimits { sector_bytes: 512, longest_sectors: 16 };
        assert_eq!(sizes(&SizeSpec::Fixed { bytes: 8192 }, room, 2), [16, 16]);
        for bytes in [0, 8193, 100, 8704] {
            let error = Size::new(&SizeSpec::Fixed { bytes }, "workload.size", room).unwrap_err();
            assert_eq!(error.key, "workload.size.bytes");
        }
    }

    #[test]
    fn every_kind_stays_within_the_room() {
        let room = SizeLimits { sector_bytes: 512, longest_sectors: 5 };
        for spec in [
            SizeSpec::Exponential { mean_bytes: 2000.0 },
            SizeSpec::Normal { mean_bytes: 1500.0, sd_bytes: 3000.0 },
            SizeSpec::Lognormal { mean_bytes: 1500.0, sigma: 2.0 },
            SizeSpec::Table { bytes: vec![512, 2560], weights: vec![1.0, 1.0] },
        ] {
            let seen = sizes(&spec, room, 20_000);
            assert_eq!((seen.iter().min(), seen.iter().max()), (Some(&1), Some(&5)), "{spec:?}");
        }
    }
}
