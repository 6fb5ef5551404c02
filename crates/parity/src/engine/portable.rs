//! Plain Rust on 64-bit words: for processors without a backend of their own.
//!
//! Purpose: eight field elements to a word, four words to a "vector", which compilers turn into what SIMD the target
//! has by default. Doubling moves every byte left one bit and reduces those whose top bit fell out. A product is the sum
//! over the bits of the operand of the coefficient times that bit alone, which one integer multiplication places in
//! every byte of a word at once.
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6", section 3 (doubling without lookup).

use super::walk::Vector;
use super::Kernels;
use crate::gf;

/// The low bit of each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// Words in a vector.
const WORDS: usize = 2;

/// The kernels of this engine; the instruction set is the target's own, so the loops need no entry functions.
pub(super) static KERNELS: Kernels = Kernels {
    xor: super::walk::xor::<Words>,
    pq: super::walk::pq::<Words>,
    combine: super::walk::combine::<Words, 1>,
    combine2: super::walk::combine::<Words, 2>,
};

#[derive(Clone, Copy)]
struct Words([u64; WORDS]);

impl Words {
    #[inline(always)]
    fn map(self, f: impl Fn(usize, u64) -> u64) -> Self {
        let mut words = self.0;
        for (i, word) in words.iter_mut().enumerate() {
            *word = f(i, *word);
        }
        Words(words)
    }
}

// Nothing in here needs an instruction set; only the pointers make it unsafe.
impl Vector for Words {
    const BYTES: usize = 8 * WORDS;
    type Factor = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Words([0; WORDS])
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's pointer is valid for `BYTES`, and the read asks for no alignment.
        Words(unsafe { from.cast::<[u64; WORDS]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's pointer is valid for `BYTES`, and the write asks for no alignment.
        unsafe { to.cast::<[u64; WORDS]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: passed on to the caller.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.map(|i, word| word ^ other.0[i])
    }

    #[inline(always)]
    unsafe fn double(self) -> Self {
        const REDUCTION: u64 = ONES * (gf::POLYNOMIAL & 0xff) as u64;
        self.map(|_, word| {
            let overflow = (word >> 7) & ONES;
            // 0x01 becomes 0xff in place: (x << 8) - x = 255 x.
            let mask = (overflow << 8).wrapping_sub(overflow);
            ((word << 1) & !ONES) ^ (mask & REDUCTION)
        })
    }

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        let row = &gf::MUL[coefficient as usize];
        core::array::from_fn(|bit| u64::from(row[1 << bit]))
    }

    #[inline(always)]
    unsafe fn mul(self, factor: Self::Factor) -> Self {
        self.map(|_, word| {
            let mut product = 0;
            for (bit, part) in factor.into_iter().enumerate() {
                // A byte times the bits 0 or 1 of a word's bytes: no carry crosses from one into the next.
                product ^= ((word >> bit) & ONES) * part;
            }
            product
        })
    }
}
