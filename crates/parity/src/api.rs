//! The public kernels: checks, then a call of the chosen engine.
//!
//! Purpose: the one place where slices become the pointers of [`Kernels`], so that the safe functions are safe whatever
//! they are given. The engine calls the chosen backend by pointers (free functions); methods of [`Backend`] take slices.
//!
//! Invariants: every output has the length of every input; inputs are between 1 and [`MAX_INPUTS`]; each coefficient
//! list has one entry an input. Violations panic: they are errors of the caller, never of the data.

use crate::choice;
use crate::engine::{Backend, Combine, Kernels};
use crate::MAX_INPUTS;
use core::mem::MaybeUninit;

/// out = XOR of all inputs, on the chosen backend; pointers, for buffers that are both output and input.
///
/// # Safety
/// As [`combine_raw`].
///
/// # Panics
/// If there is no input or more than [`MAX_INPUTS`].
pub unsafe fn xor_raw(out: *mut u8, inputs: &[*const u8], len: usize) {
    check_count(inputs.len());
    // SAFETY: passed on to the caller.
    unsafe { (choice::kernels().xor)(out, inputs, len) }
}

/// The same for P = XOR of the data blocks, Q = sum of g^i times block i (i the position in `data`).
///
/// # Safety
/// As [`combine_raw`].
///
/// # Panics
/// If there is no data or more than [`MAX_INPUTS`] blocks.
pub unsafe fn pq_raw(p: *mut u8, q: *mut u8, data: &[*const u8], len: usize) {
    check_count(data.len());
    // SAFETY: passed on to the caller.
    unsafe { (choice::kernels().pq)([p, q], data, len) }
}

/// The same for one sum of coefficient times input, or two, as in an update of parity in place. `coefs[o][i]` is the
/// coefficient of input `i` in output `o`; 0 means absent (not read), 1 plain XOR.
///
/// # Safety
/// - Every input with a nonzero coefficient is valid for reads of `len` bytes, every output for writes; others are
///   never touched.
/// - An output may be *equal* to an input; otherwise it overlaps none, and outputs do not overlap each other.
/// - Nothing else writes these bytes during the call.
///
/// # Panics
/// If there are not one or two outputs, no input, more than [`MAX_INPUTS`], or a list of coefficients of another length.
pub unsafe fn combine_raw(outs: &[*mut u8], inputs: &[*const u8], coefs: &[&[u8]], len: usize) {
    let kernels = choice::kernels();
    // SAFETY: passed on to the caller.
    unsafe {
        match (outs, coefs) {
            (&[out], &[coefficients]) => sum(kernels, kernels.combine, [out], inputs, [coefficients], len),
            (&[out0, out1], &[c0, c1]) => sum(kernels, kernels.combine2, [out0, out1], inputs, [c0, c1], len),
            _ => panic!("{} outputs with {} lists of coefficients: one or two of each", outs.len(), coefs.len()),
        }
    }
}

/// The operations on slices, on a given backend: what tests and benchmarks ask for, and [`backend`](crate::backend) for
/// whoever wants the chosen one.
///
/// All panic if there is no input, there are more than [`MAX_INPUTS`], lengths differ, coefficients and inputs are not as
/// many, or the backend is not [available](Backend::is_available).
impl Backend {
    /// out = XOR of all `inputs`; what `out` held is overwritten.
    pub fn xor(self, out: &mut [u8], inputs: &[&[u8]]) {
        let mut room = room();
        let list = addresses(&mut room, inputs, out.len());
        // SAFETY: all blocks have `out.len()` bytes, and an exclusive borrow overlaps no other.
        unsafe { (self.must().xor)(out.as_mut_ptr(), list, out.len()) }
    }

    /// P = XOR of the data blocks, Q = sum of g^i times block i (i the position in `data`).
    pub fn pq(self, p: &mut [u8], q: &mut [u8], data: &[&[u8]]) {
        assert_eq!(p.len(), q.len(), "blocks of different lengths");
        let mut room = room();
        let list = addresses(&mut room, data, p.len());
        // SAFETY: all blocks have `p.len()` bytes, and exclusive borrows overlap no other.
        unsafe { (self.must().pq)([p.as_mut_ptr(), q.as_mut_ptr()], list, p.len()) }
    }

    /// out = sum of coefficient i times input i; a coefficient of 0 means absent (not read), of 1 plain XOR.
    pub fn combine(self, out: &mut [u8], inputs: &[&[u8]], coefficients: &[u8]) {
        let kernels = self.must();
        combine_with(kernels, kernels.combine, [out], inputs, [coefficients]);
    }

