//! The loops of the SIMD engines, written once over what a vector can do.
//!
//! Purpose: a backend implements [`Vector`]; this file walks the blocks with it: several vectors at a time, then one,
//! then what is left. Everything here is `inline(always)` and takes on the instruction set of the backend's entry
//! functions (`#[target_feature]`) that it is inlined into, so the loops compile to that set and call nothing.
//!
//! Invariants: those of the engine (inputs before outputs at each position, no byte outside `len`).
//!
//! How the sums are formed: accumulators for a few vectors of each output stay in registers while the loop goes over
//! the inputs, so each input byte is loaded once and each output byte stored once. Q is evaluated by Horner's rule from
//! the last block to the first, q <- 2q + d: doubling is cheaper than general multiplication (or as cheap, with GFNI).
//!
//! What was measured (Sapphire Rapids, 8+1 and 8+2 blocks of 4 KiB to 1 MiB, see `benches/`):
//! - Four vectors at a time for one output (eight short ones for XOR), two for two: fewer cost up to a fifth in cache,
//!   more cost from memory, where short runs over many blocks keep more of the processor's line buffers busy.
//! - Non-temporal stores spare memory one read of each output: a tenth to a fifth more throughput where the blocks
//!   exceed the second-level cache, half or less where they fit it. Hence [`STREAM_FROM`].
//! - Software prefetch, at any distance and hint, gained nothing from memory that streaming had not, and cost a third
//!   in cache (load ports). There is none.

/// Bytes of all blocks of a call from which outputs are stored past the caches: about a second-level cache, beyond which
/// a call pushes its own first bytes out before it ends.
const STREAM_FROM: usize = 2 << 20;

/// Bytes of the longest vector.
const LONGEST: usize = 64;

/// What a backend's vector can do. `Copy`, held in a register.
///
/// Every function must be called where the backend's instruction set is enabled; that is all that makes the
/// non-pointer ones unsafe.
pub(super) trait Vector: Copy {
    /// Bytes in a vector.
    const BYTES: usize;
    /// A coefficient made ready to multiply vectors by.
    type Factor: Copy;

    /// Every byte zero.
    unsafe fn zero() -> Self;
    /// Reads `BYTES` bytes, at any alignment.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes `BYTES` bytes, at any alignment.
    unsafe fn store(self, to: *mut u8);
    /// Writes `BYTES` bytes past the caches where the processor can; `to` is a multiple of `BYTES`.
    unsafe fn stream(self, to: *mut u8);
    /// Makes streamed stores visible in order with what follows.
    unsafe fn fence();
    /// The sum.
    unsafe fn xor(self, other: Self) -> Self;
    /// Each byte times 2.
    unsafe fn double(self) -> Self;
    /// Makes a coefficient ready.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Each byte times the coefficient.
    unsafe fn mul(self, factor: Self::Factor) -> Self;

    /// Reads the first `count < BYTES` bytes and no other.
    #[inline(always)]
    unsafe fn load_partial(from: *const u8, count: usize) -> Self {
        let mut bytes = [0u8; LONGEST];
        // SAFETY: the caller's pointer is valid for `count < BYTES <= LONGEST` bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), count);
            Self::load(bytes.as_ptr())
        }
    }

    /// Writes the first `count < BYTES` bytes and no other.
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut u8, count: usize) {
        let mut bytes = [0u8; LONGEST];
        // SAFETY: the caller's pointer is valid for `count < BYTES <= LONGEST` bytes.
        unsafe {
            self.store(bytes.as_mut_ptr());
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count);
        }
    }
}

/// How a step reads and writes a vector. Always a constant where a step is called, so that the compiler sees which.
#[derive(Clone, Copy)]
enum VectorAccess {
    /// Whole vectors.
    Whole,
    /// Whole vectors, stored past the caches.
    Stream,
    /// The first so many bytes of a vector: the end of a block.
    First(usize),
}

impl VectorAccess {
    #[inline(always)]
    unsafe fn load<V: Vector>(self, from: *const u8) -> V {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                VectorAccess::Whole | VectorAccess::Stream => V::load(from),
                VectorAccess::First(count) => V::load_partial(from, count),
            }
        }
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(self, vector: V, to: *mut u8) {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                VectorAccess::Whole => vector.store(to),
                VectorAccess::Stream => vector.stream(to),
                VectorAccess::First(count) => vector.store_partial(to, count),
            }
        }
    }
}

