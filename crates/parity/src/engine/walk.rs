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
    /// Reads the first `count < BYTES` bytes and no other.
    unsafe fn load_partial(from: *const u8, count: usize) -> Self;
    /// Writes the first `count < BYTES` bytes and no other.
    unsafe fn store_partial(self, to: *mut u8, count: usize);
    /// The sum.
    unsafe fn xor(self, other: Self) -> Self;
    /// Each byte times 2.
    unsafe fn double(self) -> Self;
    /// Makes a coefficient ready.
    unsafe fn factor(coefficient: u8) -> Self::Factor;
    /// Each byte times the coefficient.
    unsafe fn mul(self, factor: Self::Factor) -> Self;
}

/// How a step reads and writes a vector.
trait Access: Copy {
    unsafe fn load<V: Vector>(self, from: *const u8) -> V;
    unsafe fn store<V: Vector>(self, vector: V, to: *mut u8);
}

/// Whole vectors.
#[derive(Clone, Copy)]
struct Whole;

impl Access for Whole {
    #[inline(always)]
    unsafe fn load<V: Vector>(self, from: *const u8) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(from) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(self, vector: V, to: *mut u8) {
        // SAFETY: passed on to the caller.
        unsafe { vector.store(to) }
    }
}

/// Whole vectors, stored past the caches.
#[derive(Clone, Copy)]
struct Streamed;

impl Access for Streamed {
    #[inline(always)]
    unsafe fn load<V: Vector>(self, from: *const u8) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(from) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(self, vector: V, to: *mut u8) {
        // SAFETY: passed on to the caller.
        unsafe { vector.stream(to) }
    }
}

/// The first so many bytes of a vector: the end of a block.
#[derive(Clone, Copy)]
struct Partial(usize);

impl Access for Partial {
    #[inline(always)]
    unsafe fn load<V: Vector>(self, from: *const u8) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load_partial(from, self.0) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(self, vector: V, to: *mut u8) {
        // SAFETY: passed on to the caller.
        unsafe { vector.store_partial(to, self.0) }
    }
}

/// One kernel with its blocks: computes `U` vectors of its outputs at a position.
trait Kernel {
    fn outs(&self) -> &[*mut u8];
    fn inputs(&self) -> &[*const u8];
    unsafe fn step<V: Vector, const U: usize>(&self, access: impl Access, at: usize);

    /// Whether streaming pays. Never for an output that is an input: its line is in the cache by the time it is stored.
    #[inline(always)]
    fn streams<V: Vector>(&self, len: usize) -> bool {
        let (outs, inputs) = (self.outs(), self.inputs());
        len.saturating_mul(outs.len() + inputs.len()) >= STREAM_FROM
            && outs.iter().all(|out| out.addr() % V::BYTES == 0 && !inputs.contains(&out.cast_const()))
    }
}

/// Covers `len` bytes with steps, `U` vectors of each output at a time.
///
/// # Safety
/// The kernel's blocks are valid for `len` bytes, and V's instruction set is enabled in the caller.
#[inline(always)]
unsafe fn walk<V: Vector, const U: usize>(kernel: &impl Kernel, len: usize) {
    let mut at = 0;
    // SAFETY: each step covers `U * BYTES` (or `len - at`) bytes from `at`, which the conditions keep within `len`;
    // streamed outputs are aligned at the start, and so after any number of vectors.
    unsafe {
        if kernel.streams::<V>(len) {
            while len - at >= 2 * V::BYTES {
                kernel.step::<V, 2>(Streamed, at);
                at += 2 * V::BYTES;
            }
            V::fence();
        }
        while len - at >= U * V::BYTES {
            kernel.step::<V, U>(Whole, at);
            at += U * V::BYTES;
        }
        while len - at >= V::BYTES {
            kernel.step::<V, 1>(Whole, at);
            at += V::BYTES;
        }
        if at < len {
            kernel.step::<V, 1>(Partial(len - at), at);
        }
    }
}

/// `U` vectors, one after another.
///
/// # Safety
/// As `access` demands, for each.
#[inline(always)]
unsafe fn load<V: Vector, const U: usize>(access: impl Access, from: *const u8) -> [V; U] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut vectors = [V::zero(); U];
        for (u, vector) in vectors.iter_mut().enumerate() {
            *vector = access.load(from.add(u * V::BYTES));
        }
        vectors
    }
}

struct Xor<'a> {
    out: *mut u8,
    inputs: &'a [*const u8],
}

impl Kernel for Xor<'_> {
    #[inline(always)]
    fn outs(&self) -> &[*mut u8] {
        core::slice::from_ref(&self.out)
    }
    #[inline(always)]
    fn inputs(&self) -> &[*const u8] {
        self.inputs
    }
    #[inline(always)]
    unsafe fn step<V: Vector, const U: usize>(&self, access: impl Access, at: usize) {
        // SAFETY: `walk` keeps every access within the blocks.
        unsafe {
            let Some((first, rest)) = self.inputs.split_first() else { return };
            let mut sum = load::<V, U>(access, first.add(at));
            for input in rest {
                let input = input.add(at);
                for (u, sum) in sum.iter_mut().enumerate() {
                    *sum = sum.xor(access.load(input.add(u * V::BYTES)));
                }
            }
            for (u, sum) in sum.into_iter().enumerate() {
                access.store(sum, self.out.add(at + u * V::BYTES));
            }
        }
    }
}

