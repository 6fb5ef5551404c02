//! GFNI with AVX-512: 64-byte vectors, one instruction a product.
//!
//! Purpose: the fastest engine. The multiply instruction of GFNI is fixed to another polynomial (0x11b, of AES), but
//! multiplication by a constant is linear over bits, and the affine instruction applies any 8 x 8 bit matrix to every
//! byte: the matrix of the constant in *our* field gives the product in our field.
//!
//! Reference: Intel, "Galois Field New Instructions (GFNI) Technology Guide" (2018), affine transformation.

use super::avx512::{Avx512, Product};
use crate::gf;
use core::arch::x86_64::*;

/// By the affine instruction.
#[derive(Clone, Copy)]
struct Affine;

super::walk::kernels!(Avx512<Affine>, "avx512f,avx512bw,gfni");

// Only used inside the entry functions made by `kernels!`, where AVX-512 F, BW and GFNI are enabled: this makes the
// instructions below safe.
#[allow(unsafe_op_in_unsafe_fn, reason = "one reason holds for all of them")]
impl Product for Affine {
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn double(vector: __m512i) -> __m512i {
        Self::mul(vector, Self::factor(2))
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        _mm512_set1_epi64(gf::MATRIX[coefficient as usize] as i64)
    }

    #[inline(always)]
    unsafe fn mul(vector: __m512i, factor: Self::Factor) -> __m512i {
        _mm512_gf2p8affine_epi64_epi8::<0>(vector, factor)
    }
}
