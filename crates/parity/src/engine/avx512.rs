//! AVX-512 (F and BW): 64-byte vectors.
//!
//! Purpose: as `avx2.rs`, with vectors of a cache line, and masks that end a block without a copy.
//!
//! Reference: as `avx2.rs`.

use super::walk::Vector;
use crate::gf;
use core::arch::x86_64::*;
use core::marker::PhantomData;

/// How vectors are multiplied.
pub(super) trait Product: Copy {
    /// A coefficient made ready.
    type Factor: Copy;
    unsafe fn double(vector: __m512i) -> __m512i;
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    unsafe fn mul(vector: __m512i, factor: Self::Factor) -> __m512i;
}

#[derive(Clone, Copy)]
pub(super) struct Avx512<P>(__m512i, PhantomData<P>);

/// By byte shuffles.
#[derive(Clone, Copy)]
struct Shuffles;

super::walk::kernels!(Avx512<Shuffles>, "avx512f,avx512bw");

/// The mask of the first `count < 64` bytes.
#[inline(always)]
fn first(count: usize) -> __mmask64 {
    (1 << count) - 1
}

// `Vector` is only used inside the entry functions made by `kernels!`, where AVX-512 F and BW are enabled, and pointers are
// valid for the bytes that the trait says are touched: this makes every instruction below safe.
#[allow(unsafe_op_in_unsafe_fn, reason = "one reason holds for all of them")]
impl<P: Product> Vector for Avx512<P> {
    const BYTES: usize = 64;
    type Factor = P::Factor;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Avx512(_mm512_setzero_si512(), PhantomData)
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        Avx512(_mm512_loadu_si512(from.cast()), PhantomData)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        _mm512_storeu_si512(to.cast(), self.0)
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        _mm512_stream_si512(to.cast(), self.0)
    }

    #[inline(always)]
    unsafe fn fence() {
        _mm_sfence()
    }

    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        Avx512(_mm512_maskz_loadu_epi8(first(count), from.cast()), PhantomData)
    }

    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        _mm512_mask_storeu_epi8(to.cast(), first(count), self.0)
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Avx512(_mm512_xor_si512(self.0, other.0), PhantomData)
    }

    #[inline(always)]
    unsafe fn double(self) -> Self {
        Avx512(P::double(self.0), PhantomData)
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        P::factor(coefficient)
    }

    #[inline(always)]
    unsafe fn mul(self, factor: Self::Factor) -> Self {
        Avx512(P::mul(self.0, factor), PhantomData)
    }
}

// As above.
#[allow(unsafe_op_in_unsafe_fn, reason = "one reason holds for all of them")]
impl Product for Shuffles {
    type Factor = [__m512i; 2];

    #[inline(always)]
    unsafe fn double(vector: __m512i) -> __m512i {
        let overflow = _mm512_movepi8_mask(vector);
        let reduction = _mm512_maskz_set1_epi8(overflow, gf::POLYNOMIAL as i8);
        _mm512_xor_si512(_mm512_add_epi8(vector, vector), reduction)
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let halves = &gf::HALVES[coefficient as usize];
        let low = _mm_load_si128(halves.low.as_ptr().cast());
        let high = _mm_load_si128(halves.high.as_ptr().cast());
        [_mm512_broadcast_i32x4(low), _mm512_broadcast_i32x4(high)]
    }

    #[inline(always)]
    unsafe fn mul(vector: __m512i, [low, high]: Self::Factor) -> __m512i {
        let mask = _mm512_set1_epi8(0x0f);
        let low_half = _mm512_and_si512(vector, mask);
        let high_half = _mm512_and_si512(_mm512_srli_epi64::<4>(vector), mask);
        _mm512_xor_si512(_mm512_shuffle_epi8(low, low_half), _mm512_shuffle_epi8(high, high_half))
    }
}
