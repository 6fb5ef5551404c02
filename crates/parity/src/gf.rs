//! The tables by which the kernels multiply bytes in GF(2^8), the field of the Q parity.
//!
//! Purpose: scalar arithmetic is [`raidlab_types::gf`]'s, named again here; this adds the tables of whole products, of
//! products of halves of a byte, and of 8 x 8 bit matrices. Every table is computed by the compiler from [`mul`], so there
//! is nothing to initialise and nothing to get out of step with it.
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6" (2004, revised 2011).

pub use raidlab_types::gf::{exp, inv, mul, ORDER, POLYNOMIAL};

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

    #[test]
    fn every_table_agrees_with_the_product() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(MUL[a as usize][b as usize], mul(a, b));
                let halves = &HALVES[a as usize];
                assert_eq!(halves.low[(b & 15) as usize] ^ halves.high[(b >> 4) as usize], mul(a, b));
                let rows = MATRIX[a as usize].to_be_bytes();
                let by_matrix = (0..8).map(|i| (((rows[i] & b).count_ones() & 1) as u8) << i).sum::<u8>();
                assert_eq!(by_matrix, mul(a, b), "matrix of {a} times {b}");
            }
        }
    }
}