/// What a kernel computes from its inputs: `U` vectors of each output, at a position.
trait Kernel<const OUTS: usize> {
    unsafe fn sums<V: Vector, const U: usize>(
        &self,
        inputs: &[*const u8],
        access: VectorAccess,
        at: usize,
    ) -> [[V; U]; OUTS];
}

/// The blocks of one call.
struct CallBlocks<'a, const OUTS: usize> {
    outs: [*mut u8; OUTS],
    inputs: &'a [*const u8],
    len: usize,
}

impl<const OUTS: usize> CallBlocks<'_, OUTS> {
    /// Whether streaming pays. Never for an output that is an input: its line is in the cache by the time it is stored.
    #[inline(always)]
    fn streams<V: Vector>(&self) -> bool {
        self.len.saturating_mul(OUTS + self.inputs.len()) >= STREAM_FROM
            && self.outs.iter().all(|out| out.addr() % V::BYTES == 0 && !self.inputs.contains(&out.cast_const()))
    }

    /// Computes and stores `U` vectors of each output.
    ///
    /// # Safety
    /// As [`Self::walk`]; the vectors, or as much of them as `access` says, lie within the blocks.
    #[inline(always)]
    unsafe fn step<V: Vector, const U: usize>(&self, kernel: &impl Kernel<OUTS>, access: VectorAccess, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let sums = kernel.sums::<V, U>(self.inputs, access, at);
            for u in 0..U {
                for (out, sums) in self.outs.iter().zip(&sums) {
                    access.store(sums[u], out.add(at + u * V::BYTES));
                }
            }
        }
    }

    /// Covers the blocks with steps, `U` vectors of each output at a time.
    ///
    /// # Safety
    /// The blocks are valid for `len` bytes, and V's instruction set is enabled in the caller.
    #[inline(always)]
    unsafe fn walk<V: Vector, const U: usize>(&self, kernel: &impl Kernel<OUTS>) {
        let (len, mut at) = (self.len, 0);
        // SAFETY: each step covers `U * BYTES` (or `len - at`) bytes from `at`, which the conditions keep within `len`;
        // streamed outputs are aligned at the start, and so after any number of vectors.
        unsafe {
            if self.streams::<V>() {
                while len - at >= 2 * V::BYTES {
                    self.step::<V, 2>(kernel, VectorAccess::Stream, at);
                    at += 2 * V::BYTES;
                }
                V::fence();
            }
            while len - at >= U * V::BYTES {
                self.step::<V, U>(kernel, VectorAccess::Whole, at);
                at += U * V::BYTES;
            }
            while len - at >= V::BYTES {
                self.step::<V, 1>(kernel, VectorAccess::Whole, at);
                at += V::BYTES;
            }
            if at < len {
                self.step::<V, 1>(kernel, VectorAccess::First(len - at), at);
            }
        }
    }
}

/// `U` vectors, one after another.
///
/// # Safety
/// As `access` demands, for each.
#[inline(always)]
unsafe fn load<V: Vector, const U: usize>(access: VectorAccess, from: *const u8) -> [V; U] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut vectors = [V::zero(); U];
        for (u, vector) in vectors.iter_mut().enumerate() {
            *vector = access.load(from.add(u * V::BYTES));
        }
        vectors
    }
}

struct Xor;

impl Kernel<1> for Xor {
    #[inline(always)]
    unsafe fn sums<V: Vector, const U: usize>(
        &self,
        inputs: &[*const u8],
        access: VectorAccess,
        at: usize,
    ) -> [[V; U]; 1] {
        // SAFETY: `walk` keeps every access within the blocks.
        unsafe {
            let Some((first, rest)) = inputs.split_first() else { return [[V::zero(); U]] };
            let mut sum = load::<V, U>(access, first.add(at));
            for input in rest {
                let input = input.add(at);
                for (u, sum) in sum.iter_mut().enumerate() {
                    *sum = sum.xor(access.load(input.add(u * V::BYTES)));
                }
            }
            [sum]
        }
    }
}

struct Pq;

