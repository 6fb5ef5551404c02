//! Every backend gives the bytes of the naive one: at every small length, every alignment, every number of inputs,
//! every coefficient, in place, and without touching a byte beside the blocks.

#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

use proptest::prelude::*;
use raidlab_parity::{available, backend, combine_raw, pq_raw, xor_raw, Backend};

/// Bytes that look random and are a function of the seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A block at an odd place of its memory, between guards.
struct GuardedBlock {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

const GUARD: usize = 64;

impl GuardedBlock {
    /// A block of `len` bytes, `offset` past a 64-byte boundary.
    fn new(len: usize, offset: usize) -> Self {
        let memory = vec![0xa5; len + 3 * GUARD];
        let from = GUARD + memory.as_ptr().align_offset(GUARD) % GUARD + offset % GUARD;
        GuardedBlock { memory, from, len }
    }

    fn of(content: &[u8], offset: usize) -> Self {
        let mut block = Self::new(content.len(), offset);
        block.get().copy_from_slice(content);
        block
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }

    fn read(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }

    fn assert_guards(&self) {
        let around = self.memory[..self.from].iter().chain(&self.memory[self.from + self.len..]);
        assert!(around.into_iter().all(|&b| b == 0xa5), "a byte beside the block was written");
    }
}

/// A case: blocks at odd places, with coefficients for two outputs.
struct Case {
    len: usize,
    offset: usize,
    blocks: Vec<GuardedBlock>,
    coefficients: [Vec<u8>; 2],
}

impl Case {
    fn new(seed: u64, count: usize, len: usize, offset: usize) -> Self {
        let blocks = (0..count).map(|i| GuardedBlock::of(&bytes(seed + i as u64, len), offset * (i + 1))).collect();
        let coefficients = [bytes(seed ^ 0xc0, count), bytes(seed ^ 0xc1, count)];
        Case { len, offset, blocks, coefficients }
    }

    fn inputs(&self) -> Vec<&[u8]> {
        self.blocks.iter().map(GuardedBlock::read).collect()
    }

    /// xor, pq, combine and combine2 of one backend: six outputs.
    fn run(&self, backend: Backend) -> Vec<Vec<u8>> {
        let inputs = self.inputs();
        let [c0, c1] = &self.coefficients;
        let mut outs: Vec<_> = (0..6).map(|i| GuardedBlock::new(self.len, self.offset + 7 * i)).collect();
        let [x, p, q, one, two0, two1] = &mut outs[..] else { unreachable!() };
        backend.xor(x.get(), &inputs);
        backend.pq(p.get(), q.get(), &inputs);
        backend.combine(one.get(), &inputs, c0);
        backend.combine2(two0.get(), two1.get(), &inputs, c0, c1);
        outs.iter().for_each(GuardedBlock::assert_guards);
        outs.iter().map(|out| out.read().to_vec()).collect()
    }

