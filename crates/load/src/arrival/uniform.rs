//! `uniform`: equal gaps.
//!
//! Purpose: a constant rate, such as a paced stream. Invariant: no random word is drawn, and arrival `i` stands at
//! `(i + 1) / rate`, rounded down to the nanosecond, however large `i` is.

use super::Gap;
use crate::error::{positive, SpecError};
use raidlab_types::number::f64_from;

/// Evenly spaced arrivals.
#[derive(Debug, Clone)]
pub(crate) struct ConstantGap {
    gap: Gap,
}

impl ConstantGap {
    pub(crate) fn new(key: &str, rate_per_s: f64) -> Result<Self, SpecError> {
        let rate = positive(key, "rate_per_s", rate_per_s)?;
        let mut gap = Gap::from_ns(1e9 / rate);
        // The fraction anew from the remainder: the quotient above has lost the bits its whole part took.
        let remainder = libm::fma(-f64_from(gap.whole_ns), rate, 1e9);
        gap.fraction_ns = (remainder / rate).clamp(0.0, 1.0 - f64::EPSILON);
        Ok(ConstantGap { gap })
    }

    #[inline]
    pub(crate) fn draw(&self) -> Gap {
        self.gap
    }
}

#[cfg(test)]
mod tests {
    use crate::arrival::Arrivals;
    use crate::spec::ArrivalSpec;
    use raidlab_types::Seed;

    #[test]
    fn the_rate_is_exact_after_millions_of_arrivals() {
        for rate in [3.0, 7.0, 300.0, 48_611.0, 1_000_003.0] {
            let spec = ArrivalSpec::Uniform { rate_per_s: rate };
            let mut arrivals = Arrivals::new(&spec, "a", Seed::new(1)).unwrap();
            let n = 3_000_000u64;
            (1..n).for_each(|_| arrivals.advance());
            let exact = (u128::from(n) * 1_000_000_000 / rate as u128) as i64;
            assert!((arrivals.next_at().as_ns() as i64 - exact).abs() <= 1, "rate {rate}");
        }
    }
}
