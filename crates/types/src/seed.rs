//! The seed tree: all randomness of a run as a pure function of one number.
//!
//! A [`Seed`] has named and numbered children; [`Seed::draws`] gives the random numbers of one leaf of that tree.
//! Request `i` of a stream draws from `seed.child(stream).child(i)`, so it is the same whatever completes when, and two
//! configurations can be given common random numbers.
//!
//! The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood: *Fast Splittable Pseudorandom Number Generators*,
//! OOPSLA 2014), applied to a Weyl sequence; it passes BigCrush and costs about a nanosecond a draw.

use crate::number::{f64_from, u64_from};

const WEYL: u64 = 0x9E37_79B9_7F4A_7C15;
/// 2^-53.
const OF_53_BITS: f64 = f64::EPSILON / 2.0;

#[inline]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A node of the seed tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// The root of a run's seed tree.
    pub const fn new(root: u64) -> Self {
        Seed(mix(root.wrapping_add(WEYL)))
    }

    /// The child with this number.
    #[inline]
    pub const fn child(self, index: u64) -> Seed {
        // Two rounds with a different offset, so that child(a).child(b) and child(b).child(a) are unrelated.
        Seed(mix(mix(self.0 ^ 0x5851_F42D_4C95_7F2D).wrapping_add(index.wrapping_mul(WEYL)).wrapping_add(WEYL)))
    }

    /// The child with this name.
    pub fn named(self, name: &str) -> Seed {
        name.bytes().fold(self.child(name.len() as u64), |seed, byte| seed.child(u64::from(byte)))
    }

    /// The random numbers that belong to this node.
    #[inline]
    pub const fn draws(self) -> CounterRng {
        CounterRng { state: self.0 }
    }

    /// The node as a number, for records.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// The random numbers of one node of the seed tree, in order.
#[derive(Debug, Clone)]
pub struct CounterRng {
    state: u64,
}

impl CounterRng {
    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(WEYL);
        mix(self.state)
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        f64_from(self.next_u64() >> 11) * OF_53_BITS
    }

    /// Uniform in `(0, 1]`: safe under a logarithm.
    #[inline]
    pub fn unit_positive(&mut self) -> f64 {
        f64_from((self.next_u64() >> 11) + 1) * OF_53_BITS
    }

    /// Uniform in `[0, bound)`; `bound` must not be 0. The bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        u64_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_do_not_commute_and_names_differ() {
        let root = Seed::new(1);
        assert_ne!(root.child(1).child(2), root.child(2).child(1));
        assert_ne!(root.named("load"), root.named("device"));
        assert_ne!(Seed::new(1).draws().next_u64(), Seed::new(2).draws().next_u64());
    }

    #[test]
    fn below_is_uniform() {
        // Chi-squared over 64 cells, 64,000 draws: the 99.99 % quantile with 63 degrees of freedom is 115.
        let mut rng = Seed::new(7).draws();
        let mut cells = [0u32; 64];
        (0..64_000).for_each(|_| cells[rng.below(64) as usize] += 1);
        let chi2: f64 = cells.iter().map(|&c| (c as f64 - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 115.0, "chi-squared {chi2}");
    }

    #[test]
    fn successive_children_are_uncorrelated() {
        // First draw of child i against child i + 1: |r| < 4 / sqrt(n) at about 6e-5.
        let first = |i| Seed::new(3).child(i).draws().unit() - 0.5;
        let n = 20_000;
        let r: f64 = (0..n).map(|i| first(i) * first(i + 1)).sum::<f64>() / (n as f64 / 12.0);
        assert!(r.abs() < 4.0 / (n as f64).sqrt(), "correlation {r}");
    }
}
