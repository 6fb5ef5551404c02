//! AVX-512 (F and BW): 64-byte vectors.
//!
//! Purpose: as `avx2.rs`, with vectors of a cache line, and masks that end a block without a copy.
//!
//! Reference: as `avx2.rs`.

use super::walk::Vector;
use crate::gf;
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
pub(super) struct Avx512(pub(super) __m512i);

super::walk::kernels!(Avx512, "avx512f,avx512bw");

/// The mask of the first `count < 64` bytes.
#[inline(always)]
fn first(count: usize) -> __mmask64 {
    (1 << count) - 1
}

// SAFETY of every block below: `Vector` is only used inside the entry functions made by `kernels!`, where AVX-512 F and
// BW are enabled, and pointers are valid for the bytes that the trait says are touched.
impl Vector for Avx512 {
    const BYTES: usize = 64;
    type Factor = [__m512i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        unsafe { Avx512(_mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        unsafe { Avx512(_mm512_loadu_si512(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: see above; the address is a multiple of the vector's size.
        unsafe { _mm512_stream_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: SSE, which every x86-64 processor has.
        unsafe { _mm_sfence() }
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        // SAFETY: see above; bytes outside the mask are not touched.
        unsafe { Avx512(_mm512_maskz_loadu_epi8(first(count), from.cast())) }
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        // SAFETY: see above; bytes outside the mask are not touched.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(count), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        unsafe { Avx512(_mm512_xor_si512(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn double(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let overflow = _mm512_movepi8_mask(self.0);
            let reduction = _mm512_maskz_set1_epi8(overflow, gf::POLYNOMIAL as i8);
            Avx512(_mm512_xor_si512(_mm512_add_epi8(self.0, self.0), reduction))
        }
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let halves = &gf::HALVES[coefficient as usize];
        // SAFETY: see above; each table has 16 bytes.
        unsafe {
            let low = _mm_load_si128(halves.low.as_ptr().cast());
            let high = _mm_load_si128(halves.high.as_ptr().cast());
            [_mm512_broadcast_i32x4(low), _mm512_broadcast_i32x4(high)]
        }
    }

    #[inline(always)]
    unsafe fn mul(self, [low, high]: Self::Factor) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm512_set1_epi8(0x0f);
            let low_half = _mm512_and_si512(self.0, mask);
            let high_half = _mm512_and_si512(_mm512_srli_epi64::<4>(self.0), mask);
            Avx512(_mm512_xor_si512(_mm512_shuffle_epi8(low, low_half), _mm512_shuffle_epi8(high, high_half)))
        }
    }
}
