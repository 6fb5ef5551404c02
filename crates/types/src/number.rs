//! Conversions between kinds of numbers that say what they do where `as` does not.
//!
//! Purpose: `as` cuts a number that does not fit, changes signs and rounds, all without a word; so clippy forbids it there,
//! and these stand in its place:
//! - [`u32_from`] and its kin: the number fits, or the program stops where the mistake is and not where it shows;
//! - [`f64_from`]: the nearest of 53 bits;
//! - [`saturating_u64`] and its kin: the whole part of a floating-point number, as `as` has it.
//!
//! None costs more than `as` where the compiler sees that the number fits, as every `u64` does into `usize` on the
//! processors that raidlab runs on.

use std::fmt::Display;

macro_rules! checked {
    ($($name:ident $to:ident)*) => {$(
        #[doc = concat!("`number` as a `", stringify!($to), "`.")]
        ///
        /// # Panics
        /// When it does not fit.
        #[inline]
        #[track_caller]
        pub fn $name<N: Copy + Display + TryInto<$to>>(number: N) -> $to {
            match number.try_into() {
                Ok(number) => number,
                Err(_) => does_not_fit(&number, stringify!($to)),
            }
        }
    )*};
}

checked! { u8_from u8  u16_from u16  u32_from u32  u64_from u64  usize_from usize  i32_from i32  i64_from i64 }

#[cold]
#[inline(never)]
#[track_caller]
fn does_not_fit(number: &dyn Display, kind: &str) -> ! {
    panic!("{number} does not fit into {kind}")
}

/// Whole numbers that may have more than the 53 bits of a floating-point one.
pub trait Whole: Copy {
    /// The nearest floating-point number.
    fn nearest_f64(self) -> f64;
}

macro_rules! whole {
    ($($kind:ident)*) => {$(
        impl Whole for $kind {
            #[inline]
            #[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
            fn nearest_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

whole! { u64 usize u128 i64 }

/// The floating-point number nearest to `number`: that number itself up to 2^53, which nanoseconds reach after 104 days and
/// bytes after 8 PiB.
#[inline]
pub fn f64_from(number: impl Whole) -> f64 {
    number.nearest_f64()
}

macro_rules! saturating {
    ($($name:ident $to:ident)*) => {$(
        #[doc = concat!("The whole part of `number`, or the `", stringify!($to), "` nearest to it where it lies beyond;")]
        /// 0 for what is no number.
        #[inline]
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are what is asked for")]
        pub fn $name(number: f64) -> $to {
            number as $to
        }
    )*};
}

saturating! { saturating_u32 u32  saturating_u64 u64  saturating_u128 u128  saturating_usize usize }

/// The whole part of `number`, or the `i64` nearest to it where it lies beyond; 0 for what is no number.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "it is what is asked for")]
pub fn saturating_i64(number: f64) -> i64 {
    number as i64
}

/// The greatest common divisor; of 0 and a number, that number.
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of two numbers that are not both 0, or the largest number there is.
pub fn lcm(a: u64, b: u64) -> u64 {
    (a / gcd(a, b)).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_divides_both_is_found() {
        assert_eq!([gcd(12, 18), gcd(0, 7), gcd(7, 0), gcd(9, 4)], [6, 7, 7, 1]);
    }

    #[test]
    fn what_fits_is_the_same_number_and_what_does_not_stops_the_program() {
        assert_eq!(
            (u8_from(255_u64), u32_from(7_usize), u64_from(7_i64), usize_from(u64::MAX)),
            (255, 7, 7, usize::MAX)
        );
        let too_large = std::panic::catch_unwind(|| u32_from(1_u64 << 32)).expect_err("it does not fit");
        assert_eq!(too_large.downcast_ref::<String>().map(String::as_str), Some("4294967296 does not fit into u32"));
        assert!(std::panic::catch_unwind(|| u64_from(-1_i32)).is_err());
    }

    #[test]
    fn floating_point_rounds_and_saturates() {
        assert_eq!(f64_from((1_u64 << 53) + 1), 9_007_199_254_740_992.0);
        assert_eq!([2.9, -1.0, f64::NAN, 1e30].map(saturating_u32), [2, 0, 0, u32::MAX]);
        assert_eq!((saturating_i64(-1e30), saturating_u64(f64::INFINITY)), (i64::MIN, u64::MAX));
    }
}