    fn assert_all_backends_agree(&self) {
        let expected = self.run(Backend::Naive);
        for backend in available() {
            let (count, len, offset) = (self.blocks.len(), self.len, self.offset);
            assert_eq!(self.run(backend), expected, "{backend:?}, {count} inputs of {len} bytes, offset {offset}");
        }
    }
}

#[test]
fn every_small_length_at_several_offsets() {
    for len in 0..=300 {
        for (offset, count) in [(0, 8), (1, 3), (31, 5), (33, 1), (63, 2)] {
            Case::new(len as u64, count, len, offset).assert_all_backends_agree();
        }
    }
}

#[test]
fn every_number_of_inputs_and_the_most() {
    for count in (1..=20).chain([64, 254, 255]) {
        for len in [1, 63, 64, 256, 777] {
            Case::new(count as u64, count, len, 5).assert_all_backends_agree();
        }
    }
}

#[test]
fn every_coefficient_times_every_byte() {
    let all: Vec<u8> = (0..=255).collect();
    for coefficient in 0..=255u8 {
        let expected: Vec<u8> = all.iter().map(|&b| raidlab_parity::gf::mul(coefficient, b)).collect();
        for backend in available() {
            let (mut out, mut again, mut other) = ([0; 256], [0; 256], [0; 256]);
            backend.combine(&mut out, &[&all], &[coefficient]);
            backend.combine2(&mut again, &mut other, &[&all], &[coefficient], &[1]);
            assert_eq!(out[..], expected[..], "{backend:?}, coefficient {coefficient}");
            assert_eq!((&again, &other[..]), (&out, &all[..]), "{backend:?}, coefficient {coefficient}");
        }
    }
}

/// Past every size at which an engine may change its way of storing or fetching.
#[test]
fn large_blocks_aligned_and_not() {
    for len in [4096, 65536 + 64, (1 << 20) + 13] {
        for offset in [0, 3, 32] {
            Case::new(len as u64, 3, len, offset).assert_all_backends_agree();
        }
    }
}

/// An output may be one of the inputs: the chosen backend, through the pointer functions.
#[test]
fn outputs_in_place_of_inputs() {
    for len in [0, 1, 64, 100, 4096, 1 << 20] {
        let blocks: Vec<_> = (0..4).map(|i| bytes(40 + i, len)).collect();
        let inputs: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let [c0, c1] = [[1, 0, 29, 29], [0, 1, 76, 76]];
        let mut expected = vec![vec![0; len]; 5];
        let [two0, two1, x, p, q] = &mut expected[..] else { unreachable!() };
        Backend::Naive.combine2(two0, two1, &inputs, &c0, &c1);
        Backend::Naive.xor(x, &inputs);
        Backend::Naive.pq(p, q, &inputs);

        let run = |operation: &dyn Fn(*mut u8, *mut u8, &[*const u8])| {
            let mut work = blocks.clone();
            let pointers: Vec<*mut u8> = work.iter_mut().map(|block| block.as_mut_ptr()).collect();
            let inputs: Vec<*const u8> = pointers.iter().map(|pointer| pointer.cast_const()).collect();
            operation(pointers[0], pointers[1], &inputs);
            work
        };
        // SAFETY: the pointers are of whole blocks of `len` bytes, apart from each other.
        let combined = run(&|a, b, inputs| unsafe { combine_raw(&[a, b], inputs, &[&c0, &c1], len) });
        // SAFETY: as above.
        let xored = run(&|a, _, inputs| unsafe { xor_raw(a, inputs, len) });
        // SAFETY: as above.
        let pqed = run(&|a, b, inputs| unsafe { pq_raw(a, b, inputs, len) });
        assert!(combined[0] == expected[0] && combined[1] == expected[1], "combine_raw, {len} bytes");
        assert!(xored[0] == expected[2], "xor_raw, {len} bytes");
        assert!(pqed[0] == expected[3] && pqed[1] == expected[4], "pq_raw, {len} bytes");
    }
}

/// Coefficient 0 means not read: the pointer may point nowhere.
#[test]
fn absent_inputs_are_not_touched() {
    let block = bytes(7, 500);
    let mut out = vec![0xff; 500];
    let inputs = [core::ptr::dangling(), block.as_ptr()];
    // SAFETY: the dangling input has coefficient 0; the other and the output have 500 bytes.
    unsafe { combine_raw(&[out.as_mut_ptr()], &inputs, &[&[0, 1]], 500) };
    assert_eq!(out, block);
    // SAFETY: no input is touched; the output has 500 bytes.
    unsafe { combine_raw(&[out.as_mut_ptr()], &inputs[..1], &[&[0]], 500) };
    assert_eq!(out, vec![0; 500], "an empty sum is zero");
}

#[test]
fn misuse_panics() {
    fn panics(f: impl FnOnce() + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(f).is_err()
    }
    assert!(panics(|| backend().xor(&mut [0; 4], &[])), "no input");
    assert!(panics(|| backend().xor(&mut [0; 4], &[&[0; 3]])), "lengths");
    assert!(panics(|| backend().pq(&mut [0; 4], &mut [0; 5], &[&[0; 4]])), "lengths");
    assert!(panics(|| backend().pq(&mut [0], &mut [0], &[&[0u8; 1][..]; 256])), "too many");
    assert!(panics(|| backend().combine(&mut [0; 4], &[&[0; 4]], &[1, 2])), "coefficients");
}

proptest! {
    #[test]
    fn any_case_agrees(seed: u64, count in 1usize..=20, len in 0usize..3000, offset in 0usize..64) {
        Case::new(seed >> 8, count, len, offset).assert_all_backends_agree();
    }

    #[test]
    fn an_update_of_parity_equals_parity_made_anew(
        seed: u64, count in 1usize..=12, len in 1usize..600, which in 0usize..12
    ) {
        let mut data: Vec<_> = (0..count).map(|i| bytes(seed ^ i as u64, len)).collect();
        let which = which % count;
        let made = |data: &[Vec<u8>]| {
            let (mut p, mut q) = (vec![0; len], vec![0; len]);
            backend().pq(&mut p, &mut q, &data.iter().map(Vec::as_slice).collect::<Vec<_>>());
            (p, q)
        };
        let (p, q) = made(&data);
        let old = std::mem::replace(&mut data[which], bytes(!seed, len));
        let (mut new_p, mut new_q) = (vec![0; len], vec![0; len]);
        let g = raidlab_parity::gf::exp(which);
        let inputs: [&[u8]; 4] = [&p, &q, &old, &data[which]];
        backend().combine2(&mut new_p, &mut new_q, &inputs, &[1, 0, 1, 1], &[0, 1, g, g]);
        prop_assert_eq!((new_p, new_q), made(&data));
    }
}
