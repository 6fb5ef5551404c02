//! Scalar arithmetic of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and the generator 2.
//!
//! Purpose: the field of RAID 6 as Linux md and most controllers have it. Planners need it for the coefficients of Q and of
//! recovery; the kernels over bytes, and the tables they multiply with, live in the parity crate and are made from this.
//! Addition is exclusive or.
//!
//! Invariant: `exp` has period [`ORDER`] = 255, which is why Q tells at most 255 data blocks apart.
//!
//! Reference: H. P. Anvin, *The mathematics of RAID-6*, 2004-2011.

/// The field's polynomial, with its leading bit.
pub const POLYNOMIAL: u16 = 0x11d;

/// The number of nonzero elements: 2^255 = 1.
pub const ORDER: usize = 255;

#[expect(clippy::cast_possible_truncation, reason = "elements of the field, and their logarithms, are below 256")]
const fn tables() -> ([u8; 510], [u8; 256]) {
    let (mut exp, mut log) = ([0u8; 510], [0u8; 256]);
    let (mut x, mut i) = (1u16, 0);
    while i < 255 {
        exp[i] = x as u8;
        exp[i + 255] = x as u8;
        log[x as usize] = i as u8;
        x <<= 1;
        if x & 0x100 != 0 {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    (exp, log)
}

const TABLES: ([u8; 510], [u8; 256]) = tables();

/// The generator 2 raised to `power`.
#[inline]
pub const fn exp(power: usize) -> u8 {
    TABLES.0[power % ORDER]
}

/// `a` times `b`.
#[inline]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.0[TABLES.1[a as usize] as usize + TABLES.1[b as usize] as usize]
}

/// The inverse of `a`.
///
/// # Panics
/// If `a` is zero, which has none.
#[inline]
pub const fn inv(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse");
    TABLES.0[255 - TABLES.1[a as usize] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by shifting and reducing, the definition.
    fn slow_mul(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            if b & 1 != 0 {
                product ^= a;
            }
            a = (a << 1) ^ if a & 0x80 != 0 { (POLYNOMIAL & 0xff) as u8 } else { 0 };
            b >>= 1;
        }
        product
    }

    #[test]
    fn tables_agree_with_the_definition() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(mul(a, b), slow_mul(a, b));
            }
            if a != 0 {
                assert_eq!(mul(a, inv(a)), 1);
            }
        }
        // First values of the table in Anvin's paper and in Linux lib/raid6.
        let first: Vec<u8> = (0..12).map(exp).collect();
        assert_eq!(first, [1, 2, 4, 8, 16, 32, 64, 128, 0x1d, 0x3a, 0x74, 0xe8]);
        assert_eq!(exp(254), 0x8e, "the inverse of 2");
        assert_eq!(exp(3), exp(3 + ORDER));
    }

    #[test]
    #[should_panic(expected = "no inverse")]
    fn zero_has_no_inverse() {
        inv(0);
    }
}