impl Kernel<2> for Pq {
    #[inline(always)]
    unsafe fn sums<V: Vector, const U: usize>(
        &self,
        inputs: &[*const u8],
        access: VectorAccess,
        at: usize,
    ) -> [[V; U]; 2] {
        // SAFETY: `walk` keeps every access within the blocks, and there is an input (`Kernels`): with a case for none the
        // sums leave the registers.
        unsafe {
            debug_assert!(!inputs.is_empty(), "no inputs");
            let (last, rest) = inputs.split_last().unwrap_unchecked();
            let mut p = load::<V, U>(access, last.add(at));
            let mut q = p;
            for input in rest.iter().rev() {
                let input = input.add(at);
                for u in 0..U {
                    let data: V = access.load(input.add(u * V::BYTES));
                    p[u] = p[u].xor(data);
                    q[u] = q[u].double().xor(data);
                }
            }
            [p, q]
        }
    }
}

/// Sums of products: a list of coefficients for each output, as long as the list of inputs.
struct Products<'a, const OUTS: usize>([&'a [u8]; OUTS]);

impl<const OUTS: usize> Kernel<OUTS> for Products<'_, OUTS> {
    #[inline(always)]
    unsafe fn sums<V: Vector, const U: usize>(
        &self,
        inputs: &[*const u8],
        access: VectorAccess,
        at: usize,
    ) -> [[V; U]; OUTS] {
        // SAFETY: `walk` keeps every access within the blocks; a coefficient list is as long as the list of inputs.
        unsafe {
            let mut sums = [[V::zero(); U]; OUTS];
            for (i, input) in inputs.iter().enumerate() {
                let data = load::<V, U>(access, input.add(at));
                for (sums, coefficients) in sums.iter_mut().zip(self.0) {
                    let factor = V::factor(*coefficients.get_unchecked(i));
                    for (sum, data) in sums.iter_mut().zip(data) {
                        *sum = sum.xor(data.mul(factor));
                    }
                }
            }
            sums
        }
    }
}

// These are safe where [`Kernels`](super::Kernels) says so and V's instruction set is enabled in the caller.

#[inline(always)]
pub(super) unsafe fn xor<V: Vector>(out: *mut u8, inputs: &[*const u8], len: usize) {
    let blocks = CallBlocks { outs: [out], inputs, len };
    // SAFETY: passed on to the caller.
    unsafe {
        if V::BYTES < 64 {
            blocks.walk::<V, 8>(&Xor)
        } else {
            blocks.walk::<V, 4>(&Xor)
        }
    }
}

#[inline(always)]
pub(super) unsafe fn pq<V: Vector>(outs: [*mut u8; 2], inputs: &[*const u8], len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { CallBlocks { outs, inputs, len }.walk::<V, 2>(&Pq) }
}

#[inline(always)]
pub(super) unsafe fn combine<V: Vector, const OUTS: usize>(
    outs: [*mut u8; OUTS],
    inputs: &[*const u8],
    coefficients: [&[u8]; OUTS],
    len: usize,
) {
    let blocks = CallBlocks { outs, inputs, len };
    // SAFETY: passed on to the caller.
    unsafe {
        if OUTS == 1 && V::BYTES < 32 {
            blocks.walk::<V, 8>(&Products(coefficients))
        } else if OUTS == 1 {
            blocks.walk::<V, 4>(&Products(coefficients))
        } else {
            blocks.walk::<V, 2>(&Products(coefficients))
        }
    }
}

/// Defines `KERNELS` and its entry functions for a vector type and its instruction set; they are unsafe for the reasons
/// that [`Kernels`](super::Kernels) gives.
macro_rules! kernels {
    ($vector:ty, $features:literal) => {
        /// The kernels of this engine.
        pub(super) static KERNELS: super::Kernels =
            super::Kernels { xor, pq, combine: combine_one, combine2: combine_two };

        #[target_feature(enable = $features)]
        unsafe fn xor(out: *mut u8, inputs: &[*const u8], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::xor::<$vector>(out, inputs, len) }
        }

        #[target_feature(enable = $features)]
        unsafe fn pq(outs: [*mut u8; 2], inputs: &[*const u8], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::pq::<$vector>(outs, inputs, len) }
        }

        #[target_feature(enable = $features)]
        unsafe fn combine_one(outs: [*mut u8; 1], inputs: &[*const u8], coefficients: [&[u8]; 1], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::combine::<$vector, 1>(outs, inputs, coefficients, len) }
        }

        #[target_feature(enable = $features)]
        unsafe fn combine_two(outs: [*mut u8; 2], inputs: &[*const u8], coefficients: [&[u8]; 2], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::combine::<$vector, 2>(outs, inputs, coefficients, len) }
        }
    };
}
pub(super) use kernels;
