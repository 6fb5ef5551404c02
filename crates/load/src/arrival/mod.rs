//! When the tasks of an open loop arrive.
//!
//! Purpose: the intended times of arrivals 0, 1, 2, ... from the start of the run. Kinds are listed in
//! [`InterarrivalGaps`]; to add one, write its file, add a line here and to [`ArrivalSpec`].
//!
//! Invariants:
//! - Gap `i` is a function of (seed, i) alone.
//! - No rounding accumulates: the whole nanoseconds and the fraction left over are carried separately, so arrival
//!   `i` is the exact sum of the gaps, rounded down once, and the mean rate is the one asked for.

mod h2;
mod poisson;
mod uniform;

use crate::error::{join, SpecError};
use crate::spec::ArrivalSpec;
use raidlab_types::number::{f64_from, saturating_u64};
use raidlab_types::{CounterRng, Duration, Instant, Seed};

/// A gap between two arrivals: whole nanoseconds and a fraction in `[0, 1)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gap {
    whole_ns: u64,
    fraction_ns: f64,
}

impl Gap {
    /// Splits a gap given in nanoseconds. The difference is exact, so nothing is lost.
    #[inline]
    fn from_ns(ns: f64) -> Self {
        let whole_ns = saturating_u64(ns);
        Gap { whole_ns, fraction_ns: ns - f64_from(whole_ns) }
    }
}

/// The kinds of arrivals.
#[derive(Debug, Clone)]
enum InterarrivalGaps {
    Poisson(poisson::Poisson),
    Uniform(uniform::ConstantGap),
    H2(h2::H2),
}

impl InterarrivalGaps {
    fn new(spec: &ArrivalSpec, key: &str) -> Result<Self, SpecError> {
        Ok(match *spec {
            ArrivalSpec::Poisson { rate_per_s } => InterarrivalGaps::Poisson(poisson::Poisson::new(key, rate_per_s)?),
            ArrivalSpec::Uniform { rate_per_s } => {
                InterarrivalGaps::Uniform(uniform::ConstantGap::new(key, rate_per_s)?)
            }
            ArrivalSpec::H2 { rate_per_s, cv2 } => InterarrivalGaps::H2(h2::H2::new(key, rate_per_s, cv2)?),
            ArrivalSpec::Trace { .. } => {
                let message = "\"trace\": there is no trace whose times these could be; accepted: poisson, uniform, h2";
                return Err(SpecError::new(join(key, "kind"), message));
            }
        })
    }

    #[inline]
    fn draw(&self, rng: &mut CounterRng) -> Gap {
        match self {
            InterarrivalGaps::Poisson(kind) => kind.draw(rng),
            InterarrivalGaps::Uniform(kind) => kind.draw(),
            InterarrivalGaps::H2(kind) => kind.draw(rng),
        }
    }
}

/// The intended times of one run, in order. Cheap to copy: a copy goes on independently from the same place.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    gaps: InterarrivalGaps,
    seed: Seed,
    /// Number of the arrival that `at_ns` is the time of.
    index: u64,
    at_ns: u64,
    /// What `at_ns` lacks, in `[0, 1)` ns.
    fraction_ns: f64,
    mean_gap_ns: f64,
}

impl Arrivals {
    /// The arrivals of `spec`, the first one a gap after the start of the run.
    pub(crate) fn new(spec: &ArrivalSpec, key: &str, seed: Seed) -> Result<Self, SpecError> {
        let gaps = InterarrivalGaps::new(spec, key)?;
        let mean_gap_ns = match *spec {
            ArrivalSpec::Poisson { rate_per_s }
            | ArrivalSpec::Uniform { rate_per_s }
            | ArrivalSpec::H2 { rate_per_s, .. } => 1e9 / rate_per_s,
            ArrivalSpec::Trace { .. } => unreachable!("refused above"),
        };
        let mut arrivals = Arrivals { gaps, seed, index: 0, at_ns: 0, fraction_ns: 0.0, mean_gap_ns };
        arrivals.add_gap();
        Ok(arrivals)
    }

