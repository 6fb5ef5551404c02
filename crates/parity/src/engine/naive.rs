//! The reference: every kernel by its definition, one byte at a time.
//!
//! Purpose: to be read. All other engines are proved equal to this one by the tests. It uses the multiplication table
//! and XOR, nothing else; P and Q are dot products with the coefficients 1 and g^i.
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6", section 1.

use super::Kernels;
use crate::gf;

/// The kernels of this engine; they are unsafe for the reasons that [`Kernels`] gives.
pub(super) static KERNELS: Kernels = Kernels { xor, pq, combine: combine::<1>, combine2: combine::<2> };

unsafe fn xor(out: *mut u8, inputs: &[*const u8], len: usize) {
    for at in 0..len {
        let mut sum = 0;
        for input in inputs {
            // SAFETY: `at < len`, and every input is valid for `len` bytes.
            sum ^= unsafe { *input.add(at) };
        }
        // SAFETY: `at < len`, and the output is valid for `len` bytes.
        unsafe { *out.add(at) = sum };
    }
}

unsafe fn pq(outs: [*mut u8; 2], inputs: &[*const u8], len: usize) {
    for at in 0..len {
        let (mut p, mut q) = (0, 0);
        for (i, input) in inputs.iter().enumerate() {
            // SAFETY: `at < len`, and every input is valid for `len` bytes.
            let byte = unsafe { *input.add(at) };
            p ^= byte;
            q ^= gf::mul(gf::exp(i), byte);
        }
        // SAFETY: `at < len`, and both outputs are valid for `len` bytes.
        unsafe {
            *outs[0].add(at) = p;
            *outs[1].add(at) = q;
        }
    }
}

unsafe fn combine<const OUTS: usize>(
    outs: [*mut u8; OUTS],
    inputs: &[*const u8],
    coefficients: [&[u8]; OUTS],
    len: usize,
) {
    for at in 0..len {
        let mut sums = [0; OUTS];
        for (i, input) in inputs.iter().enumerate() {
            // SAFETY: `at < len`, and every input is valid for `len` bytes.
            let byte = unsafe { *input.add(at) };
            for (sum, coefficients) in sums.iter_mut().zip(coefficients) {
                *sum ^= gf::MUL[coefficients[i] as usize][byte as usize];
            }
        }
        for (out, sum) in outs.iter().zip(sums) {
            // SAFETY: `at < len`, and every output is valid for `len` bytes.
            unsafe { *out.add(at) = sum };
        }
    }
}
