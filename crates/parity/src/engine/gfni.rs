//! GFNI with AVX-512: 64-byte vectors, one instruction a product.
//!
//! Purpose: the fastest engine. The multiply instruction of GFNI is fixed to another polynomial (0x11b, of AES), but
//! multiplication by a constant is linear over bits, and the affine instruction applies any 8 x 8 bit matrix to every
//! byte: the matrix of the constant in *our* field gives the product in our field.
//!
//! Reference: Intel, "Galois Field New Instructions (GFNI) Technology Guide" (2018), affine transformation.

use super::avx512::Avx512;
use super::walk::Vector;
use crate::gf;
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Gfni(Avx512);

super::walk::kernels!(Gfni, "avx512f,avx512bw,gfni");

// SAFETY of every block below: `Vector` is only used inside the entry functions made by `kernels!`, where AVX-512 F, BW
// and GFNI are enabled, and pointers are valid for the bytes that the trait says are touched.
impl Vector for Gfni {
    const BYTES: usize = Avx512::BYTES;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { Gfni(Avx512::zero()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { Gfni(Avx512::load(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: see above; the address is a multiple of the vector's size.
        unsafe { self.0.stream(to) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: see above.
        unsafe { Avx512::fence() }
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        // SAFETY: see above.
        unsafe { Gfni(Avx512::load_partial(from, count)) }
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        // SAFETY: see above.
        unsafe { self.0.store_partial(to, count) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Gfni(self.0.xor(other.0)) }
    }

    #[inline(always)]
    unsafe fn double(self) -> Self {
        // SAFETY: see above.
        unsafe { self.mul(Self::factor(2)) }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi64(gf::MATRIX[coefficient as usize] as i64) }
    }

    #[inline(always)]
    unsafe fn mul(self, factor: Self::Factor) -> Self {
        // SAFETY: see above.
        unsafe { Gfni(Avx512(_mm512_gf2p8affine_epi64_epi8::<0>(self.0 .0, factor))) }
    }
}
