//! Division by a divisor fixed when the device is made, by multiplication.
//!
//! Invariant: exact for every 64-bit dividend. With m = floor(2^64 / d), the high half of n m is the quotient or one
//! less (Granlund and Montgomery, *Division by Invariant Integers using Multiplication*, PLDI 1994); one comparison mends it.

/// A divisor and its reciprocal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reciprocal {
    divisor: u64,
    multiplier: u64,
}

impl Reciprocal {
    /// Prepares division by `divisor`, which must not be 0.
    pub(crate) fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "division by zero");
        // floor((2^64 - 1) / d): for d = 1 the true reciprocal would not fit, and being one short is corrected below.
        Reciprocal { divisor, multiplier: u64::MAX / divisor }
    }

    /// Quotient and remainder.
    #[inline]
    pub(crate) fn div_rem(&self, dividend: u64) -> (u64, u64) {
        let quotient = ((u128::from(dividend) * u128::from(self.multiplier)) >> 64) as u64;
        let remainder = dividend - quotient * self.divisor;
        if remainder >= self.divisor {
            (quotient + 1, remainder - self.divisor)
        } else {
            (quotient, remainder)
        }
    }

    /// The remainder.
    #[inline]
    pub(crate) fn rem(&self, dividend: u64) -> u64 {
        self.div_rem(dividend).1
    }

    /// What is divided by.
    #[inline]
    pub(crate) fn divisor(&self) -> u64 {
        self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_the_operators(dividend: u64, divisor in 1u64.., small in 1u64..5000) {
            for d in [divisor, small] {
                prop_assert_eq!(Reciprocal::new(d).div_rem(dividend), (dividend / d, dividend % d));
            }
        }
    }

    #[test]
    fn the_edges() {
        for d in [1, 2, 3, 1 << 32, u64::MAX] {
            for n in [0, 1, d - 1, d, u64::MAX - 1, u64::MAX] {
                assert_eq!(Reciprocal::new(d).div_rem(n), (n / d, n % d), "{n} / {d}");
            }
        }
    }
}
