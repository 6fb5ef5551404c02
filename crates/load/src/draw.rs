//! Sampling from counter-based random numbers, bit-identical on every machine.
//!
//! Purpose: the few transformations all distributions share. Transcendental functions come from `libm`, because the
//! standard library's are the platform's and may differ in the last bit, which would change a whole run.
//!
//! Invariants: every transformation here takes exactly one random word and is monotone in it (so that common random
//! numbers stay common when a parameter changes), and allocates nothing.
//!
//! Reference: L. Devroye, *Non-Uniform Random Variate Generation*, 1986; M. J. Wichura, *Algorithm AS 241: The
//! Percentage Points of the Normal Distribution*, Applied Statistics 37 (1988), 477-484.

use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::CounterRng;

/// An exponential variate of mean 1.
#[inline]
pub(crate) fn exponential(rng: &mut CounterRng) -> f64 {
    -libm::log(rng.unit_positive())
}

/// A standard normal variate, by inversion.
#[inline]
pub(crate) fn normal(rng: &mut CounterRng) -> f64 {
    // The middle of one of 2^52 cells: never 0 nor 1, where the quantile is infinite.
    let u = (f64_from(rng.next_u64() >> 12) + 0.5) * (1.0 / f64_from(1u64 << 52));
    normal_quantile(u)
}

/// The quantile function of the standard normal distribution for `0 < p < 1` (Wichura's PPND16, relative error about
/// 1e-16).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * polynomial(&CENTRE_NUMERATOR, r) / polynomial(&CENTRE_DENOMINATOR, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-libm::log(tail)).sqrt();
    let value = if r <= 5.0 {
        polynomial(&MIDDLE_NUMERATOR, r - 1.6) / polynomial(&MIDDLE_DENOMINATOR, r - 1.6)
    } else {
        polynomial(&FAR_NUMERATOR, r - 5.0) / polynomial(&FAR_DENOMINATOR, r - 5.0)
    };
    value.copysign(q)
}

/// Horner's rule; coefficients from the constant upwards.
#[inline]
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_6,
    1.331_416_678_917_843_8e2,
    1.971_590_950_306_551_3e3,
    1.373_169_376_550_946e4,
    4.592_195_393_154_987e4,
    6.726_577_092_700_87e4,
    3.343_057_558_358_813e4,
    2.509_080_928_730_122_7e3,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    4.231_333_070_160_091e1,
    6.871_870_074_920_579e2,
    5.394_196_021_424_751e3,
    2.121_379_430_158_659_7e4,
    3.930_789_580_009_271e4,
    2.872_908_573_572_194_3e4,
    5.226_495_278_852_545e3,
];
const MIDDLE_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    2.417_807_251_774_506e-1,
    2.272_384_498_926_918_4e-2,
    7.745_450_142_783_414e-4,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    6.897_673_349_851e-1,
    1.481_039_764_274_800_8e-1,
    1.519_866_656_361_645_7e-2,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const FAR_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    2.965_605_718_285_048_7e-1,
    2.653_218_952_657_612_4e-2,
    1.242_660_947_388_078_4e-3,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const FAR_DENOMINATOR: [f64; 8] = [
    1.0,
    5.998_322_065_558_88e-1,
    1.369_298_809_227_358e-1,
    1.487_536_129_085_061_5e-2,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_7e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// An index drawn with given weights: one random word, a binary search among cumulative thresholds.
#[derive(Debug, Clone)]
pub(crate) struct WeightTable {
    /// `thresholds[k]`: the share of items `0..=k`, as a fraction of 2^64; the last item has none.
    thresholds: Box<[u64]>,
}

impl WeightTable {
    /// `None` where the weights are empty, negative, not finite or all zero.
    pub(crate) fn new(weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let valid = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && total.is_finite() && total > 0.0;
        if !valid {
            return None;
        }
        // Trailing weights of zero must not be reached: the last item with weight takes all that is left.
        let last = weights.iter().rposition(|w| *w > 0.0)?;
        let mut sum = 0.0;
        let cumulative = weights[..last].iter().map(|w| {
            sum += w;
            saturating_u64(sum / total * 2f64.powi(64))
        });
        Some(WeightTable { thresholds: cumulative.collect() })
    }

    /// The index drawn.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> usize {
        self.pick(rng.next_u64())
    }

    /// The index that a random word stands for.
    #[inline]
    pub(crate) fn pick(&self, word: u64) -> usize {
        self.thresholds.partition_point(|&threshold| threshold <= word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_types::Seed;

    #[test]
    fn the_normal_quantile_inverts_the_distribution_function() {
        // Against the complementary error function, over all three branches of the algorithm.
        for p in [1e-300, 1e-100, 1e-20, 1e-9, 1e-3, 0.02, 0.0749, 0.0751, 0.2, 0.4999, 0.5] {
            let back = 0.5 * libm::erfc(-normal_quantile(p) / std::f64::consts::SQRT_2);
            assert!((back / p - 1.0).abs() < 1e-12, "p {p}: {back}");
        }
        for p in [0.6, 0.9, 0.99, 0.999_999] {
            assert!((normal_quantile(p) + normal_quantile(1.0 - p)).abs() < 1e-9);
        }
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
    }

    #[test]
    fn normal_variates_are_normal() {
        // Kolmogorov-Smirnov at 1e-5: sqrt(n) D < 2.47; with 100,000 draws a mean off by 0.03 gives sqrt(n) D of 3.8.
        let n = 100_000;
        let mut rng = Seed::new(13).draws();
        let mut values: Vec<f64> = (0..n).map(|_| normal(&mut rng)).collect();
        values.sort_by(f64::total_cmp);
        let below = |z: f64| 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
        let distance = |(k, &z): (usize, &f64)| (below(z) - (k as f64 + 0.5) / n as f64).abs();
        let d = values.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(d * (n as f64).sqrt() < 2.47, "D {d}");
    }

    #[test]
    fn exponential_and_normal_have_their_moments() {
        // 200,000 draws: the mean's standard error is 0.0022; five of them bound the error at about 6e-7.
        let n = 200_000;
        let mut rng = Seed::new(11).draws();
        let mean = (0..n).map(|_| exponential(&mut rng)).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 0.0112, "exponential mean {mean}");
        let values: Vec<f64> = (0..n).map(|_| normal(&mut rng)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| v * v).sum::<f64>() / n as f64 - mean * mean;
        // The variance's standard error is sqrt(2 / n) = 0.0032.
        assert!(mean.abs() < 0.0112 && (variance - 1.0).abs() < 0.016, "normal {mean} {variance}");
    }

    #[test]
    fn weights_are_kept_and_zero_is_never_drawn() {
        // Chi-squared with 2 degrees of freedom: the 99.99 % quantile is 18.4. At 60,000 draws a share wrong by
        // 0.01 is found with a probability above 99 %.
        let weighted = WeightTable::new(&[1.0, 0.0, 2.0, 3.0, 0.0]).unwrap();
        let mut rng = Seed::new(12).draws();
        let mut counts = [0u32; 5];
        (0..60_000).for_each(|_| counts[weighted.draw(&mut rng)] += 1);
        assert_eq!((counts[1], counts[4]), (0, 0));
        let expected = [10_000.0, 20_000.0, 30_000.0];
        let seen = [counts[0], counts[2], counts[3]];
        let chi2: f64 = seen.iter().zip(expected).map(|(&c, e)| (f64::from(c) - e).powi(2) / e).sum();
        assert!(chi2 < 18.4, "chi-squared {chi2}");
        assert_eq!(WeightTable::new(&[5.0]).unwrap().draw(&mut rng), 0);
    }
}
