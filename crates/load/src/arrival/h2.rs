//! `h2`: bursty arrivals, gaps from a hyperexponential of two phases with balanced means.
//!
//! Purpose: arrivals more variable than Poisson, with one parameter, the squared coefficient of variation of the gaps.
//! With chance p the gap is exponential with rate 2 p lambda, else with rate 2 (1 - p) lambda: both phases contribute
//! half the mean, and p = (1 + sqrt((c2 - 1) / (c2 + 1))) / 2 gives the variation asked for.
//! Invariant: two random words a gap; at c2 = 1 the gaps are exponential.
//! Reference: W. Whitt, *Approximating a Point Process by a Renewal Process I*, Operations Research 30 (1982), (3.7).

use super::Gap;
use crate::draw;
use crate::error::{join, positive, SpecError};
use raidlab_types::CounterRng;

/// Hyperexponential arrivals.
#[derive(Debug, Clone)]
pub(crate) struct H2 {
    /// Chance of the phase of short gaps.
    short_chance: f64,
    short_mean_ns: f64,
    long_mean_ns: f64,
}

impl H2 {
    pub(crate) fn new(key: &str, rate_per_s: f64, cv2: f64) -> Result<Self, SpecError> {
        let mean_ns = 1e9 / positive(key, "rate_per_s", rate_per_s)?;
        // Beyond a million the long phase comes so rarely that no run sees the mean rate.
        if !(1.0..=1e6).contains(&cv2) {
            let message = format!("{cv2} must lie between 1 (Poisson) and 1000000");
            return Err(SpecError::new(join(key, "cv2"), message));
        }
        let p = 0.5 * (1.0 + ((cv2 - 1.0) / (cv2 + 1.0)).sqrt());
        Ok(H2 { short_chance: p, short_mean_ns: mean_ns / (2.0 * p), long_mean_ns: mean_ns / (2.0 * (1.0 - p)) })
    }

    #[inline]
    pub(crate) fn draw(&self, rng: &mut CounterRng) -> Gap {
        let mean_ns = if rng.unit() < self.short_chance { self.short_mean_ns } else { self.long_mean_ns };
        Gap::from_ns(draw::exponential(rng) * mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use crate::arrival::test_support::{gaps_s, moments};
    use crate::spec::ArrivalSpec;

    #[test]
    fn mean_and_variation_are_those_asked_for() {
        // 400,000 gaps. The mean's standard error is sqrt(c2 / n); the fourth moment of a balanced H2 puts that of c2
        // near 0.9 % (c2 = 4) and 1.9 % (c2 = 20); the bounds are five of them.
        for (cv2, bound) in [(1.0, 0.03), (4.0, 0.05), (20.0, 0.1)] {
            let n = 400_000;
            let (mean, seen) = moments(&gaps_s(&ArrivalSpec::H2 { rate_per_s: 300.0, cv2 }, n));
            assert!((mean * 300.0 - 1.0).abs() < 5.0 * (cv2 / n as f64).sqrt(), "mean at {cv2}: {mean}");
            assert!((seen / cv2 - 1.0).abs() < bound, "cv2 {cv2}: {seen}");
        }
    }
}
