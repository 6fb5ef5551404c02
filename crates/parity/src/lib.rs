//! XOR and P+Q parity kernels, and sums with any coefficients, chosen at run time.
//!
//! Purpose: the bytes of parity. [`xor_raw`] and [`pq_raw`] make the parity of a full stripe; [`combine_raw`] makes
//! dot products over GF(2^8), which is all that a read-modify-write (new parity = old parity + coefficient x change of
//! data) and every recovery ever need; with which coefficients, the array's plans say. No `unsafe` kernel lives anywhere else.
//!
//! Invariants:
//! - P is the XOR of the data blocks, Q = sum of g^i x block i over the field in [`gf`]: bit for bit what Linux md writes.
//! - Every backend gives the same bytes as the `Naive` one; which one runs changes the speed only.
//! - Nothing allocates, and lengths and alignments are free (aligned blocks are faster).
//! - A call takes at most [`MAX_INPUTS`] blocks: Q can tell no more apart.
//!
//! Which backend runs is decided once, at the first call: the last of [`Backend::ALL`] that the processor has, or what
//! the environment variable `RAIDLAB_PARITY` names (`naive`, `portable`, `avx2`, `avx512`, `gfni`).
//!
//! Reference: H. P. Anvin, "The mathematics of RAID-6" (2004, revised 2011).
//!
//! ```
//! let (a, b) = ([1u8, 2, 3], [4u8, 5, 6]);
//! let (mut p, mut q) = ([0; 3], [0; 3]);
//! let backend = raidlab_parity::backend();
//! backend.pq(&mut p, &mut q, &[&a, &b]);
//!
//! // Block 0 is lost: the present block and P give it back.
//! let mut out = [0; 3];
//! backend.combine(&mut out, &[&b, &p], &[1, 1]);
//! assert_eq!(out, a);
//! ```

#![allow(
    clippy::pedantic,
    reason = "its casts: halves of bytes, lanes and table indices are cut on purpose in kernels"
)]

pub mod gf;

mod api;
mod choice;
mod engine;

pub use api::{combine_raw, pq_raw, xor_raw};
pub use choice::{available, backend, try_backend};
pub use engine::Backend;

/// The most blocks that one call takes: g has 255 distinct powers, so Q tells 255 data blocks apart.
pub const MAX_INPUTS: usize = gf::ORDER;
