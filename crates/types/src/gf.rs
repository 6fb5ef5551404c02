//! Scalar arithmetic of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d) and the generator 2.
//!
//! Planners need it for the coefficients of Q and of recovery; kernels over bytes live in the parity crate.
//! Reference: H. P. Anvin, *The mathematics of RAID-6*, 2004-2011.

const POLYNOMIAL: u16 = 0x11d;

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
pub const fn exp(power: u32) -> u8 {
    TABLES.0[(power % 255) as usize]
}

/// `a` times `b`.
#[inline]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.0[TABLES.1[a as usize] as usize + TABLES.1[b as usize] as usize]
}

/// The inverse of `a`, which must not be 0.
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
        assert_eq!(exp(0), 1);
        assert_eq!(exp(8), 0x1d);
    }
}
