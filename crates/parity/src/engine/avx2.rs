//! AVX2: 32-byte vectors.
//!
//! Purpose: the engine of most x86-64 processors since 2013. A product is two byte shuffles, one table lookup for each
//! half of the byte; doubling adds each byte to itself and reduces where the top bit was set, which the signed
//! comparison with zero finds.
//!
//! Reference: J. S. Plank, K. M. Greenan, E. L. Miller, "Screaming fast Galois field arithmetic using Intel SIMD
//! instructions", FAST 2013 (products); H. P. Anvin, "The mathematics of RAID-6", section 3 (doubling).

use super::walk::Vector;
use crate::gf;
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
struct Avx2(__m256i);

super::walk::kernels!(Avx2, "avx2");

// `Vector` is only used inside the entry functions made by `kernels!`, where AVX2 is enabled, and pointers are valid for
// the bytes that the trait says are touched: this makes every instruction below safe.
#[allow(unsafe_op_in_unsafe_fn, reason = "one reason holds for all of them")]
impl Vector for Avx2 {
    const BYTES: usize = 32;
    type Factor = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Avx2(_mm256_setzero_si256())
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        Avx2(_mm256_loadu_si256(from.cast()))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        _mm256_storeu_si256(to.cast(), self.0)
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        _mm256_stream_si256(to.cast(), self.0)
    }

    #[inline(always)]
    unsafe fn fence() {
        _mm_sfence()
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Avx2(_mm256_xor_si256(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn double(self) -> Self {
        let overflow = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
        let reduction = _mm256_and_si256(overflow, _mm256_set1_epi8(gf::POLYNOMIAL as i8));
        Avx2(_mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduction))
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let halves = &gf::HALVES[coefficient as usize];
        let low = _mm_load_si128(halves.low.as_ptr().cast());
        let high = _mm_load_si128(halves.high.as_ptr().cast());
        [_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high)]
    }

    #[inline(always)]
    unsafe fn mul(self, [low, high]: Self::Factor) -> Self {
        let mask = _mm256_set1_epi8(0x0f);
        let low_half = _mm256_and_si256(self.0, mask);
        let high_half = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask);
        Avx2(_mm256_xor_si256(_mm256_shuffle_epi8(low, low_half), _mm256_shuffle_epi8(high, high_half)))
    }
}