struct Pq<'a> {
    outs: [*mut u8; 2],
    inputs: &'a [*const u8],
}

impl Kernel for Pq<'_> {
    #[inline(always)]
    fn outs(&self) -> &[*mut u8] {
        &self.outs
    }
    #[inline(always)]
    fn inputs(&self) -> &[*const u8] {
        self.inputs
    }
    #[inline(always)]
    unsafe fn step<V: Vector, const U: usize>(&self, access: impl Access, at: usize) {
        // SAFETY: `walk` keeps every access within the blocks.
        unsafe {
            let Some((last, rest)) = self.inputs.split_last() else { return };
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
            for u in 0..U {
                access.store(p[u], self.outs[0].add(at + u * V::BYTES));
                access.store(q[u], self.outs[1].add(at + u * V::BYTES));
            }
        }
    }
}

struct Combine<'a, const OUTS: usize> {
    outs: [*mut u8; OUTS],
    inputs: &'a [*const u8],
    coefficients: [&'a [u8]; OUTS],
}

impl<const OUTS: usize> Kernel for Combine<'_, OUTS> {
    #[inline(always)]
    fn outs(&self) -> &[*mut u8] {
        &self.outs
    }
    #[inline(always)]
    fn inputs(&self) -> &[*const u8] {
        self.inputs
    }
    #[inline(always)]
    unsafe fn step<V: Vector, const U: usize>(&self, access: impl Access, at: usize) {
        // SAFETY: `walk` keeps every access within the blocks; a coefficient list is as long as the list of inputs.
        unsafe {
            let mut sums = [[V::zero(); U]; OUTS];
            for (i, input) in self.inputs.iter().enumerate() {
                let data = load::<V, U>(access, input.add(at));
                for (sums, coefficients) in sums.iter_mut().zip(self.coefficients) {
                    let factor = V::factor(*coefficients.get_unchecked(i));
                    for (sum, data) in sums.iter_mut().zip(data) {
                        *sum = sum.xor(data.mul(factor));
                    }
                }
            }
            for (out, sums) in self.outs.iter().zip(sums) {
                for (u, sum) in sums.into_iter().enumerate() {
                    access.store(sum, out.add(at + u * V::BYTES));
                }
            }
        }
    }
}

/// # Safety
/// As [`Kernels`](super::Kernels) says, and V's instruction set is enabled in the caller.
#[inline(always)]
pub(super) unsafe fn xor<V: Vector>(out: *mut u8, inputs: &[*const u8], len: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let kernel = Xor { out, inputs };
        if V::BYTES < 64 {
            walk::<V, 8>(&kernel, len)
        } else {
            walk::<V, 4>(&kernel, len)
        }
    }
}

/// # Safety
/// As [`Kernels`](super::Kernels) says, and V's instruction set is enabled in the caller.
#[inline(always)]
pub(super) unsafe fn pq<V: Vector>(outs: [*mut u8; 2], inputs: &[*const u8], len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { walk::<V, 2>(&Pq { outs, inputs }, len) }
}

/// # Safety
/// As [`Kernels`](super::Kernels) says, and V's instruction set is enabled in the caller.
#[inline(always)]
pub(super) unsafe fn combine<V: Vector, const OUTS: usize>(
    outs: [*mut u8; OUTS],
    inputs: &[*const u8],
    coefficients: [&[u8]; OUTS],
    len: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let kernel = Combine { outs, inputs, coefficients };
        if OUTS == 1 {
            walk::<V, 4>(&kernel, len)
        } else {
            walk::<V, 2>(&kernel, len)
        }
    }
}

/// Defines `KERNELS` and its entry functions for a vector type and its instruction set.
macro_rules! kernels {
    ($vector:ty, $features:literal) => {
        /// The kernels of this engine.
        pub(super) static KERNELS: super::Kernels =
            super::Kernels { xor, pq, combine: combine_one, combine2: combine_two };

        /// # Safety
        /// As [`Kernels`](super::Kernels) says.
        #[target_feature(enable = $features)]
        unsafe fn xor(out: *mut u8, inputs: &[*const u8], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::xor::<$vector>(out, inputs, len) }
        }

        /// # Safety
        /// As [`Kernels`](super::Kernels) says.
        #[target_feature(enable = $features)]
        unsafe fn pq(outs: [*mut u8; 2], inputs: &[*const u8], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::pq::<$vector>(outs, inputs, len) }
        }

        /// # Safety
        /// As [`Kernels`](super::Kernels) says.
        #[target_feature(enable = $features)]
        unsafe fn combine_one(outs: [*mut u8; 1], inputs: &[*const u8], coefficients: [&[u8]; 1], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::combine::<$vector, 1>(outs, inputs, coefficients, len) }
        }

        /// # Safety
        /// As [`Kernels`](super::Kernels) says.
        #[target_feature(enable = $features)]
        unsafe fn combine_two(outs: [*mut u8; 2], inputs: &[*const u8], coefficients: [&[u8]; 2], len: usize) {
            // SAFETY: passed on to the caller; the instruction set is enabled on this function.
            unsafe { super::walk::combine::<$vector, 2>(outs, inputs, coefficients, len) }
        }
    };
}
pub(super) use kernels;