    /// All arrivals from here on come later.
    pub(crate) fn delay(&mut self, by: Duration) {
        self.at_ns = self.at_ns.saturating_add(by.as_ns());
    }

    /// Intended time of the next arrival.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        Instant::from_ns(self.at_ns)
    }

    /// How many have come by `now`, from the next one on, if gaps are what they are in the mean.
    #[inline]
    pub(crate) fn expected_by(&self, now: Instant) -> u64 {
        match now.as_ns().checked_sub(self.at_ns) {
            None => 0,
            Some(since_ns) => 1 + saturating_u64(f64_from(since_ns) / self.mean_gap_ns),
        }
    }

    /// Goes on to the arrival after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.index += 1;
        self.add_gap();
    }

    #[inline]
    fn add_gap(&mut self) {
        let gap = self.gaps.draw(&mut self.seed.child(self.index).draws());
        let fraction = self.fraction_ns + gap.fraction_ns;
        let carry = u64::from(fraction >= 1.0);
        self.fraction_ns = fraction - f64_from(carry);
        self.at_ns = self.at_ns.saturating_add(gap.whole_ns).saturating_add(carry);
    }
}

#[cfg(test)]
pub(crate) mod test_support {
    use super::*;

    /// Gaps in seconds of the first `n` arrivals of `spec`.
    pub(crate) fn gaps_s(spec: &ArrivalSpec, n: usize) -> Vec<f64> {
        let mut arrivals = Arrivals::new(spec, "load.arrival", Seed::new(20)).unwrap();
        let mut last = 0;
        let gap = |_| {
            let at = arrivals.next_at().as_ns();
            arrivals.advance();
            let gap = (at - last) as f64 / 1e9;
            last = at;
            gap
        };
        (0..n).map(gap).collect()
    }

    /// Mean and squared coefficient of variation.
    pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        (mean, variance / (mean * mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_on_independently_from_the_same_place() {
        let spec = ArrivalSpec::Poisson { rate_per_s: 1e6 };
        let mut first = Arrivals::new(&spec, "a", Seed::new(1)).unwrap();
        (0..100).for_each(|_| first.advance());
        let mut second = first.clone();
        (0..100).for_each(|_| first.advance());
        (0..100).for_each(|_| second.advance());
        assert_eq!(first.next_at(), second.next_at());
    }

    #[test]
    fn fractions_add_up_at_the_highest_rates() {
        // Gaps well below a nanosecond: rounding each one would lose them all.
        let mut arrivals = Arrivals::new(&ArrivalSpec::Poisson { rate_per_s: 1e10 }, "a", Seed::new(2)).unwrap();
        let n = 1_000_000u64;
        (1..n).for_each(|_| arrivals.advance());
        // The sum of a million exponential gaps of 0.1 ns: mean 100,000 ns, standard deviation 100 ns; five of them.
        assert!((arrivals.next_at().as_ns() as f64 - 1e5).abs() < 500.0, "{:?}", arrivals.next_at());
    }

    #[test]
    fn rates_are_checked_with_their_key() {
        for spec in [
            ArrivalSpec::Poisson { rate_per_s: 0.0 },
            ArrivalSpec::Uniform { rate_per_s: -3.0 },
            ArrivalSpec::H2 { rate_per_s: f64::NAN, cv2: 2.0 },
        ] {
            assert_eq!(Arrivals::new(&spec, "load.arrival", Seed::new(1)).unwrap_err().key, "load.arrival.rate_per_s");
        }
        let spec = ArrivalSpec::H2 { rate_per_s: 1.0, cv2: 0.5 };
        assert_eq!(Arrivals::new(&spec, "load.arrival", Seed::new(1)).unwrap_err().key, "load.arrival.cv2");
    }
}