    /// Two sums of the same inputs in one pass: as two calls of [`combine`](Self::combine), faster.
    pub fn combine2(self, out0: &mut [u8], out1: &mut [u8], inputs: &[&[u8]], c0: &[u8], c1: &[u8]) {
        let kernels = self.must();
        combine_with(kernels, kernels.combine2, [out0, out1], inputs, [c0, c1]);
    }

    fn must(self) -> &'static Kernels {
        self.kernels().unwrap_or_else(|| panic!("this processor cannot run the parity backend {}", self.name()))
    }
}

fn combine_with<const OUTS: usize>(
    kernels: &Kernels,
    kernel: Combine<OUTS>,
    outs: [&mut [u8]; OUTS],
    inputs: &[&[u8]],
    coefficients: [&[u8]; OUTS],
) {
    let len = outs[0].len();
    assert!(outs.iter().all(|out| out.len() == len), "blocks of different lengths");
    let mut room = room();
    let list = addresses(&mut room, inputs, len);
    // SAFETY: all blocks have `len` bytes, and exclusive borrows overlap no other.
    unsafe { sum(kernels, kernel, outs.map(|out| out.as_mut_ptr()), list, coefficients, len) }
}

/// Runs the kernel that the coefficients need: absent inputs are left out, and a sum of ones is an XOR.
///
/// # Safety
/// As [`combine_raw`]; `kernel` is of `kernels`.
unsafe fn sum<const OUTS: usize>(
    kernels: &Kernels,
    kernel: Combine<OUTS>,
    outs: [*mut u8; OUTS],
    inputs: &[*const u8],
    coefficients: [&[u8]; OUTS],
    len: usize,
) {
    check_count(inputs.len());
    for list in coefficients {
        assert_eq!(list.len(), inputs.len(), "as many coefficients as inputs");
    }
    let is_absent = |i: usize| coefficients.iter().all(|list| list[i] == 0);
    // SAFETY: the caller's blocks, minus some that must not be touched.
    unsafe {
        if OUTS == 1 && coefficients[0].iter().all(|&c| c == 1) {
            (kernels.xor)(outs[0], inputs, len)
        } else if (0..inputs.len()).any(is_absent) {
            let (mut present, mut kept) = (room(), [[0; MAX_INPUTS]; OUTS]);
            let mut count = 0;
            for i in (0..inputs.len()).filter(|&i| !is_absent(i)) {
                for (kept, list) in kept.iter_mut().zip(coefficients) {
                    kept[count] = list[i];
                }
                present[count].write(inputs[i]);
                count += 1;
            }
            let kept = core::array::from_fn(|out| &kept[out][..count]);
            kernel(outs, written(&present, count), kept, len)
        } else {
            kernel(outs, inputs, coefficients, len)
        }
    }
}

fn check_count(inputs: usize) {
    assert!((1..=MAX_INPUTS).contains(&inputs), "{inputs} inputs: between 1 and {MAX_INPUTS} can be combined");
}

/// Room on the stack for the addresses of the inputs: no call allocates. It is neither cleared nor returned by value,
/// as setting or moving its 2 KiB took a fifth of the time of a 4 KiB stripe's XOR.
type InputArray<T> = [MaybeUninit<T>; MAX_INPUTS];

const fn room<T>() -> InputArray<T> {
    [const { MaybeUninit::uninit() }; MAX_INPUTS]
}

/// The addresses of `inputs`, all of which must have `len` bytes, in `room`.
#[inline(always)]
fn addresses<'a>(room: &'a mut InputArray<*const u8>, inputs: &[&[u8]], len: usize) -> &'a [*const u8] {
    check_count(inputs.len());
    for (slot, input) in room.iter_mut().zip(inputs) {
        assert_eq!(input.len(), len, "blocks of different lengths");
        slot.write(input.as_ptr());
    }
    // SAFETY: the count was checked against the room, so each input wrote its slot.
    unsafe { written(room, inputs.len()) }
}

/// The first `count` entries.
///
/// # Safety
/// They have been written, and `count <= MAX_INPUTS`.
#[inline(always)]
unsafe fn written<T>(room: &InputArray<T>, count: usize) -> &[T] {
    // SAFETY: the caller's promise; `MaybeUninit<T>` is laid out as `T`.
    unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), count) }
}
