//! `poisson`: independent exponential gaps.
//!
//! Purpose: the arrivals of many unrelated clients. Invariant: one random word a gap.
//! Reference: L. Kleinrock, *Queueing Systems I*, 1975, section 2.4.

use super::Gap;
use crate::draw;
use crate::error::{positive, SpecError};
use raidlab_types::CounterRng;

/// Poisson arrivals.
#[derive(Debug, Clone)]
pub(crate) struct Poisson {
    mean_ns: f64,
}

impl Poisson {
    pub(crate) fn new(key: &str, rate_per_s: f64) -> Result<Self, SpecError> {
        Ok(Poisson { mean_ns: 1e9 / positive(key, "rate_per_s", rate_per_s)? })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> Gap {
        Gap::from_ns(draw::exponential(rng) * self.mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use crate::arrival::test_support::{gaps_s, moments};
    use crate::spec::ArrivalSpec;

    #[test]
    fn gaps_are_exponential() {
        // Kolmogorov-Smirnov at 1e-5: sqrt(n) D < 2.47. With 100,000 gaps a rate wrong by 3 % gives sqrt(n) D of 3.5.
        let n = 100_000;
        let rate = 300.0;
        let mut gaps = gaps_s(&ArrivalSpec::Poisson { rate_per_s: rate }, n);
        let (mean, cv2) = moments(&gaps);
        assert!((mean * rate - 1.0).abs() < 5.0 / (n as f64).sqrt(), "mean {mean}");
        // The squared coefficient of variation of n exponentials has a standard error of sqrt(8 / n) = 0.009.
        assert!((cv2 - 1.0).abs() < 0.045, "cv2 {cv2}");
        gaps.sort_by(f64::total_cmp);
        let distance = |(k, gap): (usize, &f64)| (1.0 - libm::exp(-gap * rate) - (k as f64 + 0.5) / n as f64).abs();
        let d = gaps.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(d * (n as f64).sqrt() < 2.47, "D {d}");
    }
}
