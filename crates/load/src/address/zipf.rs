//! `zipf`: few places are popular.
//!
//! Purpose: skewed access. The volume is divided into places as long as the alignment; the place of rank r = 1, 2, ... n has a
//! chance proportional to `r^-theta`. Ranks are drawn by rejection-inversion: exact for every theta above 0, no table,
//! fewer than 1.4 draws each. (The method of Gray et al. needs a sum over all places first and bars theta = 1.)
//! Ranks are scattered by `place = rank * k mod n`, with k coprime to n near the golden section of it, so that the hot
//! places are spread evenly over the volume rather than all at its beginning, where a disk is fastest.
//!
//! Invariants: each place has exactly one rank; a request that would run beyond the end begins at the last place where
//! it fits.
//!
//! Reference: W. Hörmann and G. Derflinger, *Rejection-inversion to generate variates from monotone discrete
//! distributions*, ACM TOMACS 6 (1996), 169-184; Gray et al., *Quickly Generating Billion-Record Synthetic Databases*,
//! SIGMOD 1994.

use super::AddressSpace;
use crate::error::{positive, SpecError};
use raidlab_types::number::{f64_from, gcd, saturating_u64, u64_from};
use raidlab_types::{CounterRng, Lba};

/// Zipf-distributed starts.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    capacity_sectors: u64,
    align_sectors: u64,
    places: u64,
    scatter: u64,
    ranks: Ranks,
}

impl Zipf {
    pub(crate) fn new(key: &str, theta: f64, site: AddressSpace) -> Result<Self, SpecError> {
        let theta = positive(key, "theta", theta)?;
        let align_sectors = site.align()?;
        let places = site.capacity_sectors / align_sectors;
        let (scatter, ranks) = (scatter(places), Ranks::new(theta, places));
        Ok(Zipf { capacity_sectors: site.capacity_sectors, align_sectors, places, scatter, ranks })
    }

    pub(crate) fn longest(&self) -> u64 {
        self.capacity_sectors
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng, sectors: u64) -> Lba {
        let rank = self.ranks.draw(rng) - 1;
        let place = u64_from(u128::from(rank) * u128::from(self.scatter) % u128::from(self.places));
        let start = place * self.align_sectors;
        let last = self.capacity_sectors - sectors;
        if start <= last {
            start
        } else {
            last / self.align_sectors * self.align_sectors
        }
    }
}

/// A multiplier coprime to `places`, near the golden section of it.
fn scatter(places: u64) -> u64 {
    let golden = saturating_u64(f64_from(places) * 0.618_033_988_749_894_9);
    (golden.max(1)..).find(|&k| gcd(k, places) == 1).unwrap_or(1)
}

/// Ranks 1 to n with chances proportional to `r^-theta`.
#[derive(Debug, Clone)]
struct Ranks {
    theta: f64,
    n: f64,
    /// Ends of the range of the area under the hat, drawn from uniformly.
    area_first: f64,
    area_last: f64,
    /// Left of this distance from the rank every point is accepted without looking.
    squeeze: f64,
}

impl Ranks {
    fn new(theta: f64, n: u64) -> Self {
        let n = f64_from(n);
        let mut ranks = Ranks { theta, n, area_first: 0.0, area_last: 0.0, squeeze: 0.0 };
        ranks.area_first = ranks.area(1.5) - 1.0;
        ranks.area_last = ranks.area(n + 0.5);
        ranks.squeeze = 2.0 - ranks.area_inverse(ranks.area(2.5) - ranks.density(2.0));
        ranks
    }

    /// Unnormalised chance of rank `x`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Integral of the density, `(x^(1-theta) - 1) / (1 - theta)`, with its limit `ln x` at theta = 1.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        expm1_ratio((1.0 - self.theta) * log) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        // Rounding may carry the argument just beyond the end of the domain.
        let t = (area * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_ratio(t) * area)
    }

    fn draw(&self, rng: &mut CounterRng) -> u64 {
        loop {
            let area = self.area_last + rng.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            // The nearest whole number; by way of an integer, since `f64::floor` is a slow call on the baseline x86-64.
            let rank = f64_from(saturating_u64(x + 0.5)).clamp(1.0, self.n);
            if rank - x <= self.squeeze || area >= self.area(rank + 0.5) - self.density(rank) {
                return saturating_u64(rank);
            }
        }
    }
}

/// `(e^x - 1) / x`, by its series near 0.
fn expm1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::expm1(x) / x
    } else {
        1.0 + x * 0.5
    }
}

/// `ln(1 + x) / x`, by its series near 0.
fn log1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        libm::log1p(x) / x
    } else {
        1.0 - x * 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::test_support::{site, starts};
    use crate::spec::AddressSpec;
    use raidlab_types::Seed;

    #[test]
    fn ranks_have_their_chances() {
        // Chi-squared over 20 ranks, 19 degrees of freedom: 99.99 % quantile 50.8. At 100,000 draws a theta wrong by
        // 0.05 gives about 150.
        for theta in [0.5, 0.99, 1.0, 1.2, 3.0] {
            let (ranks, n) = (Ranks::new(theta, 20), 100_000u64);
            let weights: Vec<f64> = (1..=20).map(|r| libm::pow(f64::from(r), -theta)).collect();
            let total: f64 = weights.iter().sum();
            let mut counts = [0.0; 20];
            (0..n).for_each(|i| counts[ranks.draw(&mut Seed::new(41).child(i).draws()) as usize - 1] += 1.0);
            let cell = |(c, w): (&f64, &f64)| (c - w / total * n as f64).powi(2) / (w / total * n as f64);
            let chi2: f64 = counts.iter().zip(&weights).map(cell).sum();
            assert!(chi2 < 50.8, "theta {theta}: chi-squared {chi2}");
        }
    }

    #[test]
    fn the_scatter_is_a_permutation() {
        for places in [1u64, 2, 3, 4, 7, 12, 100, 997, 1024] {
            let k = scatter(places);
            let mut seen: Vec<u64> = (0..places).map(|rank| rank * k % places).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..places), "{places} by {k}");
        }
    }

    #[test]
    fn huge_volumes_need_no_memory_and_reach_far() {
        let spec = AddressSpec::Zipf { theta: 0.9 };
        let capacity = 1 << 45;
        let seen = starts(&spec, AddressSpace { align_bytes: Some(4096), ..site(capacity) }, 8, 10_000);
        assert!(seen.iter().all(|s| s % 8 == 0 && s + 8 <= capacity));
        let upper = seen.iter().filter(|&&s| s >= capacity / 2).count();
        assert!((4000..6000).contains(&upper), "upper half {upper}");
    }
}
