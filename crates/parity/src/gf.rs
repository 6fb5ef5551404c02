//! Arithmetic in GF(2^8), the field of the Q parity.
//!
//! Purpose: the field of RAID-6 as Linux md and most controllers have it: polynomial x^8 + x^4 + x^3 + x^2 + 1
//! ([`POLYNOMIAL`], 0x11d), generator g = 2. Addition is XOR; multiplication goes by logarithms. Every table is computed
//! by the compiler, so there is nothing to initialise and nothing to get out of step with the functions.
//!
//! Invariants:
//! - `exp(log(a)) == a` for every a != 0, and `exp` has period [`ORDER`] = 255: this is why Q tells at most 255 data
//!   blocks apart.
//! - The tables of the SIMD engines (halves of a byte, 8 x 8 bit matrices) are derived from [`mul`] and hold nothing
//!   that it does not say.
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6" (2004, revised 2011).

/// The field's polynomial, with its leading bit.
pub const POLYNOMIAL: u16 = 0x11d;

/// The number of nonzero elements: g^255 = 1.
pub const ORDER: usize = 255;

/// `EXP[i]` is g^i. Twice the period, so that the sum of two logarithms needs no reduction.
pub const EXP: [u8; 2 * ORDER] = exp_table();

/// `LOG[a]` is the i < 255 with g^i = a. `LOG[0]` is meaningless (0), zero has no logarithm.
pub const LOG: [u8; 256] = log_table();

/// `MUL[a][b]` is a times b: the reference engine multiplies by looking up here.
pub static MUL: [[u8; 256]; 256] = mul_table();

/// `HALVES[c]` multiplies by c with two 16-entry lookups: c times a low half-byte, then c times a high one.
/// The product of a whole byte is the XOR of the two, since multiplication distributes over addition.
pub(crate) static HALVES: [Halves; 256] = halves_table();

/// `MATRIX[c]` is multiplication by c as an 8 x 8 bit matrix, in the layout of the GFNI affine instruction:
/// byte 7 - i yields bit i of the result, as the parity of that byte AND the operand.
pub(crate) static MATRIX: [u64; 256] = matrix_table();

/// The two lookups that multiply by one coefficient; aligned to be loaded at once.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Halves {
    /// Products of 0x00..=0x0f.
    pub(crate) low: [u8; 16],
    /// Products of 0x00, 0x10, ..., 0xf0.
    pub(crate) high: [u8; 16],
}

/// The product of `a` and `b`.
#[inline]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// The inverse of `a`.
///
/// # Panics
/// If `a` is zero, which has none.
#[inline]
pub const fn inv(a: u8) -> u8 {
    assert!(a != 0, "zero has no inverse in GF(2^8)");
    EXP[ORDER - LOG[a as usize] as usize]
}

/// `a` divided by `b`.
///
/// # Panics
/// If `b` is zero.
#[inline]
pub const fn div(a: u8, b: u8) -> u8 {
    mul(a, inv(b))
}

/// g^i, the coefficient of data block `i` in Q. Takes any `i` (the period is 255).
#[inline]
pub const fn exp(i: usize) -> u8 {
    EXP[i % ORDER]
}

/// The i < 255 with g^i = `a`.
///
/// # Panics
/// If `a` is zero, which is no power of g.
#[inline]
pub const fn log(a: u8) -> u8 {
    assert!(a != 0, "zero has no logarithm in GF(2^8)");
    LOG[a as usize]
}

const fn exp_table() -> [u8; 2 * ORDER] {
    let mut table = [0; 2 * ORDER];
    let mut power: u16 = 1;
    let mut i = 0;
    while i < 2 * ORDER {
        table[i] = power as u8;
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    table
}

const fn log_table() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < ORDER {
        table[EXP[i] as usize] = i as u8;
        i += 1;
    }
    table
}

const fn mul_table() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 0;
    while a < 256 {
        let mut b = 0;
        while b < 256 {
            table[a][b] = mul(a as u8, b as u8);
            b += 1;
        }
        a += 1;
    }
    table
}

const fn halves_table() -> [Halves; 256] {
    let mut table = [Halves { low: [0; 16], high: [0; 16] }; 256];
    let mut c = 0;
    while c < 256 {
        let mut i = 0;
        while i < 16 {
            table[c].low[i] = mul(c as u8, i as u8);
            table[c].high[i] = mul(c as u8, (i << 4) as u8);
            i += 1;
        }
        c += 1;
    }
    table
}

const fn matrix_table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut column = 0;
        while column < 8 {
            // The column of operand bit j is the product c * 2^j; its bit i belongs in byte 7 - i, bit j.
            let product = mul(c as u8, 1 << column) as u64;
            let mut i = 0;
            while i < 8 {
                table[c] |= ((product >> i) & 1) << (8 * (7 - i) + column);
                i += 1;
            }
            column += 1;
        }
        c += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by the school method: shift, add, reduce. Shares nothing with the tables.
    fn mul_by_shifting(a: u8, b: u8) -> u8 {
        let (mut product, mut a, mut b) = (0u16, a as u16, b);
        while b != 0 {
            if b & 1 != 0 {
                product ^= a;
            }
            a <<= 1;
            if a & 0x100 != 0 {
                a ^= POLYNOMIAL;
            }
            b >>= 1;
        }
        product as u8
    }

    #[test]
    fn every_product_agrees_with_shifting() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(mul(a, b), mul_by_shifting(a, b), "{a} * {b}");
                assert_eq!(MUL[a as usize][b as usize], mul(a, b));
                let halves = &HALVES[a as usize];
                assert_eq!(halves.low[(b & 15) as usize] ^ halves.high[(b >> 4) as usize], mul(a, b));
                let rows = MATRIX[a as usize].to_be_bytes();
                let by_matrix = (0..8).map(|i| (((rows[i] & b).count_ones() & 1) as u8) << i).sum::<u8>();
                assert_eq!(by_matrix, mul(a, b), "matrix of {a} times {b}");
            }
        }
    }

    #[test]
    fn inverses_quotients_and_logarithms_undo() {
        for a in 1..=255u8 {
            assert_eq!(mul(a, inv(a)), 1);
            assert_eq!(exp(log(a) as usize), a);
            assert_eq!(exp(log(a) as usize + ORDER), a);
            for b in 1..=255u8 {
                assert_eq!(mul(div(a, b), b), a);
            }
        }
    }

    #[test]
    fn the_generator_is_two_and_wraps_as_published() {
        // First values of the table in Anvin's paper and in Linux lib/raid6.
        assert_eq!(EXP[..12], [1, 2, 4, 8, 16, 32, 64, 128, 0x1d, 0x3a, 0x74, 0xe8]);
        assert_eq!(exp(254), 0x8e, "g^-1");
    }

    #[test]
    #[should_panic(expected = "no inverse")]
    fn zero_has_no_inverse() {
        inv(0);
    }

    #[test]
    #[should_panic(expected = "no logarithm")]
    fn zero_has_no_logarithm() {
        log(0);
    }
}
