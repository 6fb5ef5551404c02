//! The engines: one file a backend, and the one list of them.
//!
//! Purpose: a backend is a set of four kernels ([`Kernels`]) for one instruction set. The SIMD backends say only what
//! their vectors can do (`Vector` in `walk.rs`); the loops over blocks and lengths are written once, in `walk.rs`.
//! `naive.rs` shares nothing with them and is the reference that the tests hold every other backend to.
//!
//! Invariants (every kernel of every backend keeps them):
//! - All inputs at a position are read before an output is written at that position: an output may *be* an input.
//! - No byte outside `len` of any block is read or written.
//! - There is an input.
//! - Coefficient lists have the length of the list of inputs.
//!
//! NEON is left out: on other processors than x86-64 the `portable` engine runs.
//!
//! Adding a backend: one new file, one `mod`, one line in [`Backend::ALL`], its arms in `Backend`; the tests find it there.

mod naive;
mod portable;
mod walk;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gfni;

/// The kernels of one backend.
///
/// All are unsafe for the same reasons: the processor must have the instructions, every pointer must be valid for
/// `len` bytes, outputs must be distinct from each other and each either equal to an input or overlapping none.
pub(crate) struct Kernels {
    /// out = XOR of all inputs.
    pub(crate) xor: unsafe fn(out: *mut u8, inputs: &[*const u8], len: usize),
    /// outs\[0\] = P = XOR of all inputs, outs\[1\] = Q = sum of g^i times input i.
    pub(crate) pq: unsafe fn(outs: [*mut u8; 2], inputs: &[*const u8], len: usize),
    /// out = sum of coefficient times input.
    pub(crate) combine: Combine<1>,
    /// Two outputs from one pass over the inputs.
    pub(crate) combine2: Combine<2>,
}

/// A `combine` kernel: outputs, inputs, a list of coefficients for each output, length.
pub(crate) type Combine<const OUTS: usize> = unsafe fn([*mut u8; OUTS], &[*const u8], [&[u8]; OUTS], usize);

/// An implementation of the kernels. Which are usable here is answered by [`available`](crate::available).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Byte by byte, by the definition: the reference.
    Naive,
    /// 64-bit words in plain Rust, for any processor.
    Portable,
    /// 32-byte vectors, products by byte shuffles.
    Avx2,
    /// 64-byte vectors (AVX-512 F, BW), products by byte shuffles.
    Avx512,
    /// 64-byte vectors, products by the affine instruction of GFNI.
    Gfni,
}

impl Backend {
    /// The list of backends, slowest first: the last one available is the one chosen.
    pub const ALL: &'static [Backend] =
        &[Backend::Naive, Backend::Portable, Backend::Avx2, Backend::Avx512, Backend::Gfni];

    /// The name, as `RAIDLAB_PARITY` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Naive => "naive",
            Backend::Portable => "portable",
            Backend::Avx2 => "avx2",
            Backend::Avx512 => "avx512",
            Backend::Gfni => "gfni",
        }
    }

    /// Whether this processor (and this build) can run it.
    pub fn is_available(self) -> bool {
        self.kernels().is_some()
    }

    /// The kernels, if this processor can run them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn kernels(self) -> Option<&'static Kernels> {
        let avx512 = || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        match self {
            Backend::Naive => Some(&naive::KERNELS),
            Backend::Portable => Some(&portable::KERNELS),
            Backend::Avx2 => is_x86_feature_detected!("avx2").then_some(&avx2::KERNELS),
            Backend::Avx512 => avx512().then_some(&avx512::KERNELS),
            Backend::Gfni => (avx512() && is_x86_feature_detected!("gfni")).then_some(&gfni::KERNELS),
        }
    }

    /// The kernels, if this processor can run them.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn kernels(self) -> Option<&'static Kernels> {
        match self {
            Backend::Naive => Some(&naive::KERNELS),
            Backend::Portable => Some(&portable::KERNELS),
            Backend::Avx2 | Backend::Avx512 | Backend::Gfni => None,
        }
    }
}
